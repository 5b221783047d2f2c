"""The power fails: what full durability has acknowledged is there, and nothing is damaged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from houkai import MemoryStore, StorageError
from houkai.storage import database
from houkai.vocabulary import Durability
from tests.durability.checks import assert_sound, opened
from tests.durability.deeds import attempt, choose, digest
from tests.durability.faulty import Disk, after_power_loss, faulty
from tests.support import contents

CUTS = 12


def cut_often(path: Path, durability: Durability, seed: int, cuts: int) -> list[int]:
    """Write on; lose the power on a copy now and then; return how far each copy lagged behind.

    A copy's unsynced writes are lost, or stay in part and out of order, as on a real disk.
    """
    chance = random.Random(seed)
    lags = []
    with opened(path) as store:
        store.remember("the first memory chooses the model")
    with faulty() as disk:
        disk.unsynced = {}
        with opened(path, durability=durability) as store:
            known = [digest(contents(store))]
            for turn in range(cuts):
                for _ in range(chance.randrange(1, 6)):
                    _go_on(store, chance)
                    known.append(digest(contents(store)))
                if turn % 3 == 2:
                    store.db.settle()
                lags.append(_lag(disk, path, known, chance))
    return lags


def _go_on(store: MemoryStore, chance: random.Random) -> None:
    deed = choose(store, chance)
    while deed.operations > 1:  # of several transactions some may be kept
        deed = choose(store, chance)
    attempt(deed)


def _lag(disk: Disk, path: Path, known: list[str], chance: random.Random) -> int:
    """Return how many acknowledged states a power cut now would take."""
    copy = path.with_name("copy.db")
    after_power_loss(disk, path, copy, chance)
    held = digest(_checked(disk, copy))
    for left in path.parent.glob("copy.db*"):
        left.unlink()
    assert held in known, "the file holds a state that never was"
    return known[::-1].index(held)


def _checked(disk: Disk, copy: Path) -> dict[str, dict[str, object]]:
    unsynced, disk.unsynced = disk.unsynced, None
    try:
        return assert_sound(copy)
    finally:
        disk.unsynced = unsynced


@pytest.mark.parametrize("seed", range(3))
def test_full_durability_loses_nothing_to_a_power_cut(seed: int, path: Path) -> None:
    """An acknowledgement before the bytes have reached the disk is a lie to be found out."""
    assert set(cut_often(path, "full", seed, CUTS)) == {0}


@pytest.mark.parametrize("seed", range(3))
def test_normal_durability_loses_only_the_last_writes(seed: int, path: Path) -> None:
    """Writes may go, newest first; a state that never was, or damage, must not come of it."""
    lags = cut_often(path, "normal", seed, CUTS)
    assert max(lags) > 0, "the cuts took nothing, so the test tells nothing"


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(100, 110))
def test_full_durability_stands_many_cuts(seed: int, path: Path) -> None:
    """Few orders in which a disk may write pages are harmful, and few cuts find none."""
    assert set(cut_often(path, "full", seed, 10 * CUTS)) == {0}


def test_a_disk_that_lies_is_found_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cuts above must be able to tell a store that does not sync from one that does."""
    monkeypatch.setitem(database.SYNCHRONOUS, "full", 0)
    with pytest.raises((AssertionError, StorageError)):
        assert max(cut_often(path, "full", 1, CUTS)) == 0
