"""Writes of many threads share a transaction, and none pays for another's failure."""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw
import pytest

from houkai import InputError, Memory, MemoryStore, NotFound, StorageError
from houkai.storage.journal import Tx
from tests.agreement import disagreements
from tests.support import texts


def together(store: MemoryStore, jobs: list[Callable[[], object]]) -> list[object]:
    """Run calls that all wait while the writer is busy, and return their results or errors."""
    gate, inside = threading.Event(), threading.Event()
    outcomes: list[object] = [None] * len(jobs)

    def hold(_connection: apsw.Connection) -> None:
        inside.set()
        gate.wait(20)

    def call(n: int) -> None:
        try:
            outcomes[n] = jobs[n]()
        except BaseException as error:
            outcomes[n] = error

    threads = [threading.Thread(target=lambda: store.db.write(hold))]
    threads[0].start()
    inside.wait(20)
    threads += [threading.Thread(target=call, args=(n,)) for n in range(len(jobs))]
    for thread in threads[1:]:
        thread.start()
    while len(store.db._writer._queue) < len(jobs):
        pass
    gate.set()
    for thread in threads:
        thread.join(20)
    return outcomes


def failing(store: MemoryStore, error: BaseException) -> Callable[[], object]:
    """Return a write that changes something and then fails."""

    def work(tx: Tx) -> None:
        tx.connection.execute("insert into meta(key, value) values ('half', 1)")
        raise error

    return lambda: store.write("fail", work)


def half(store: MemoryStore) -> int:
    """Return how much of such a write is in the file."""
    with store.read() as connection:
        return int(connection.execute("select count(*) from meta where key = 'half'").get)


def remembering(store: MemoryStore, n: int) -> Callable[[], object]:
    """Return a call that stores one memory."""
    return lambda: store.remember(f"note {n}")


def kept(store: MemoryStore) -> list[str]:
    """Return the sorted texts of a store."""
    return sorted(texts(store.list_recent(None)))


def test_one_failing_write_takes_no_other_with_it(file_store: MemoryStore) -> None:
    """Thirty agents must not lose their memories because one of them erred."""
    file_store.remember("first")
    jobs = [remembering(file_store, n) for n in range(30)]
    jobs[7:7] = [failing(file_store, InputError("no"))]
    outcomes = together(file_store, jobs)
    assert isinstance(outcomes[7], InputError)
    assert kept(file_store) == sorted(["first", *(f"note {n}" for n in range(30))])
    assert half(file_store) == 0
    assert disagreements(file_store) == []


@pytest.mark.parametrize("at", [0, 3, 6])
def test_a_lost_transaction_is_repeated_for_the_others(file_store: MemoryStore, at: int) -> None:
    """SQLite may throw away a whole transaction, as on a full disk; each job then tries alone."""

    def lose(connection: apsw.Connection) -> None:
        connection.execute("rollback")
        raise apsw.FullError("database or disk is full")

    file_store.remember("first")
    jobs = [remembering(file_store, n) for n in range(6)]
    jobs[at:at] = [lambda: file_store.db.write(lose)]
    outcomes = together(file_store, jobs)
    assert isinstance(outcomes[at], StorageError)
    assert kept(file_store) == sorted(["first", *(f"note {n}" for n in range(6))])
    assert disagreements(file_store) == []


def test_what_is_on_disk_stays_told_though_the_connection_breaks_after_it(
    file_store: MemoryStore,
) -> None:
    """A caller who is told that a stored memory failed would store it again."""
    attempts: list[int] = []

    def break_down(connection: apsw.Connection) -> None:
        attempts.append(1)
        if len(attempts) < 3:  # in the crowd, in the crowd with savepoints, alone
            connection.execute("rollback")
        else:
            connection.close()
        raise apsw.FullError("database or disk is full")

    def broken() -> None:
        while not file_store.db._writer._queue:  # until the other's turn is before this one
            pass
        file_store.db.write(break_down)

    file_store.remember("first")
    outcomes = together(file_store, [remembering(file_store, 1), broken])
    assert isinstance(outcomes[0], Memory)
    assert isinstance(outcomes[1], StorageError)
    assert kept(file_store) == ["first", "note 1"]


def test_operations_of_a_batch_follow_each_other(file_store: MemoryStore) -> None:
    """Sharing a transaction must not let two operations share a number or a moment."""
    file_store.remember("first")
    together(file_store, [remembering(file_store, n) for n in range(20)])
    entries = file_store.journal(None)
    assert [entry.operation for entry in entries] == list(range(21, 0, -1))
    assert len({entry.ts for entry in entries}) == 21


def test_an_interrupt_reaches_its_caller(file_store: MemoryStore) -> None:
    """Ctrl-C inside a callback of a write must stop that call and leave nothing."""
    with pytest.raises(KeyboardInterrupt):
        failing(file_store, KeyboardInterrupt())()
    file_store.remember("after")
    assert kept(file_store) == ["after"]
    assert half(file_store) == 0


def test_many_threads_lose_nothing(store: MemoryStore) -> None:
    """Every write that returned is there, once, also while others read."""

    def write(worker: int) -> None:
        for n in range(25):
            store.as_actor(f"w{worker}").remember(f"{worker} {n}", source="s")
            store.recall(f"{worker}", k=2)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept(store) == sorted(f"{w} {n}" for w in range(8) for n in range(25))
    positions = sorted(memory.position or 0 for memory in store.list_recent(None))
    assert positions == list(range(200))
    assert disagreements(store) == []


def test_a_write_that_is_refused_before_it_changes_anything_costs_the_others_nothing(
    file_store: MemoryStore,
) -> None:
    """One agent that asks for what is not there must not have a whole crowd's work done twice."""
    runs: list[str] = []

    def once(n: int) -> Callable[[], object]:
        return lambda: file_store.db.write(lambda _: runs.append(str(n)))

    jobs = [once(n) for n in range(6)]
    jobs[3:3] = [lambda: file_store.edit("0" * 32, importance=0.5)]
    outcomes = together(file_store, jobs)
    assert isinstance(outcomes[3], NotFound)
    assert runs == [str(n) for n in range(6)]


def test_a_crowd_writes_its_words_out_once(file_store: MemoryStore) -> None:
    """A savepoint for each job, or an update in it, has FTS5 store its words job by job."""
    for n in range(40):
        file_store.remember(f"before {n}")
    written: list[int] = []

    def changed(event: dict[str, object]) -> None:
        written.append("REPLACE INTO 'main'.'memory_fts_data'" in str(event["sql"]))

    writer = file_store.db._writer.connection
    assert writer is not None
    writer.trace_v2(apsw.SQLITE_TRACE_STMT, changed)
    together(file_store, [remembering(file_store, n) for n in range(40)])
    writer.trace_v2(0, None)
    assert 0 < sum(written) < 20
