"""Memories that say the same share a vector; a warm store must not lose count of its rows."""

from __future__ import annotations

from houkai import MemoryStore
from houkai.search.dense import FLOOR
from houkai.search.resident import Resident
from houkai.testing import HashingEmbedder
from tests.conftest import DIM, Opener

FILLER = [f"filler number {number}" for number in range(FLOOR + 10)]
"""Enough that not every memory is scored from the file."""
WORDS = ("harbour", "violin", "glacier", "pepper", "lantern", "meadow")


def best(store: MemoryStore, word: str) -> str:
    """Return the text of the single best hit."""
    (hit,) = store.recall(word, k=1, overfetch=1, mode="semantic", touch=False)
    return hit[0].text


def test_a_repeated_text_alone_can_be_recalled(open_store: Opener) -> None:
    """A new memory whose vector is known already brought an empty array of vectors to join."""
    store = open_store()
    store.remember_many([*FILLER, "the harbour at dawn"])
    for _ in range(3):
        assert best(store, "harbour") == "the harbour at dawn"
        store.remember("the harbour at dawn")


def test_repeated_texts_do_not_shift_the_others(open_store: Opener) -> None:
    """Rows counted by distinct texts gave later memories the vectors of earlier ones."""
    store = open_store()
    store.remember_many([*FILLER, *["the harbour at dawn"] * 4])
    assert best(store, "harbour") == "the harbour at dawn"
    for word in WORDS:
        store.remember(f"{word} {word} {word}")
        assert best(store, word) == f"{word} {word} {word}"


def test_vectors_of_another_length_are_dropped(open_store: Opener) -> None:
    """An emptied file takes any model; its vectors do not join those of the last one."""
    store = open_store()
    store.remember_many([*FILLER, *WORDS])
    assert best(store, "violin") == "violin"
    sketches = store.sketches()
    assert isinstance(sketches, Resident)
    sketches._embeddings, sketches._vectors_of = [-1, -2], None
    sketches._vectors = HashingEmbedder(DIM // 2)(["one", "two"])
    assert best(store, "violin") == "violin"
