"""The copy in RAM: patched from the journal it must be what it would be if read anew."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from houkai import MemoryStore
from houkai.search import copies, resident
from houkai.search import facts as all_facts
from houkai.search.centre import Centres
from houkai.search.in_file import InFile
from houkai.search.resident import HeldView, Resident
from houkai.search.state import At
from houkai.storage.eligible import Filter
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
                vectors = held.held(patched, patched.copy.embedding)[0]
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


def test_an_older_snapshot_has_nothing_read_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of threads that recall while others write, some come late; each would read all memories."""
    held, whole = Resident(), list[At]()
    monkeypatch.setattr(resident, "read", lambda c, at: (whole.append(at), copies.read(c, at))[1])
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store, ExitStack() as open:
        snapshots = []
        for turn, step in enumerate(["several", *STEPS]):
            act(store, step, turn)
            snapshots.append(open.enter_context(store.read()))
            if turn % 3 == 0:
                held.at(snapshots[-1])
        before = len(whole)
        for connection in [*reversed(snapshots), *snapshots]:
            view = held.at(connection)
            with monkeypatch.context() as uncounted:
                uncounted.setattr(resident, "read", copies.read)
                assert told(view) == told(Resident().at(connection))
        assert len(whole) == before == 1


def test_a_file_that_was_restored_is_read_anew(path: Path, tmp_path: Path) -> None:
    """Its operations have the same numbers as those that it lost, and its vectors too."""
    held, embedder = Resident(), HashingEmbedder(64)
    with MemoryStore(path, embedder=embedder) as store:
        store.remember_many([f"note {n}" for n in range(5)])
        backup = apsw.Connection(str(tmp_path / "backup.db"))
        live = apsw.Connection(str(path))
        for target, source in ((backup, live), (live, backup)):
            with target.backup("main", source, "main") as copying:
                copying.step()
            text = "lost" if target is backup else "written instead"
            store.remember(text)
            with store.read() as connection:
                view, fresh = held.at(connection), Resident().at(connection)
                assert told(view) == told(fresh)
                numbers = view.copy.embedding
                assert np.array_equal(view.vectors(numbers), fresh.vectors(numbers))
        backup.close()
        live.close()


@pytest.mark.parametrize("looked_before", [False, True])
def test_a_restored_file_may_have_come_less_far(
    path: Path, tmp_path: Path, looked_before: bool
) -> None:
    """It looks like a snapshot from before the last look, but its vectors are others."""
    held, centres, where = Resident(), Centres(), Filter("default", 0.0)
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:

        def look() -> None:
            with store.read() as connection:
                view, fresh = held.at(connection), Resident().at(connection)
                assert told(view) == told(fresh)
                numbers = view.copy.embedding
                assert np.array_equal(view.vectors(numbers), fresh.vectors(numbers))
                mean, true = centres.of(view, where), Centres().of(fresh, where)
                assert mean is not None
                assert true is not None
                assert np.allclose(mean, true)

        store.remember_many([f"note {n}" for n in range(5)])
        if looked_before:
            look()
        backup, live = apsw.Connection(str(tmp_path / "backup.db")), apsw.Connection(str(path))
        with backup.backup("main", live, "main") as copying:
            copying.step()
        for n in range(3):
            store.remember(f"lost {n}")
        look()
        with live.backup("main", backup, "main") as copying:
            copying.step()
        for n in range(5):
            store.remember(f"written instead {n}")
            if n != 2 or looked_before:
                look()
        backup.close()
        live.close()


def test_means_of_a_restored_file(path: Path, tmp_path: Path) -> None:
    """As many vectors of the same numbers have another mean once the file was restored."""
    centres, where = Centres(), Filter("default", 0.0)
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
        store.remember_many([f"note {n}" for n in range(3)])
        backup, live = apsw.Connection(str(tmp_path / "backup.db")), apsw.Connection(str(path))
        for target, source in ((backup, live), (live, backup)):
            with target.backup("main", source, "main") as copying:
                copying.step()
            store.remember("lost" if target is backup else "written instead")
            with store.read() as connection:
                view = InFile().at(connection)
                mean, true = centres.of(view, where), Centres().of(view, where)
            assert mean is not None
            assert true is not None
            assert np.allclose(mean, true)
        backup.close()
        live.close()


def test_what_nobody_says_any_more_is_not_held_for_ever(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that stays would hold the vectors of every text that a memory ever had."""
    monkeypatch.setattr(resident, "WHOLE", 20)
    monkeypatch.setattr(resident, "_STALE", 20)
    held = Resident()
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
        one = store.remember("the first")
        for turn in range(100):
            store.edit(one.id, text=f"reworded {turn}", source=f"from {turn}")
            with store.read() as connection:
                view = held.at(connection)
                view.vectors(view.copy.embedding)
        assert held._shelf.count <= 41
        assert len(view.copy.facts.labels) <= 30


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
