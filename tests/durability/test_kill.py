"""A process is killed at random moments: what it was told is stored stays, nothing is half done."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from houkai import JournalEntry, MemoryStore
from tests.durability.checks import Child, Say, assert_alone, assert_sound, opened
from tests.durability.deeds import NAMES, digest, go_on
from tests.support import contents, plain

MOST_LINES = 7
"""By when a writer is killed; it says a line before and after each deed."""
DEED_S = 0.01
"""How long after a line: about as long as a deed takes."""


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
        # Counted in what it says, so that a slow machine kills as late in its work as a fast one.
        told = [child.heard() for _ in range(chance.randrange(MOST_LINES))]
        time.sleep(chance.uniform(0.0, DEED_S))
        said.append((name, told + child.kill()))
    return said


def assert_kept(
    store: MemoryStore, actor: str, said: list[Any], before: int, *, alone: bool
) -> None:
    """Fail if an acknowledged operation is not there, or the last one is there in part."""
    crashed = [one for one in said if "traceback" in one]
    assert not crashed, crashed[0]["traceback"]
    done = [one for one in said if "done" in one]
    newest = done[-1]["seq"] if done else before
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


def rounds(path: Path, count: int, seed: int) -> set[str]:
    """Kill one writer, or two at different moments, again and again on one file.

    Return what they were about. Every round must have kept what was told; everything that a doctor
    sees is looked at in every tenth, since damage stays.
    """
    with opened(path) as store:
        store.remember("the first memory chooses the model")
        before = 1
    lines: list[Any] = []
    for turn in range(count):
        said = killed(path, 2 if turn % 4 == 3 else 1, seed * 1_000 + turn)
        if turn % 10 == 9 or turn == count - 1:
            assert_sound(path)
        with opened(path) as store:
            assert contents(store) == plain(store.state_at("now")), "half of a change is there"
            for actor, told in said:
                assert_kept(store, actor, told, before, alone=len(said) == 1)
                lines += told
            before = store.journal(1)[0].operation
        assert_alone(path)
    assert sum("done" in line for line in lines) > count, "killed before they did anything"
    return {line["about"] for line in lines if "about" in line}


def test_a_killed_writer_loses_nothing_it_was_told_is_stored(path: Path) -> None:
    """A write that returned and is gone after kill -9 breaks the promise of this library."""
    assert NAMES - rounds(path, 200, seed=1) == set()


@pytest.mark.soak
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("seed", range(2, 7))
def test_many_killed_writers_lose_nothing(seed: int, path: Path) -> None:
    """Rare moments, such as a kill between two pages of a commit, need many tries to be met."""
    rounds(path, 200, seed)
