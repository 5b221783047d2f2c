"""The connections of one store: few, at rest when idle, and never waiting without end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread, Timer

import apsw
import pytest

from houkai import MemoryStore, StorageError
from houkai.errors import Busy
from houkai.storage import connection, pool, touches, writer
from tests.durability.checks import assert_alone, assert_sound, opened


@pytest.fixture
def store(path: Path) -> Iterator[MemoryStore]:
    """Yield a store whose writer thread has begun."""
    with opened(path) as store:
        store.remember("the first memory chooses the model")
        yield store


def test_readers_share_a_few_connections(store: MemoryStore) -> None:
    """A connection kept for every thread that ever read would hold memory and files for ever."""

    def read(_: int) -> int:
        with store.read() as held:
            time.sleep(0.005)
            return int(held.execute("select count(*) from memory").get)

    with ThreadPoolExecutor(3 * pool.KEEP) as threads:
        assert set(threads.map(read, range(200))) == {1}
    assert len(store.db._readers._idle) <= pool.KEEP
    assert not store.db._readers._loans


def test_a_crowd_waits_for_a_connection_rather_than_open_its_own(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To open and close a connection for each read took most of a crowd's time."""
    opened_now: list[int] = []
    readers = store.db._readers
    connect = readers._connect
    monkeypatch.setattr(readers, "_connect", lambda: (opened_now.append(1), connect())[1])

    def read(_: int) -> None:
        with store.read() as held:
            held.execute("select count(*) from memory").fetchall()
            time.sleep(0.001)

    with ThreadPoolExecutor(6 * pool.KEEP) as threads:
        list(threads.map(read, range(400)))
    assert len(opened_now) < 2 * pool.KEEP


def test_readers_that_stay_do_not_keep_others_out(store: MemoryStore) -> None:
    """A crowd that holds its snapshots must not make one more reader wait for its end."""
    with ExitStack() as held:
        enough = [Event() for _ in range(pool.KEEP)]

        def stay(until: Event) -> None:
            with store.read():
                until.wait(20)

        threads = [Thread(target=stay, args=(until,)) for until in enough]
        for thread in threads:
            thread.start()
        held.callback(lambda: [until.set() for until in enough])
        while len(store.db._readers._loans) < pool.KEEP:
            time.sleep(0.001)
        with ThreadPoolExecutor(1) as one:
            assert one.submit(store.count).result(timeout=15) == 1
    for thread in threads:
        thread.join()


def test_accesses_are_written_though_nobody_writes(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that recalls for days would lose all its counts in one crash."""
    monkeypatch.setattr(touches, "PATIENCE_S", 0.0)
    monkeypatch.setattr(writer, "QUIET_S", 1_000)
    made = store.remember("after which the writer never finds it quiet")
    store.recall("never finds it quiet", k=1)
    deadline = time.monotonic() + 20
    while store.touches and time.monotonic() < deadline:
        time.sleep(0.01)
    with store.read() as held:
        assert held.execute("select count from touch where id = ?", (made.id,)).get == 1
    assert not store.touches


def test_a_snapshot_does_not_move(store: MemoryStore) -> None:
    """A recall that reads in steps must not see a write that comes between them."""
    with store.read() as held:
        before = held.execute("select count(*) from memory").get
        store.remember("meanwhile")
        assert held.execute("select count(*) from memory").get == before
    assert store.count() == before + 1


def test_an_idle_store_keeps_no_thread(
    store: MemoryStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that opens many stores would end with a thread for each."""
    monkeypatch.setattr(writer, "QUIET_S", 0.02)
    monkeypatch.setattr(writer, "IDLE_S", 0.02)
    store.remember("wakes the thread, which then reads the shorter times")
    deadline = time.monotonic() + 10
    while store.db._writer._thread is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert store.db._writer._thread is None
    assert store.db._writer.connection is None
    store.remember("begins another")
    store.close()
    assert len(assert_sound(path)) == 3


def test_a_write_that_comes_as_the_thread_ends_is_done(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that ended over a job just queued would leave its caller waiting for ever."""
    monkeypatch.setattr(writer, "QUIET_S", 0.02)
    monkeypatch.setattr(writer, "IDLE_S", 0.02)
    disconnect = store.db._writer._disconnect
    coming: list[Future[object]] = []

    def letting_go() -> None:
        disconnect()
        if not coming:
            coming.append(callers.submit(store.remember, "at the last moment"))
            while not store.db._writer._queue:
                time.sleep(0.001)

    monkeypatch.setattr(store.db._writer, "_disconnect", letting_go)
    callers = ThreadPoolExecutor(1)
    store.remember("wakes the thread, which then reads the shorter times")
    deadline = time.monotonic() + 20
    while not coming and time.monotonic() < deadline:
        time.sleep(0.01)
    assert coming[0].result(timeout=20)
    callers.shutdown()


def test_waiting_for_another_process_ends_with_a_sentence(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that never lets go must not make the others wait for ever without a word."""
    monkeypatch.setattr(connection, "BUSY_S", 0.2)
    monkeypatch.setattr(connection.connect, "__kwdefaults__", {"busy_s": 0.2})
    with opened(path) as store:
        store.remember("first")
        rival = connection.connect(connection.uri(path))
        rival.execute("begin immediate")
        began = time.monotonic()
        with pytest.raises(Busy, match="Another process"):
            store.remember("refused")
        assert 0.15 < time.monotonic() - began < 10
        assert store.recall("first", touch=False)
        rival.execute("rollback")
        rival.close()
        store.remember("accepted")
    assert len(assert_sound(path)) == 2


def test_closing_waits_for_a_read_under_way(store: MemoryStore, path: Path) -> None:
    """A process that ends while its thread reads would leave the log beside the file."""
    inside, enough = Event(), Event()

    def read() -> None:
        with store.read() as held:
            held.execute("select count(*) from memory").fetchall()
            inside.set()
            enough.wait(0.3)

    thread = Thread(target=read)
    thread.start()
    inside.wait(20)
    store.close()
    assert_alone(path)
    thread.join()


def test_a_connection_that_cannot_end_its_snapshot_is_not_lent_again(store: MemoryStore) -> None:
    """Its next reader would see the file as it was then, for ever."""

    def refuse(action: int, what: str | None, *_: object) -> int:
        ends = action == apsw.SQLITE_TRANSACTION and what == "ROLLBACK"
        return apsw.SQLITE_DENY if ends else apsw.SQLITE_OK

    reading = store.read()
    held = reading.__enter__()
    held.execute("select count(*) from memory").fetchall()
    held.set_authorizer(refuse)
    with pytest.raises(StorageError):
        reading.__exit__(None, None, None)
    store.remember("meanwhile")
    assert store.count() == 2


def test_a_change_of_journal_waits_for_who_is_about_to_write(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite refuses it at once, without asking the busy handler, and the write would fail."""
    with monkeypatch.context() as patch:
        patch.setenv("HOUKAI_JOURNAL", "delete")
        with opened(path) as first:
            first.remember("before")
    rival = connection.connect(connection.uri(path))
    rival.execute("begin immediate")
    letting_go = Timer(0.3, lambda: rival.execute("rollback"))
    letting_go.start()
    with opened(path) as store:
        store.remember("after")
        assert store.count() == 2
    letting_go.join()
    rival.close()
