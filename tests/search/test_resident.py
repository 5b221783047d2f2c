"""The copy in RAM: patched from the journal it must be what it would be if read anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from houkai import MemoryStore
from houkai.search import facts as all_facts
from houkai.search.resident import HeldView, Resident
from houkai.testing import HashingEmbedder

STEPS = [
    *("remember", "several", "again", "reword", "reweigh", "retag", "supersede", "forget", "undo"),
    *("move", "nothing"),
]


def act(store: MemoryStore, step: str, turn: int) -> None:
    """Change the store in one way."""
    known = store.list_recent(None)
    one = known[turn % len(known)] if known else store.remember("the first")
    if step == "remember":
        store.remember(f"fact {turn}", source=f"s{turn % 3}", author=["ada", None][turn % 2])
    elif step == "several":
        store.remember_many([{"text": f"note {turn} {n}", "importance": 0.1} for n in range(4)])
    elif step == "again":
        store.remember(one.text)
    elif step == "reword":
        store.edit(one.id, text=f"reworded {turn}")
    elif step == "reweigh":
        store.edit(one.id, importance=0.9, author="grace", valid_until=2e9)
    elif step == "retag":
        store.edit(one.id, tags=["x"])
    elif step == "supersede":
        store.supersede(one.id, store.remember(f"newer {turn}").id)
    elif step == "forget":
        store.forget(one.id)
    elif step == "undo":
        store.undo_last()
    elif step == "move":
        store.as_actor("other").remember(f"elsewhere {turn}")


def told(view: HeldView) -> dict[str, Any]:
    """Return all that a copy says, its codes as texts."""
    copy, texts = view.copy, view.copy.facts.labels.texts
    found = {name: getattr(copy.facts, name).tolist() for name in all_facts._ARRAYS}
    for name in ("source", "author"):
        found[name] = [texts[code] for code in found[name]]
    found |= {"windows": copy.pk.tolist(), "embedding": copy.embedding.tolist()}
    return {name: str(value) for name, value in found.items()} | {"bits": copy.bits.tobytes()}


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=14))
def test_a_patched_copy_is_what_is_read_anew(steps: list[str]) -> None:
    """What patching forgets is wrong in every process that stays, and right in every test that
    opens the file.
    """
    held = Resident()
    with MemoryStore(":memory:", embedder=HashingEmbedder(64)) as store:
        for turn, step in enumerate(steps):
            act(store, step, turn)
            with store.read() as connection:
                patched, fresh = held.at(connection), Resident().at(connection)
                assert told(patched) == told(fresh)
                vectors = held.held(connection, patched.copy, patched.copy.embedding)[0]
                assert np.array_equal(vectors, fresh.vectors(fresh.copy.embedding))


@pytest.mark.parametrize("journaled", [True, False])
def test_what_a_pruning_dropped_is_not_missed(path: Path, journaled: bool) -> None:
    """A copy patched by the changes that are left would keep what is in the trash, or never see
    what came without an image.
    """
    embedder = HashingEmbedder(64)
    with (
        MemoryStore(path, embedder=embedder) as store,
        MemoryStore(path, embedder=embedder, journal_enabled=journaled) as other,
    ):
        gone = store.remember("the first note")
        store.remember("the second note")
        for _ in range(2):
            assert len(store.recall("note")) == 2
        other.trash(gone.id)
        later = other.remember("the third note")
        other.prune_journal(keep_last=0)
        found = {hit.memory.id for hit in store.recall("the first note", 2, mode="semantic")}
        assert len(found) == 2
        assert later.id in found


def test_an_earlier_copy_stays_as_it_was() -> None:
    """A recall that has begun goes on with its own state while another one patches."""
    held = Resident()
    with MemoryStore(":memory:", embedder=HashingEmbedder(64)) as store:
        store.remember_many([f"note {n}" for n in range(5)])
        with store.read() as connection:
            before = held.at(connection)
            was = told(before)
        for step in ("remember", "reword", "forget"):
            act(store, step, 3)
            with store.read() as connection:
                held.at(connection)
        assert told(before) == was


def test_a_text_has_one_number() -> None:
    """Two numbers for one source would tear it in two, for every later recall."""
    labels = all_facts.Labels()
    first = [labels[text] for text in ("a", "b", None, "a")]
    assert first == [labels["a"], labels["b"], all_facts.NOBODY, labels["a"]]
    assert len({labels["a"], labels["b"], labels[None]}) == 3
    assert [labels.texts[code] for code in first] == ["a", "b", None, "a"]


def test_nothing_is_read_of_nothing() -> None:
    """An empty file has an empty copy, whatever is asked of it."""
    none = np.empty(0, np.int64)
    assert len(all_facts.of(apsw.Connection(":memory:"), all_facts.Labels(), "memory", none)) == 0
