"""A process is killed at random moments: what it was told is stored stays, nothing is half done."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from houkai import JournalEntry
from tests.durability.checks import Child, Say, assert_sound, opened
from tests.durability.deeds import digest, go_on
from tests.support import plain


def write_on(say: Say, path: Path, actor: str, seed: int) -> None:
    """Do one thing after the other until somebody ends it."""
    chance = random.Random(seed)
    with opened(path, actor=actor) as store:
        say("ready")
        while True:
            go_on(say, store, chance)


def killed(path: Path, actors: int, seed: int) -> list[tuple[str, list[Any]]]:
    """Let processes write, kill each at a moment of its own, and return what each had said."""
    chance = random.Random(seed)
    names = [f"writer {n}" for n in range(actors)]
    children = [Child(write_on, path, name, chance.random()) for name in names]
    for child in children:
        assert child.heard() == "ready"
    said = []
    for name, child in zip(names, children, strict=True):
        time.sleep(chance.uniform(0.0, 0.25))
        said.append((name, child.kill()))
    return said


def assert_kept(path: Path, actor: str, said: list[Any], before: int, *, alone: bool) -> None:
    """Fail if an acknowledged operation is not there, or the last one is there in part."""
    crashed = [one for one in said if "traceback" in one]
    assert not crashed, crashed[0]["traceback"]
    done = [one for one in said if "done" in one]
    newest = done[-1]["seq"] if done else before
    with opened(path) as store:
        log = [entry for entry in store.journal(None, actor=actor) if entry.operation > before]
        if newest > before:
            (entry,) = [one for one in log if one.operation == newest]
            if alone:
                assert digest(plain(store.state_at(entry.ts))) == done[-1]["holds"]
    if said and "about" in said[-1]:
        _assert_whole(said[-1], [entry for entry in log if entry.operation > newest], alone)


def _assert_whole(about: dict[str, Any], later: list[JournalEntry], alone: bool) -> None:
    """Fail if what was under way is there in part; of several transactions the first may be."""
    assert len(later) <= about["operations"], (about, later)
    if alone and about["changes"] is not None:
        numbers = [entry.changes for entry in later]
        least = 1 if about["operations"] > 1 else about["changes"]
        assert all(least <= number <= about["changes"] for number in numbers), (about, numbers)


def rounds(path: Path, count: int, seed: int) -> None:
    """Kill one writer, or two at different moments, again and again on one file."""
    with opened(path) as store:
        store.remember("the first memory chooses the model")
    deeds = 0
    for turn in range(count):
        with opened(path) as store:
            before = store.journal(1)[0].operation
        said = killed(path, 1 + turn % 2, seed * 1_000 + turn)
        assert_sound(path)
        for actor, lines in said:
            deeds += sum("done" in line for line in lines)
            assert_kept(path, actor, lines, before, alone=len(said) == 1)
    assert deeds > count, "the writers were killed before they did anything"


def test_a_killed_writer_loses_nothing_it_was_told_is_stored(path: Path) -> None:
    """A write that returned and is gone after kill -9 breaks the promise of this library."""
    rounds(path, 40, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(2, 7))
def test_many_killed_writers_lose_nothing(seed: int, path: Path) -> None:
    """Rare moments, such as a kill between two pages of a commit, need many tries to be met."""
    rounds(path, 40, seed)
