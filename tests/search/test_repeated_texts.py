"""Memories that say the same share a vector; a warm store must not lose count of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from houkai import MemoryStore
from houkai.search.sketches import FLOOR
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


@pytest.mark.parametrize("how", ["purged", "pruned"])
def test_a_number_given_again_brings_its_new_vector(how: str, open_store: Opener) -> None:
    """SQLite gives a deleted row's number to the next; the copy in RAM must not keep the old."""
    store = open_store()
    store.remember_many([*FILLER, "the harbour at dawn"])
    last = store.remember("lantern lantern lantern")
    assert best(store, "lantern") == last.text
    assert best(store, "lantern") == last.text
    if how == "purged":
        store.trash(last.id)
        store.trash_purge(last.id)
    else:
        store.forget(last.id)
        store.prune_journal(keep_last=0)
    store.remember("violin violin violin")
    assert best(store, "violin") == "violin violin violin"


def test_an_emptied_file_takes_another_model(open_store: Opener, path: Path) -> None:
    """Vectors of another length do not join those of the last model."""
    with open_store(path) as store:
        store.remember_many([*FILLER, *WORDS])
        assert best(store, "violin") == "violin"
        assert best(store, "violin") == "violin"
        with open_store(path, embedder=HashingEmbedder(DIM // 2)) as other:
            store.nuke()
            other.reembed()
            other.remember_many([*FILLER, *WORDS])
            for _ in range(2):
                assert best(other, "violin") == "violin"
