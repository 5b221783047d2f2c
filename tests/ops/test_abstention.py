"""Recall says when nothing is relevant, and a pack then stays empty; told of at every door."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from houkai import HybridWeights, InputError, MemoryStore
from houkai.doors import wire
from houkai.embed import default
from houkai.notes import listening
from houkai.ops.table import OPERATIONS
from houkai.search.relevance import relevance
from tests.conftest import Opener

KNOWN = [
    "Anna is allergic to peanuts and carries an adrenaline pen",
    "The deployment runs on Fridays at noon from the release branch",
    "Ben takes over on-call from June",
    "The kitchen was painted green in April",
]
OFF_TOPIC = "What is the boiling point of tungsten hexafluoride?"
RECALL = next(one for one in OPERATIONS if one.name == "recall")


@pytest.fixture
def known() -> Iterator[MemoryStore]:
    """Return a store with the bundled model that knows a few things of daily life."""
    with MemoryStore(":memory:", embedder=default()) as store:
        store.remember_many(KNOWN)
        yield store


def test_a_pack_stays_empty_where_nothing_is_relevant(known: MemoryStore) -> None:
    """A prompt filled with unrelated memories misleads the agent that reads it."""
    pack = known.recall_pack(OFF_TOPIC)
    assert (len(pack), pack.near_misses) == (0, len(KNOWN))
    assert KNOWN[0] not in pack.text
    context = known.auto_context_pack(OFF_TOPIC)
    assert (len(context), context.near_misses) == (0, len(KNOWN))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("what must Anna not eat?", 0),
        ("which snacks would make somebody ill?", 0),
        ("when do we ship?", 1),
        ("on-call in summer", 2),
        ("what colour are the walls?", 3),
    ],
)
def test_a_pack_answers_what_is_known(question: str, answer: int, known: MemoryStore) -> None:
    """An answer in other words than the question's shares only its meaning, and must be given."""
    pack = known.recall_pack(question)
    assert pack.items[0].memory.text == KNOWN[answer]
    assert pack.near_misses == 0


def test_a_pack_may_take_what_there_is(known: MemoryStore) -> None:
    """Whoever wants the nearest whatever it is turns the measure off."""
    assert len(known.recall_pack(OFF_TOPIC, min_relevance=0)) == len(KNOWN)


def test_recall_answers_unless_asked_to_judge(known: MemoryStore) -> None:
    """A plain recall keeps the peer's promise of k memories."""
    plain = known.recall(OFF_TOPIC, touch=False)
    assert len(plain) == len(KNOWN)
    assert (plain.relevance, plain.near_misses, plain.best_score) == (None, 0, None)
    judged = known.recall(OFF_TOPIC, min_relevance=0.4, touch=False)
    assert judged == []
    assert judged.near_misses == len(KNOWN)
    assert judged.best_score == pytest.approx(plain[0].score)
    assert judged.relevance is not None
    assert judged.relevance < 0.4
    sure = known.recall("what must Anna not eat?", min_relevance=0.4, touch=False)
    assert sure.relevance is not None
    assert sure.relevance > 0.4
    assert len(sure) == len(KNOWN)


@pytest.mark.parametrize("mode", [{"mode": "semantic"}, {"fusion": "rrf"},
                                  {"weights": HybridWeights()}])  # fmt: skip
def test_every_ranking_can_be_judged(mode: dict[str, object], known: MemoryStore) -> None:
    """The measure goes by cosine and words, whatever the scores stand for."""
    assert known.recall(OFF_TOPIC, min_relevance=0.4, touch=False, **mode) == []
    assert known.recall("Anna and peanuts", min_relevance=0.4, touch=False, **mode)


def test_what_is_held_back_is_not_touched(known: MemoryStore) -> None:
    """A memory that nobody was shown was not accessed."""
    known.recall(OFF_TOPIC, min_relevance=1.9)
    assert all(memory.access_count == 0 for memory in known.list_recent())


def test_doors_tell_of_near_misses(known: MemoryStore) -> None:
    """An agent that gets an empty list must not believe the store empty."""
    with listening() as notes:
        answer = wire.call(RECALL, known, {"query": OFF_TOPIC, "min_relevance": 0.4})
    assert answer == {"result": []}
    (note,) = notes
    assert note.startswith("Nothing relevant: 4 near misses, the best at 0.")


def test_one_angle_that_misses_is_no_news(known: MemoryStore) -> None:
    """A task is looked at from several sides; that one finds nothing must not contradict a pack."""
    with listening() as notes:
        pack = known.auto_context_pack("Anna and peanuts, or tungsten hexafluoride", max_phrases=5)
    assert pack.items
    assert (pack.near_misses, notes) == (0, [])
    with listening() as notes:
        assert known.auto_context_pack(OFF_TOPIC).near_misses == len(KNOWN)
    assert len(notes) == 1


def test_other_models_are_not_judged_by_default(open_store: Opener) -> None:
    """Cosines of another model lie elsewhere; a threshold made for one refuses all of the other."""
    store = open_store()
    store.remember_many(KNOWN)
    assert len(store.recall_pack("tungsten")) == len(KNOWN)


@pytest.mark.parametrize("value", [-0.1, 2.1, float("nan"), "much"])
def test_a_measure_out_of_range_is_refused(value: object, known: MemoryStore) -> None:
    """A typing error must not become silence about everything."""
    with pytest.raises(InputError, match="min_relevance"):
        known.recall("x", min_relevance=value)  # type: ignore[call-overload]


@given(
    foreign=st.floats(0, 1),
    best=st.floats(0, 1),
    held=st.lists(st.booleans(), min_size=3, max_size=3),
    weight=st.lists(st.floats(0.1, 10), min_size=3, max_size=3),
)
def test_more_evidence_never_lowers_relevance(
    foreign: float, best: float, held: list[bool], weight: list[float]
) -> None:
    """A question that is answered better must not be refused sooner."""
    rows, weights = np.array([held]), np.array(weight)
    found = relevance(foreign, best, rows, weights)
    assert 0 <= found <= 2
    assert relevance(foreign, min(1.0, best + 0.1), rows, weights) >= found - 1e-9
    assert relevance(foreign, best, np.ones((1, 3), bool), weights) >= found - 1e-9


def test_relevance_by_hand() -> None:
    """0.5 of cosine and one word of two, which weigh the same: 0.5 + 0.5 * 0.5."""
    weight = np.ones(2)
    assert relevance(0.0, 0.5, np.array([[True, False]]), weight) == pytest.approx(0.75)
    assert relevance(1.0, 0.5, np.array([[True, False]]), weight) == pytest.approx(0.75)
    assert relevance(0.0, 0.5, np.zeros((0, 2), bool), weight) == pytest.approx(0.5)
