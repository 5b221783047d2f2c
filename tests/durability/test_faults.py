"""The disk fails at every point: the old state or the new, one sentence, and it goes on after."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from houkai import MemoryStore, StorageError
from tests.durability.checks import assert_sound, opened
from tests.durability.faulty import Disk, Fault, Kind, faulty

State = tuple[str, ...]
KINDS: tuple[Kind, ...] = ("write", "sync", "truncate")


def state(store: MemoryStore) -> State:
    """Return what a store holds, without the ids that chance gives."""
    return tuple(sorted(f"{m.text} {m.importance}" for m in store.list_recent(None)))


def without(held: State, *texts: str) -> State:
    """Return a state without some texts."""
    return tuple(line for line in held if line.rsplit(" ", 1)[0] not in texts)


def with_(held: State, *lines: str) -> State:
    """Return a state with some more lines."""
    return tuple(sorted((*held, *lines)))


Step = tuple[Callable[[MemoryStore], object], Callable[[State], State]]


def named(store: MemoryStore, text: str) -> str:
    """Return the id of the memory with a text."""
    return next(m.id for m in store.list_recent(None) if m.text == text)


STEPS: list[Step] = [
    (lambda s: s.remember("one"), lambda h: with_(h, "one 0.5")),
    (
        lambda s: s.remember_many(["two", "three", "four"]),
        lambda h: with_(h, "two 0.5", "three 0.5", "four 0.5"),
    ),
    (
        lambda s: s.edit(named(s, "kept"), importance=0.9),
        lambda h: with_(without(h, "kept"), "kept 0.9"),
    ),
    (lambda s: s.db.settle(), lambda h: h),
    (lambda s: s.forget(named(s, "lost")), lambda h: without(h, "lost")),
    (lambda s: s.undo_last(), lambda h: with_(h, "lost 0.5")),
]
"""What is done while the disk fails, and what each makes of the state."""


@pytest.fixture
def base(path: Path) -> Path:
    """Return a file with two memories, nothing beside it."""
    with opened(path) as store:
        store.remember_many(["kept", "lost"])
    return path


def seen(store: MemoryStore, disk: Disk) -> State:
    """Return what a store holds; where a reader must undo what was half written, once it can."""
    try:
        return state(store)
    except StorageError:  # a chore after the step met the fault
        if os.environ["HOUKAI_JOURNAL"] != "delete":
            raise
        disk.heal()
        return state(store)


def played(store: MemoryStore, held: State, disk: Disk) -> State:
    """Do all steps until one fails, which leaves the old state or the new. Return the last."""
    for step, made in STEPS:
        new, complaint = made(held), ""
        try:
            step(store)
        except StorageError as error:
            complaint = str(error)
            if os.environ["HOUKAI_JOURNAL"] == "delete":
                disk.heal()  # there a reader must undo what was half written, by writing
        found = seen(store, disk)
        assert found in ((held, new) if complaint else (new,))
        held = found
        if complaint:
            assert complaint.endswith(".")
            assert "\n" not in complaint
            return held
    return held


def calls_of(base: Path, copy: Path) -> dict[Kind, int]:
    """Return how many calls of each kind the steps make on a healthy disk."""
    shutil.copy(base, copy)
    with faulty() as disk, opened(copy) as store:
        played(store, state(store), disk)
        store.close()
        return {kind: disk.calls[kind] for kind in KINDS}


def survive(base: Path, copy: Path, fault: Fault) -> None:
    """Run the steps with a fault, heal the disk, write once more, and check the file."""
    shutil.copy(base, copy)
    with faulty() as disk:
        disk.fault = fault
        try:
            store = opened(copy)
        except StorageError:
            disk.heal()  # the opening itself met the fault
            store = opened(copy)
        held = played(store, state(store), disk)
        if not disk.met:
            store.close()
            disk.heal()
            store = opened(copy)
        disk.heal()
        store.remember("healed")
        store.close()
    with opened(copy) as store:
        assert state(store) == with_(held, "healed 0.5")
    assert_sound(copy)


def sweep(base: Path, tmp_path: Path, step: dict[Kind, int]) -> None:
    """Try a fault at many points, passing and lasting."""
    calls = calls_of(base, tmp_path / "count.db")
    assert calls["write"] > 60
    assert calls["sync"] > 6
    for kind in KINDS:
        for at in range(1, calls[kind] + 1, step[kind]):
            for stays in (False, True):
                copy = tmp_path / f"{kind}-{at}-{stays}.db"
                survive(base, copy, Fault(kind, at, stays))
                copy.unlink()


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_failing_disk_leaves_the_old_state_or_the_new(
    journal: str, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that fails half way must not be there in part, nor spoil what comes after."""
    monkeypatch.setenv("HOUKAI_JOURNAL", journal)
    sweep(base, tmp_path, {"write": 29, "sync": 7, "truncate": 2})


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_disk_that_fails_at_any_point_leaves_the_old_state_or_the_new(
    journal: str, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one point that was left out is the one that some disk will fail at."""
    monkeypatch.setenv("HOUKAI_JOURNAL", journal)
    sweep(base, tmp_path, {"write": 1, "sync": 1, "truncate": 1})
