"""The measured blend: its parts add up, and more evidence never means a lower score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from houkai.search.blend import MEASURED, Evidence, blend, idf
from houkai.search.pool import Floats, Pool
from houkai.search.query import understand
from tests.search.pools import pool

TERMS = 3
QUERY = understand("alpha beta gamma")
shares = st.floats(0, 1, width=32)
WEIGHT = np.array([1.0, 2.0, 3.0])


@st.composite
def scenes(draw: Any) -> tuple[dict[str, Any], list[list[bool]]]:
    """Return columns of a pool of memories that do not stand beside each other, and their words."""
    count = draw(st.integers(1, 6))
    column = st.lists(shares, min_size=count, max_size=count)
    held = draw(st.lists(st.lists(st.booleans(), min_size=TERMS, max_size=TERMS),
                         min_size=count, max_size=count))  # fmt: skip
    columns = {
        "cosine": [2 * value - 1 for value in draw(column)],
        "bm25": [
            5 * value if any(row) else 0.0 for value, row in zip(draw(column), held, strict=True)
        ],
        "machine": [float(value > 0.5) for value in draw(column)],
        "named": [float(value > 0.5) for value in draw(column)],
        "length": [1 + 2_000 * value for value in draw(column)],
    }
    return columns, held


def totals(columns: dict[str, Any], held: list[list[bool]], common: Any = 0.0) -> Floats:
    """Return the blend's scores of a scene."""
    candidates: Pool = pool(**columns)
    likeness = np.broadcast_to(np.asarray(common, float), (len(candidates),))
    evidence = Evidence(np.array(held, bool), WEIGHT)
    return blend(QUERY, replace(candidates, common=likeness), evidence).total()


@given(scene=scenes())
def test_the_parts_add_up(scene: tuple[dict[str, Any], list[list[bool]]]) -> None:
    """An explanation that does not sum to the score explains nothing."""
    columns, held = scene
    evidence = Evidence(np.array(held, bool), WEIGHT)
    parts = blend(QUERY, pool(**columns), evidence)
    own = parts.dense * parts.cosine + (1 - parts.dense) * parts.lexical
    assert np.allclose(parts.total(), own + parts.neighbour + parts.voice + parts.time + parts.late)
    assert np.isfinite(parts.total()).all()
    assert parts.dense == MEASURED.dense


@settings(max_examples=200)
@given(scene=scenes(), pick=st.integers(0, 5), more=shares)
def test_more_meaning_or_words_never_hurt(
    scene: tuple[dict[str, Any], list[list[bool]]], pick: int, more: float
) -> None:
    """A memory that fits better must not fall behind where it was."""
    columns, held = scene
    at = pick % len(held)
    before = totals(columns, held)
    for name, ceiling in (("cosine", 1.0), ("bm25", 5.0), ("named", 1.0)):
        raised = {**columns, name: list(columns[name])}
        raised[name][at] += (ceiling - raised[name][at]) * more
        after = totals(raised, held)
        assert after[at] >= before[at] - 1e-9, name
        others = np.delete(after, at) - np.delete(before, at)
        assert np.allclose(others, 0), f"{name} of one memory changed another's score"
    lowered = {**columns, "machine": list(columns["machine"])}
    lowered["machine"][at] = 1.0
    assert totals(lowered, held)[at] <= before[at] + 1e-9


@given(scene=scenes(), pick=st.integers(0, 5), term=st.integers(0, TERMS - 1))
def test_holding_another_word_never_hurts(
    scene: tuple[dict[str, Any], list[list[bool]]], pick: int, term: int
) -> None:
    """Saying one more of the words asked for is one more reason."""
    columns, held = scene
    at = pick % len(held)
    richer = [list(row) for row in held]
    richer[at][term] = True
    assert totals(columns, richer)[at] >= totals(columns, held)[at] - 1e-9


@given(scene=scenes(), common=shares)
def test_being_like_everything_costs(
    scene: tuple[dict[str, Any], list[list[bool]]], common: float
) -> None:
    """A memory close to every question is close to none in particular."""
    columns, held = scene
    assert (totals(columns, held, common) <= totals(columns, held) + 1e-9).all()


def test_without_words_meaning_decides_alone() -> None:
    """A question of unknown words must not be diluted by zeros."""
    evidence = Evidence(np.zeros((2, TERMS), bool), np.zeros(TERMS))
    parts = blend(QUERY, pool(cosine=[0.9, 0.2]), evidence)
    assert parts.dense == 1.0
    assert np.allclose(parts.total(), [0.9, 0.2])


def test_a_foreign_script_leans_on_words() -> None:
    """The model reads English; a question in another script is looked up by its letters."""
    evidence = Evidence(np.ones((1, 1), bool), np.ones(1))
    candidates = pool(cosine=[0.5], bm25=[1.0])
    assert blend(understand("記憶の保存"), candidates, evidence).dense < 0.2
    assert blend(understand("memory"), candidates, evidence).dense == MEASURED.dense


def test_a_neighbour_in_the_same_source_lends() -> None:
    """An answer often stands beside the turn that names the subject."""
    beside = pool(cosine=[0.9, 0.3, 0.3], source=[1, 1, 2], position=[4, 5, 5])
    evidence = Evidence(np.zeros((3, 1), bool), np.zeros(1))
    scores = blend(QUERY, beside, evidence).total()
    assert scores[1] > scores[2]


def test_idf_is_fts5s() -> None:
    """ln((N - n + 0.5) / (n + 0.5)), never below 1e-6, nothing for unknown words."""
    weights = idf(100, np.array([0.0, 1.0, 10.0, 50.0, 100.0]))
    wanted = [0, np.log(99.5 / 1.5), np.log(90.5 / 10.5), 1e-6, 1e-6]
    assert np.allclose(weights, wanted)
