"""The seed's formulas, against values worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from houkai.model import HybridWeights
from houkai.search import ranking
from houkai.search.pool import Floats
from houkai.search.ranking import Ranking
from tests.search.pools import DAY, NOW, pool

W = HybridWeights()


def close(found: Floats, wanted: list[float]) -> bool:
    """Say whether scores are what was worked out."""
    return bool(np.allclose(found, wanted, rtol=0, atol=1e-12))


def test_the_defaults_are_the_seeds() -> None:
    """Changed defaults would change every score that a user has learnt to read."""
    assert (W.cosine, W.lexical, W.recency, W.importance) == (0.55, 0.20, 0.15, 0.10)
    assert (W.decay_rate, W.polarity_weight, W.graph, W.recency_basis) == (
        0.1,
        0.05,
        0.0,
        "created",
    )


def test_semantic_is_cosine_and_a_nudge() -> None:
    """Cosine + 0.05 * polarity."""
    scored = ranking.semantic(pool(cosine=[0.8, 0.5, np.nan], polarity=[-1, 1, 0]), W)
    assert close(scored.score, [0.75, 0.55, 0.0])
    assert scored.explain(0) == {
        "mode": "semantic", "cosine": 0.8, "polarity": -0.05, "score": 0.75,
    }  # fmt: skip


def test_weighted_is_the_seeds_sum() -> None:
    """0.55 cos + 0.20 bm25/max + 0.15 exp(-0.1 days) + 0.10 importance + 0.05 polarity."""
    scored = ranking.weighted(
        pool(
            cosine=[0.9, 0.4],
            bm25=[1.5, 6.0],
            created_at=[NOW, NOW - 10 * DAY],
            importance=[0.5, 1.0],
            polarity=[0, 1],
        ),
        W,
        NOW,
    )
    first = 0.55 * 0.9 + 0.20 * 0.25 + 0.15 * 1.0 + 0.10 * 0.5
    second = 0.55 * 0.4 + 0.20 * 1.0 + 0.15 * math.exp(-1) + 0.10 * 1.0 + 0.05
    assert close(scored.score, [first, second])
    told = scored.explain(0)
    assert told["lexical"] == 0.25
    assert told["recency"] == 1.0
    assert told["score"] == round(first, 4)
    assert told["weights"] == {
        "cosine": 0.55, "lexical": 0.2, "recency": 0.15, "importance": 0.1,
    }  # fmt: skip


def test_without_a_word_its_weight_goes_to_the_others() -> None:
    """0.20 spread over 0.55, 0.15 and 0.10, so that their sum is 1 again."""
    scored = ranking.weighted(pool(cosine=[0.8], importance=[0.25]), W, NOW)
    assert close(scored.score, [(0.55 * 0.8 + 0.15 * 1 + 0.10 * 0.25) / 0.8])
    spread = ranking.renormalised(W)
    assert spread.lexical == 0
    assert spread.cosine + spread.recency + spread.importance == pytest.approx(1)
    assert spread.cosine / spread.recency == pytest.approx(0.55 / 0.15)


@pytest.mark.parametrize("weights", [(0, 1, 0, 0), (0.5, 0, 0.5, 0)])
def test_what_cannot_be_spread_stays(weights: tuple[float, ...]) -> None:
    """With words alone, or without them, there is nothing to give away."""
    kept = HybridWeights(*weights)
    assert ranking.renormalised(kept) == kept


def test_recency_halves_as_promised_and_never_exceeds_one() -> None:
    """exp(-rate * days); what lies in the future is no fresher than now."""
    ages = pool(
        created_at=[NOW, NOW - 7 * DAY, NOW + DAY], accessed_at=[NOW - 3 * DAY, NOW, NOW - DAY]
    )
    assert close(ranking.recency(ages, W, NOW), [1, math.exp(-0.7), 1])
    by_access = HybridWeights(recency_basis="accessed", decay_rate=0.5)
    assert close(ranking.recency(ages, by_access, NOW), [math.exp(-1.5), 1, math.exp(-0.5)])


def test_rrf_sums_shares_of_ranks() -> None:
    """Sum of weight / (60 + rank), ranks from 0, plus 0.05 * polarity / 61."""
    scored = ranking.rrf(
        pool(
            cosine=[0.9, 0.5, 0.7],
            bm25=[0.0, 9.0, 3.0],
            created_at=[NOW - DAY, NOW, NOW - 2 * DAY],
            importance=[0.1, 0.2, 0.3],
            polarity=[0, 0, -1],
        ),
        W,
        NOW,
    )
    ranks = [(0, 2, 1, 2), (2, 0, 0, 1), (1, 1, 2, 0)]
    weights = (0.55, 0.20, 0.15, 0.10)
    wanted = [
        sum(weight / (60 + rank) for weight, rank in zip(weights, row, strict=True))
        for row in ranks
    ]
    wanted[2] -= 0.05 / 61
    assert close(scored.score, wanted)
    told = scored.explain(1)
    assert told["rrf_k"] == 60
    assert told["signals"]["cosine"] == {"rank": 2, "contribution": round(0.55 / 62, 6)}
    assert told["signals"]["lexical"] == {"rank": 0, "contribution": round(0.20 / 60, 6)}


def test_rrf_leaves_out_signals_without_weight() -> None:
    """A signal of weight 0 must not even be ranked."""
    only = HybridWeights(cosine=1, lexical=0, recency=0, importance=0)
    scored = ranking.rrf(pool(cosine=[0.1, 0.9]), only, NOW)
    assert close(scored.score, [1 / 61, 1 / 60])
    assert set(scored.nested["signals"]) == {"cosine"}


def test_ties_in_rank_go_by_cosine() -> None:
    """The seed's pool comes ordered by cosine, which decides among equals."""
    assert ranking.ranks(np.array([1.0, 1.0, 2.0]), np.array([0.1, 0.2, 0.0])).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("given", "fusion"),
    [
        ({}, "blend"),
        ({"weights": W}, "weighted"),
        ({"fusion": "rrf"}, "rrf"),
        ({"fusion": "rrf", "weights": W}, "rrf"),
        ({"fusion": "blend", "weights": W}, "blend"),
    ],
)
def test_which_fusion_is_meant(given: dict[str, Any], fusion: str) -> None:
    """Weights alone mean the seed's sum; a name always wins."""
    assert Ranking(**given).resolved() == fusion


def test_graph_adds_a_share_or_a_rank() -> None:
    """Weight times proximity for sums, one more ranked signal for rrf."""
    near = np.array([0.0, 1.0])
    candidates = pool(cosine=[0.9, 0.1])
    summed = ranking.with_graph(ranking.weighted(candidates, W, NOW), near, 0.5, candidates)
    plain = ranking.weighted(candidates, W, NOW)
    assert close(summed.score - plain.score, [0, 0.5])
    assert summed.explain(1)["weights"]["graph"] == 0.5
    fused = ranking.with_graph(ranking.rrf(candidates, W, NOW), near, 0.5, candidates)
    assert close(fused.score - ranking.rrf(candidates, W, NOW).score, [0.5 / 61, 0.5 / 60])
    assert set(fused.nested["signals"]) == {
        "cosine", "lexical", "recency", "importance", "graph",
    }  # fmt: skip


@pytest.mark.parametrize("size", [0, 1])
def test_small_pools_have_scores_too(size: int) -> None:
    """No candidate, or one, must not divide by zero."""
    few = pool(cosine=[0.5] * size)
    for scored in (
        ranking.semantic(few, W),
        ranking.weighted(few, W, NOW),
        ranking.rrf(few, W, NOW),
    ):
        assert len(scored.score) == size
        assert np.isfinite(scored.score).all()
