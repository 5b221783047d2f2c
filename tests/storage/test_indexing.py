"""New memories enter the search table once it is quiet; whoever searches before misses nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from houkai import MemoryStore
from houkai.search import in_file
from houkai.storage import indexing
from houkai.testing import HashingEmbedder
from tests.agreement import disagreements
from tests.conftest import DIM, Opener
from tests.ops.changing import rows
from tests.support import caught_up, run, texts

TEXTS = [f"note {number} about subject{number}" for number in range(40)]


def entered(store: MemoryStore) -> int:
    """Return how many sketches the search table holds."""
    ((count,),) = rows(store, "select count(*) from memory_vec")
    return int(count)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have sketches asked though the file is small, and entered in small portions."""
    monkeypatch.setattr(in_file, "EXACT", 5)
    monkeypatch.setattr(indexing, "SLICE", 7)
    return


def found(store: MemoryStore, text: str) -> str:
    """Return the best hit of a recall that asks the file and not a copy in RAM."""
    store._derived.clear()
    (hit,) = store.recall(text, 1, mode="semantic", touch=False, overfetch=1)
    return hit.memory.text


@pytest.mark.usefixtures("few")
def test_what_was_put_off_is_found(open_store: Opener) -> None:
    """A memory must be recalled by the process that starts right after it was stored."""
    store = open_store()
    store.remember_many(TEXTS[:20])
    caught_up(store)
    later = [store.remember(text).id for text in TEXTS[20:]]
    assert entered(store) == 20
    for text in TEXTS[::3]:
        assert found(store, text) == text
    store.forget(later[3])
    store.edit(later[4], text="quite another thing altogether")
    assert found(store, "quite another thing altogether") == "quite another thing altogether"
    assert disagreements(store) == []


@pytest.mark.usefixtures("few")
def test_a_quiet_moment_enters_everything_once(open_store: Opener) -> None:
    """What stays out makes every cold recall slower, what is in twice is found twice."""
    store = open_store()
    store.remember_many(TEXTS)
    store.edit(store.list_recent(1)[0].id, text="edited before it was entered")
    assert entered(store) == 1
    store.db.settle()
    assert entered(store) == len(TEXTS)
    assert rows(store, "select 1 from meta where key = 'deferred'") == []
    assert disagreements(store) == []
    store.db.settle()
    assert entered(store) == len(TEXTS)


@pytest.mark.usefixtures("few")
def test_closing_enters_everything(open_store: Opener, path: Path) -> None:
    """A command that stores one memory and ends has no quiet moment."""
    with open_store(path) as store:
        store.remember_many(TEXTS)
    with open_store(path) as store:
        assert entered(store) == len(TEXTS)


def test_a_number_that_comes_again_is_put_off_too(open_store: Opener) -> None:
    """SQLite gives the number of a deleted newest row again, below where the lag began."""
    store = open_store()
    made = store.remember_many(TEXTS[:6])
    caught_up(store)
    last = store.remember("seventh")
    for memory in (*made[3:], last):
        store.forget(memory.id)
    again = [store.remember(text) for text in ("eighth", "ninth")]
    caught_up(store)
    assert entered(store) == 5
    assert disagreements(store) == []
    assert set(texts(store.list_recent(None))) == {*TEXTS[:3], *(one.text for one in again)}


@pytest.mark.usefixtures("few")
def test_entering_stops_when_somebody_may_be_waiting(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large import leaves seconds of work, and the next write would wait for all of it."""
    store = open_store()
    store.remember_many(TEXTS)
    before = entered(store)
    ticks = count(0.0, 0.4 * indexing.PATIENCE_S)
    monkeypatch.setattr(indexing, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    store.db.settle()
    assert entered(store) == before + 2 * indexing.SLICE


def test_a_busy_file_is_entered_another_time(path: Path, open_store: Opener) -> None:
    """Derived data must never make anybody wait, nor an error of somebody's lock."""
    with open_store(path) as store, open_store(path) as rival:
        store.remember_many(TEXTS[:5])
        with rival.db._readers.lend() as held:
            held.execute("pragma query_only = off; begin immediate")
            store.db.settle()
            held.execute("rollback")
        assert entered(store) == 0
        store.db.settle()
        assert entered(store) == 5


def test_a_killed_process_leaves_a_file_that_says_so(path: Path) -> None:
    """The next process finds what was put off, enters it, and a doctor finds nothing wrong."""
    run(
        """
import os, sys
from houkai import MemoryStore
from houkai.testing import HashingEmbedder
store = MemoryStore(sys.argv[1], embedder=HashingEmbedder(int(sys.argv[2])))
store.remember_many([f"note {n}" for n in range(9)])
os._exit(0)
""",
        str(path),
        str(DIM),
    )
    with MemoryStore(path, embedder=HashingEmbedder(DIM)) as store:
        assert entered(store) == 0
        assert disagreements(store) == []
        store.remember("one more")
    with MemoryStore(path, embedder=HashingEmbedder(DIM)) as store:
        assert entered(store) == 10


def test_a_bulk_load_enters_what_it_writes(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that only loads has no quiet moment, and those that only read enter nothing: each
    of their recalls would compare all of it row by row.
    """
    monkeypatch.setattr(indexing, "BACKLOG", 30)
    monkeypatch.setattr("houkai.storage.wal.FOLD_PAGES", 1)
    store = open_store()
    for part in range(6):
        store.remember_many([f"{text} in part {part}" for text in TEXTS])
    assert entered(store) >= 6 * len(TEXTS) - 30 - len(TEXTS)
    assert disagreements(store) == []


def test_a_short_backlog_is_left_to_a_quiet_moment(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vec0 takes longer than the write itself, which a caller need not wait for."""
    monkeypatch.setattr("houkai.storage.wal.FOLD_PAGES", 1)
    monkeypatch.setattr("houkai.storage.writer.QUIET_S", 60.0)
    store = open_store()
    store.remember_many(TEXTS)
    store.remember("one more")
    assert entered(store) == 0
