"""Pure selection: which of the ranked candidates to return, so that they do not repeat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from houkai.search.arrays import Floats
from houkai.search.ranking import spread


def select(
    order: Sequence[int],
    score: Floats,
    vectors: NDArray[np.float32],
    k: int,
    *,
    diversity: float | None = None,
    dedup_threshold: float | None = None,
) -> list[int]:
    """Return up to `k` positions by maximal marginal relevance [Carbonell & Goldstein 1998].

    `diversity` is the share of relevance (1: relevance alone) against the highest cosine to what
    is chosen; `dedup_threshold` skips what is at least that similar to it. `vectors` holds a unit
    vector for each position of `order`; zero vectors are similar to nothing.
    """
    relevance = spread(score[list(order)])
    closest = np.full(len(order), -1.0)
    left = np.ones(len(order), bool)
    chosen: list[int] = []
    while len(chosen) < k and left.any():
        at = _next(relevance, closest, left, diversity)
        left[at] = False
        if dedup_threshold is not None and chosen and closest[at] >= dedup_threshold:
            continue
        chosen.append(at)
        closest = np.maximum(closest, vectors @ vectors[at])
    return [order[at] for at in chosen]


def _next(
    relevance: Floats, closest: Floats, left: NDArray[np.bool_], diversity: float | None
) -> int:
    """Return the best position left; without diversity that is the first in order."""
    if diversity is None:
        return int(np.flatnonzero(left)[0])
    novelty = np.where(closest > -1.0, closest, 0.0)
    value = diversity * relevance - (1 - diversity) * novelty
    return int(np.argmax(np.where(left, value, -np.inf)))
