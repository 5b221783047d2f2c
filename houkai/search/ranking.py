"""Pure ranking: turn a pool's evidence into scores, by the blend or by the seed's formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from houkai.errors import InputError, shown
from houkai.model import ExpandSpec, HybridWeights
from houkai.options import check_weights
from houkai.rules import clean
from houkai.search.arrays import Floats
from houkai.search.blend import Parts
from houkai.search.pool import Pool
from houkai.vocabulary import Fusion, RecallMode

RRF_K: Final = 60
DAY_S: Final = 86_400.0


@dataclass(frozen=True)
class Ranking:
    """How to rank; the defaults are the measured ones."""

    mode: RecallMode = "hybrid"
    fusion: Fusion | None = None
    weights: HybridWeights | None = None
    min_cosine: float | None = None
    min_relevance: float | None = None
    overfetch: int = 4
    diversity: float | None = None
    dedup_threshold: float | None = None
    expand: ExpandSpec | None = None
    graph: float | None = None

    def resolved(self) -> Fusion:
        """Return the fusion: weights alone mean the seed's weighted sum."""
        return self.fusion or ("blend" if self.weights is None else "weighted")


@dataclass(frozen=True)
class Scored:
    """A score for each candidate, and the parts it was made of, by explain key."""

    score: Floats
    parts: dict[str, Floats] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    nested: dict[str, dict[str, tuple[Floats, Floats]]] = field(default_factory=dict)

    def explain(self, index: int) -> dict[str, Any]:
        """Return how one candidate's score came about, rounded as the seed rounds."""
        told: dict[str, Any] = dict(self.constants)
        told |= {name: round(float(part[index]), 4) for name, part in self.parts.items()}
        for name, signals in self.nested.items():
            told[name] = {
                signal: {"rank": int(rank[index]), "contribution": round(float(part[index]), 6)}
                for signal, (rank, part) in signals.items()
            }
        told["score"] = round(float(self.score[index]), 6 if self.nested else 4)
        return told


def checked(how: Ranking) -> Ranking:
    """Refuse what cannot rank, and take a graph weight given alone into the weights."""
    if how.graph is not None:
        base = how.weights or HybridWeights()
        fusion = how.fusion or ("blend" if how.weights is None else "weighted")
        how = replace(how, weights=replace(base, graph=how.graph), fusion=fusion)
    if how.weights is not None:
        check_weights(how.weights)
    if how.expand is not None:
        if not isinstance(how.expand, ExpandSpec):
            raise InputError(
                f"expand must be an ExpandSpec, got {shown(how.expand)}.",
                hint="Make one with houkai.ExpandSpec(...).",
            )
        clean(ExpandSpec, vars(how.expand), prefix="expand.")
    return how


def score(
    pool: Pool,
    rank: Ranking,
    weights: HybridWeights,
    now: float,
    blended: Callable[[], Parts],
) -> Scored:
    """Score a pool as the ranking says; `blended` is asked only for the blend."""
    if rank.mode == "semantic":
        return semantic(pool, weights)
    by_fusion: dict[Fusion, Callable[[], Scored]] = {
        "blend": lambda: told(blended()),
        "weighted": lambda: weighted(pool, weights, now),
        "rrf": lambda: rrf(pool, weights, now),
    }
    return by_fusion[rank.resolved()]()


def semantic(pool: Pool, weights: HybridWeights) -> Scored:
    """Score by cosine, plus the seed's nudge for polarity."""
    cosine, polarity = _cosine(pool), weights.polarity_weight * pool.polarity
    return Scored(cosine + polarity, {"cosine": cosine, "polarity": polarity}, {"mode": "semantic"})


def told(parts: Parts) -> Scored:
    """Score by the blend, and name its parts."""
    return Scored(
        parts.total(),
        {name: part for name, part in vars(parts).items() if name != "dense"},
        {
            "mode": "hybrid",
            "fusion": "blend",
            "weights": {"cosine": round(parts.dense, 4), "lexical": round(1 - parts.dense, 4)},
        },
    )


def weighted(pool: Pool, weights: HybridWeights, now: float) -> Scored:
    """Score by the seed's weighted sum; without any lexical match its weight goes to the others."""
    used = renormalised(weights) if not pool.bm25.any() else weights
    parts = {
        "cosine": _cosine(pool),
        "lexical": pool.bm25 / pool.bm25.max(initial=1e-12),
        "recency": recency(pool, weights, now),
        "importance": pool.importance,
        "polarity": weights.polarity_weight * pool.polarity,
    }
    total = sum(
        (getattr(used, name) * parts[name] for name in CORE), start=parts["polarity"].copy()
    )
    constants = {
        "mode": "hybrid",
        "fusion": "weighted",
        "weights": {name: getattr(used, name) for name in CORE},
    }
    return Scored(total, parts, constants)


CORE: Final = ("cosine", "lexical", "recency", "importance")


def rrf(pool: Pool, weights: HybridWeights, now: float) -> Scored:
    """Score by reciprocal rank fusion, ranks from 0 [Cormack et al., SIGIR 2009]."""
    signals = {
        "cosine": _cosine(pool),
        "lexical": pool.bm25,
        "recency": recency(pool, weights, now),
        "importance": pool.importance,
    }
    nested: dict[str, tuple[Floats, Floats]] = {}
    for name, values in signals.items():
        weight = getattr(weights, name)
        if weight > 0:
            rank = ranks(values, signals["cosine"])
            nested[name] = (rank, weight / (RRF_K + rank))
    polarity = weights.polarity_weight * pool.polarity / (RRF_K + 1)
    total = sum((part for _, part in nested.values()), start=polarity.copy())
    return Scored(
        total,
        {"polarity": polarity},
        {"mode": "hybrid", "fusion": "rrf", "rrf_k": RRF_K},
        {"signals": nested},
    )


def seed(pool: Pool, scored: Scored) -> Floats:
    """Return what graph proximity spreads: the score, or the cosine where scores are ranks."""
    return _cosine(pool) if scored.nested else scored.score


def with_graph(scored: Scored, near: Floats, weight: float, pool: Pool) -> Scored:
    """Add graph proximity: its value times the weight, or one more ranked signal."""
    if scored.nested:
        rank = ranks(near, _cosine(pool))
        part = weight / (RRF_K + rank)
        signals = {**scored.nested["signals"], "graph": (rank, part)}
        return replace(scored, score=scored.score + part, nested={"signals": signals})
    constants = {**scored.constants, "weights": {**scored.constants["weights"], "graph": weight}}
    parts = {**scored.parts, "graph": near}
    return replace(scored, score=scored.score + weight * near, parts=parts, constants=constants)


def renormalised(weights: HybridWeights) -> HybridWeights:
    """Spread the lexical weight over the others, unless it is the only one."""
    others = weights.cosine + weights.recency + weights.importance
    if weights.lexical <= 0 or others <= 0:
        return weights
    scale = (others + weights.lexical) / others
    return HybridWeights(
        cosine=weights.cosine * scale,
        lexical=0.0,
        recency=weights.recency * scale,
        importance=weights.importance * scale,
        decay_rate=weights.decay_rate,
        polarity_weight=weights.polarity_weight,
        graph=weights.graph,
        recency_basis=weights.recency_basis,
    )


def recency(pool: Pool, weights: HybridWeights, now: float) -> Floats:
    """Return exp(-rate * age in days), by creation or by last access."""
    since = pool.created_at if weights.recency_basis == "created" else pool.accessed_at
    return np.exp(-weights.decay_rate * np.maximum(0.0, now - since) / DAY_S)


def ranks(values: Floats, cosine: Floats) -> Floats:
    """Return each value's place from 0, best first; ties go by cosine, as the seed's pool does."""
    order = np.lexsort((-cosine, -values))
    rank = np.empty(len(values), np.float64)
    rank[order] = np.arange(len(values))
    return rank


def spread(values: Floats) -> Floats:
    """Stretch values to 0..1 over the pool; all equal gives 0."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    return np.zeros_like(values) if high <= low else (values - low) / (high - low)


def _cosine(pool: Pool) -> Floats:
    return np.nan_to_num(pool.cosine, nan=0.0)
