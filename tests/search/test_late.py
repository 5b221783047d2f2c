"""The second stage worked out by hand, and what holds of it for any tokens."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from houkai.embed.port import Question
from houkai.search.late import Weighed, maxsim, weighed
from houkai.search.query import understand

EAST, NORTH, NORTHEAST, WEST = [127, 0], [0, 127], [90, 90], [-127, 0]


def tokens(*rows: list[int]) -> Any:
    """Return tokens of two dimensions."""
    return np.array(rows, np.int8).reshape(len(rows), 2)


def asked(*rows: list[int], weight: list[float]) -> Weighed:
    """Return a question's tokens with their weights."""
    return Weighed(tokens(*rows), np.array(weight))


def test_each_word_of_the_question_takes_its_best_match() -> None:
    """A mean over all pairs, or a lost weight, would rank by something else."""
    stored = tokens(EAST, WEST, NORTHEAST, NORTH)
    met = maxsim(asked(EAST, NORTH, weight=[3.0, 1.0]), stored, np.array([2, 1, 0, 1]))
    diagonal = 90 / 127
    by_hand = [(3 * 1 + 0) / 4, diagonal, 0, 1 / 4]
    assert met == pytest.approx(by_hand, abs=1e-6)


def test_what_points_away_takes_nothing_off() -> None:
    """The best 50 would fall behind candidates that the stage has not looked at."""
    assert maxsim(asked(EAST, weight=[1.0]), tokens(WEST), np.array([1])).tolist() == [0.0]


vectors = st.lists(st.integers(-127, 127), min_size=4, max_size=4)
texts = st.lists(st.lists(vectors, max_size=5), min_size=1, max_size=6)
questions = st.lists(st.tuples(vectors, st.floats(0.1, 9)), min_size=1, max_size=4)


def met_by(question: list[tuple[list[int], float]], memories: list[list[list[int]]]) -> Any:
    """Return what `maxsim` says of memories given as lists of tokens."""
    stored = np.array([row for one in memories for row in one], np.int8).reshape(-1, 4)
    rows, weight = zip(*question, strict=True)
    counts = np.array([len(one) for one in memories])
    return maxsim(Weighed(np.array(rows, np.int8), np.array(weight)), stored, counts)


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


def test_words_weigh_by_how_rare_they_are() -> None:
    """Every piece of a name counts as the name, and a word that nobody has said counts most."""
    text = "Where does Anna's cat-sitter live?"
    spans = [(11, 15), (18, 21), (22, 25), (25, 28), (29, 33)]
    meant = Question(np.zeros(2, np.float32), np.zeros((5, 2), np.int8), spans)
    query = understand(text)
    assert [term.text for term in query.terms] == ["anna", "cat", "sitter", "live", "catsitter"]
    found = weighed(query, meant, np.array([2.0, 1.0, 0.0, 3.0, 0.0]), size=100)
    assert found is not None
    anna, cat, rarest, live = (
        math.log1p(math.exp(2)),
        math.log1p(math.exp(1)),
        math.log1p(201),
        math.log1p(math.exp(3)),
    )
    assert found.weight == pytest.approx([anna, cat, rarest, rarest, live])
    assert rarest > live


@pytest.mark.parametrize("tokens_of", [None, np.zeros((0, 2), np.int8)], ids=["none", "empty"])
def test_without_tokens_there_is_no_second_stage(tokens_of: Any) -> None:
    """A question of nothing but stop words would divide by no weight."""
    meant = Question(np.zeros(2, np.float32), tokens_of)
    assert weighed(understand("who is it"), meant, np.ones(3), 10) is None
    assert weighed(understand("who is it"), None, np.ones(3), 10) is None
