"""The disk fills up: said once, everything readable, and writing goes on when space returns."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest

from houkai import Full, MemoryStore
from tests.durability.checks import assert_sound, opened
from tests.durability.faulty import faulty
from tests.support import caught_up, contents

POINTS = 50
NEWS = [f"news {n} that needs space of its own: {'filling ' * 60}" for n in range(40)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a few memories, closed."""
    path = tmp_path_factory.mktemp("full") / "memory.db"
    with opened(path) as store:
        store.remember_many([f"old memory {n}" for n in range(10)])
    return path


def fill(store: MemoryStore) -> list[str]:
    """Write until the disk is full; return what was acknowledged."""
    there: list[str] = []
    for text in NEWS:
        try:
            there.append(store.remember(text).id)
        except Full as error:
            complaint = error
            break
        if len(there) == 6:
            store.db.settle()
    assert str(complaint) == "The disk is full, so nothing was written."
    assert complaint.hint
    return there


@pytest.mark.parametrize("point", range(POINTS))
def test_a_full_disk_costs_nothing_that_was_stored(
    point: int, base: Path, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that fills up at any byte must not take a memory or the use of the store."""
    shutil.copy(base, path)
    with faulty() as disk, opened(path) as store:
        disk.room = 500 + point * 4_003
        before = contents(store)
        acknowledged = fill(store)
        assert set(contents(store)) == {*before, *acknowledged}
        assert store.recall("old memory", k=3, touch=False)
        with pytest.raises(Full):
            store.remember_many(NEWS)
        assert set(contents(store)) == {*before, *acknowledged}
        disk.heal()
        acknowledged.append(store.remember("there is space again").id)
    assert set(assert_sound(path)) == {*before, *acknowledged}
    assert not [one for one in caplog.records if one.levelno > logging.WARNING]


@pytest.mark.parametrize("point", range(0, POINTS, 7))
def test_closing_on_a_full_disk_keeps_the_log(point: int, base: Path, path: Path) -> None:
    """A log that could not be folded in at the end is the only place where the last writes are."""
    shutil.copy(base, path)
    with faulty() as disk:
        store = opened(path)
        disk.room = 500 + point * 4_003
        before = contents(store)
        acknowledged = fill(store)
        store.close()
    assert set(assert_sound(path)) == {*before, *acknowledged}


def test_half_a_page_at_the_end_is_mended_by_the_log(base: Path, path: Path) -> None:
    """A disk that fills up while the log is folded in must not make the file look cut off."""
    shutil.copy(base, path)
    with faulty() as disk:
        store = opened(path)
        store.remember_many(NEWS)
        caught_up(store)
        disk.room = 100
        store.db.settle()
        store.close()
    assert path.stat().st_size % 4_096 == 100
    assert len(assert_sound(path)) == 10 + len(NEWS)


def test_a_limit_on_pages_is_a_full_disk_too(path: Path) -> None:
    """SQLite's own limit is met in the middle of a transaction; a batch must go or stay whole."""
    with opened(path) as store:
        store.remember("first")
        store.db.write(lambda c: c.pragma("max_page_count", c.pragma("page_count") + 2))
        held = contents(store)
        with pytest.raises(Full):
            store.remember_many(NEWS)
        assert contents(store) == held
        store.db.write(lambda c: c.pragma("max_page_count", 1 << 30))
        assert len(store.remember_many(NEWS)) == len(NEWS)
    assert_sound(path)
