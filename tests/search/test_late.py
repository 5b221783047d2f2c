"""The second stage worked out by hand, and what holds of it for any tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from houkai.search.late import maxsim

EAST, NORTH, NORTHEAST, WEST = [127, 0], [0, 127], [90, 90], [-127, 0]


def tokens(*rows: list[int]) -> Any:
    """Return tokens of two dimensions."""
    return np.array(rows, np.int8).reshape(len(rows), 2)


def test_each_word_of_the_question_takes_its_best_match() -> None:
    """A mean over all pairs would rank by something else."""
    stored = tokens(EAST, WEST, NORTHEAST, NORTH)
    met = maxsim(tokens(EAST, NORTH), stored, np.array([2, 1, 0, 1]))
    by_hand = [(1 + 0) / 2, 90 / 127, 0, (0 + 1) / 2]
    assert met == pytest.approx(by_hand, abs=1e-6)


def test_what_points_away_takes_nothing_off() -> None:
    """The best 50 would fall behind candidates that the stage has not looked at."""
    assert maxsim(tokens(EAST), tokens(WEST), np.array([1])).tolist() == [0.0]


vectors = st.lists(st.integers(-127, 127), min_size=4, max_size=4)
texts = st.lists(st.lists(vectors, max_size=5), min_size=1, max_size=6)
questions = st.lists(vectors, min_size=1, max_size=4)


def met_by(question: list[list[int]], memories: list[list[list[int]]]) -> Any:
    """Return what `maxsim` says of memories given as lists of tokens."""
    stored = np.array([row for one in memories for row in one], np.int8).reshape(-1, 4)
    return maxsim(np.array(question, np.int8), stored, np.array([len(one) for one in memories]))


@given(question=questions, memories=texts, chance=st.randoms(use_true_random=False))
def test_no_order_matters(question: Any, memories: Any, chance: Any) -> None:
    """A memory is worth the same whoever stands beside it, however its words are ordered."""
    before = met_by(question, memories)
    order = list(range(len(memories)))
    chance.shuffle(order)
    shuffled = [chance.sample(memories[at], len(memories[at])) for at in order]
    after = met_by(chance.sample(question, len(question)), shuffled)
    assert after == pytest.approx(before[order], abs=1e-5)


@given(question=questions, memories=texts, more=vectors)
def test_another_word_never_hurts(question: Any, memories: Any, more: Any) -> None:
    """A longer memory that says the same must not fall."""
    met = met_by(question, memories)
    again = met_by(question, [[*one, more] if one else one for one in memories])
    assert (again >= met - 1e-6).all()
