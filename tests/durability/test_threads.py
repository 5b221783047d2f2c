"""Many threads and tasks in one process: each gets its own answer, in its turn."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from houkai import AsyncMemoryStore, MemoryStore, NotFound, StorageError
from houkai.storage import batch, writer
from tests.durability.checks import EMBEDDER, assert_sound, opened
from tests.durability.faulty import Fault, faulty
from tests.support import contents, run


@pytest.fixture
def store(path: Path) -> Iterator[MemoryStore]:
    """Yield a store whose writer thread has begun."""
    with opened(path) as store:
        store.remember("the first memory chooses the model")
        yield store


@contextlib.contextmanager
def held_up(store: MemoryStore) -> Iterator[None]:
    """Keep the writer thread busy, so that other writes gather behind it."""
    go_on, begun = threading.Event(), threading.Event()

    def wait(_: apsw.Connection) -> None:
        begun.set()
        go_on.wait(20)

    thread = threading.Thread(target=store.db.write, args=(wait,))
    thread.start()
    begun.wait(20)
    try:
        yield
    finally:
        go_on.set()
        thread.join()


def at_once(store: MemoryStore, works: list[Callable[[], Any]]) -> list[Any]:
    """Do things in one batch of the writer; return results and errors in order."""
    with ThreadPoolExecutor(len(works)) as threads:
        with held_up(store):
            waiting = [threads.submit(work) for work in works]
            deadline = time.monotonic() + 20
            while len(store.db._writer._queue) < len(works) and time.monotonic() < deadline:
                time.sleep(0.001)
        return [one.exception() or one.result() for one in waiting]


def failing(error: BaseException) -> Callable[[apsw.Connection], Any]:
    """Return a job that writes something and then fails."""

    def job(connection: apsw.Connection) -> None:
        connection.execute("insert into meta(key, value) values ('left behind', 1)")
        raise error

    return job


def test_a_failed_job_harms_none_of_its_neighbours(store: MemoryStore, path: Path) -> None:
    """A batch that rolled back as a whole would lose writes of callers who did nothing wrong."""
    errors = [ValueError("mine"), NotFound("no such"), apsw.ConstraintError("mine too")]
    works: list[Callable[[], Any]] = []
    for number, error in enumerate(errors):
        works.append(partial(store.remember, f"neighbour {number}"))
        works.append(partial(store.db.write, failing(error)))
    done = at_once(store, works)
    assert [type(one) for one in done[1::2]] == [ValueError, NotFound, StorageError]
    assert {m.text for m in done[::2]} < {m["text"] for m in contents(store).values()}
    with store.read() as reading:
        assert reading.execute("select count(*) from meta where key = 'left behind'").get == 0
    store.close()
    assert_sound(path)


def test_a_lost_transaction_is_done_again_one_by_one(store: MemoryStore, path: Path) -> None:
    """One job that costs the whole transaction must cost the others nothing."""

    def lose(held: apsw.Connection) -> None:
        held.execute("rollback")
        raise apsw.FullError("as SQLite does when the disk is full")

    works: list[Callable[[], Any]] = [
        lambda: store.remember("before"),
        lambda: store.db.write(lose),
        lambda: store.remember("after"),
    ]
    before, lost, after = at_once(store, works)
    assert (before.text, type(lost).__name__, after.text) == ("before", "Full", "after")
    store.close()
    assert len(assert_sound(path)) == 3


def test_a_reference_left_open_fails_its_own_job_alone(store: MemoryStore) -> None:
    """Foreign keys are checked at the commit, which all jobs of a batch share."""

    def dangle(held: apsw.Connection) -> None:
        held.execute("insert into link(src, rel, dst, created_at) values (1, 'related', 999, 0)")

    done = at_once(store, [lambda: store.remember("good"), lambda: store.db.write(dangle)])
    assert (done[0].text, type(done[1])) == ("good", StorageError)


def test_callers_are_answered_only_after_the_commit(path: Path) -> None:
    """An answer before the commit would promise what a failing disk then breaks."""
    with faulty() as disk, opened(path) as store:
        store.remember("first")
        disk.fault = Fault("sync", disk.calls["sync"] + 1, stays=True)
        done = at_once(store, [partial(store.remember, f"lost {n}") for n in range(5)])
        assert {type(one) for one in done} == {StorageError}
        assert len({id(one) for one in done}) == 5
        disk.heal()
        assert len(contents(store)) == 1
        store.remember("healed")
    assert len(assert_sound(path)) == 2


def test_no_error_kills_the_writer(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A dead writer thread would leave every later caller waiting for ever."""

    def broken(*_: Any, **__: Any) -> Any:
        raise MemoryError("anywhere")

    store.db.when_quiet(broken)
    store.db.settle()
    for module, name in ((batch, "_attempt"), (writer, "commit")):
        monkeypatch.setattr(module, name, broken)
        with pytest.raises(MemoryError):
            store.remember("while it is broken")
        monkeypatch.undo()
        store.remember("when it is well again")
    assert "put off" in caplog.text


def test_a_full_queue_makes_callers_wait_their_turn(
    store: MemoryStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue without bound would take all memory; one without wake-ups would hang."""
    monkeypatch.setattr(writer, "QUEUE_LIMIT", 4)
    longest = []
    take = writer.Writer._take

    def noting(self: writer.Writer) -> Any:
        taken = take(self)
        longest.append(len(taken))
        return taken

    monkeypatch.setattr(writer.Writer, "_take", noting)
    with ThreadPoolExecutor(40) as threads:
        list(threads.map(lambda n: store.remember(f"fact {n}"), range(120)))
    assert max(longest) <= 4
    store.close()
    assert len(assert_sound(path)) == 121


def test_threads_take_turns(store: MemoryStore) -> None:
    """A writer that serves whoever shouts loudest starves the others."""
    counts, stop = [0] * 24, time.monotonic() + 1.5

    def work(me: int) -> None:
        while time.monotonic() < stop:
            store.db.write(lambda held: held.execute("update meta set value = 1 where key = 'x'"))
            counts[me] += 1

    threads = [threading.Thread(target=work, args=(me,)) for me in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(counts) * 3 >= max(counts)


def test_a_write_inside_a_write_is_refused(path: Path) -> None:
    """A job that waits for the thread it runs on would wait for ever; so does a child process."""
    run(
        """
import sys
from houkai import MemoryStore, StorageError
from houkai.testing import HashingEmbedder
with MemoryStore(sys.argv[1], embedder=HashingEmbedder()) as store:
    store.remember("the first memory chooses the model")
    for outer in (store.db.write, lambda work: store.write("outer", work)):
        try:
            outer(lambda _: store.remember("inner"))
        except StorageError as error:
            assert "inside a write" in str(error), error
        else:
            raise AssertionError("it was not refused")
    store.remember("the writer lives")
""",
        str(path),
    )
    assert len(assert_sound(path)) == 2


def test_ctrl_c_leaves_a_waiting_caller(store: MemoryStore, path: Path) -> None:
    """A caller that cannot be interrupted makes a program that cannot be ended."""
    with held_up(store):
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            store.remember("begun by nobody")
        assert not store.db._writer._queue
    store.remember("afterwards")
    store.close()
    held = {memory["text"] for memory in assert_sound(path).values()}
    assert "afterwards" in held
    assert "begun by nobody" not in held


def test_closing_commits_what_waits_and_refuses_what_comes(path: Path) -> None:
    """A write that was accepted before the close must not vanish with it, nor wait for ever."""
    run(
        """
import sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from houkai import MemoryStore, StorageError
from houkai.testing import HashingEmbedder
store = MemoryStore(sys.argv[1], embedder=HashingEmbedder())
store.remember("the first memory chooses the model")
go_on = threading.Event()
with ThreadPoolExecutor(10) as threads:
    held = threads.submit(store.db.write, lambda _: go_on.wait())
    while not store.db._writer._busy:
        time.sleep(0.001)
    waiting = [threads.submit(store.remember, f"waiting {n}") for n in range(8)]
    while len(store.db._writer._queue) < 8:
        time.sleep(0.001)
    closing = threads.submit(store.db.close)
    while not store.db.closed:
        time.sleep(0.001)
    try:
        store.remember("too late")
    except StorageError as error:
        assert "closed" in str(error), error
    else:
        raise AssertionError("it was not refused")
    go_on.set()
    assert len({one.result().id for one in waiting}) == 8
    closing.result()
""",
        str(path),
    )
    assert len(assert_sound(path)) == 9


def test_a_cancelled_task_leaves_a_whole_write_or_none(path: Path) -> None:
    """Cancellation in the middle of a write must not stop it half way, nor block the store."""

    async def main() -> int:
        async with AsyncMemoryStore(path, embedder=EMBEDDER) as store:
            await store.remember("first")
            for turn in range(25):
                many = [f"turn {turn} item {n}" for n in range(10)]
                task = asyncio.create_task(store.remember_many(many))
                await asyncio.sleep(turn / 2_000)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await store.remember("last")
            return await store.count()

    count = asyncio.run(main())
    assert count % 10 == 2
    assert len(assert_sound(path)) == count
