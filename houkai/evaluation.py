"""Pure measures of retrieval quality, over lists of ids."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence


def recall_at_k(found: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant that is among the first k."""
    return len(set(found[:k]) & set(relevant)) / len(set(relevant)) if relevant else 0.0


def precision_at_k(found: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of what was retrieved, up to k, that is relevant."""
    top = found[:k]
    return sum(id in relevant for id in top) / len(top) if top else 0.0


def reciprocal_rank(found: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 / rank of the first relevant one, 0 when none was found."""
    return next((1 / rank for rank, id in enumerate(found, 1) if id in relevant), 0.0)


def average_precision(found: Sequence[str], relevant: Collection[str]) -> float:
    """Return the mean of the precision at each relevant one, over all the relevant."""
    hits, total = 0, 0.0
    for rank, id in enumerate(found, 1):
        if id in relevant:
            hits += 1
            total += hits / rank
    return total / len(set(relevant)) if relevant else 0.0


def dcg_at_k(gains: Sequence[float], k: int) -> float:
    """Return the discounted cumulative gain of the first k [Järvelin & Kekäläinen 2002]."""
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:k], 1))


def ndcg_at_k(found: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the gain of the first k as a share of the best possible order's."""
    ideal = dcg_at_k([1.0] * len(set(relevant)), k)
    gained = dcg_at_k([float(id in relevant) for id in found], k)
    return gained / ideal if ideal else 0.0
