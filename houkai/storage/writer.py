"""Own the one write connection: a thread that commits waiting jobs together.

Every job runs inside a savepoint of a shared transaction, so that one fsync serves all callers
that wait; a job that fails takes nothing of its neighbours with it. A lone caller never lingers.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

import apsw

from houkai.errors import StorageError
from houkai.storage.connection import translate

T = TypeVar("T")
Job = Callable[[apsw.Connection], T]

QUEUE_LIMIT: Final = 1_024
BATCH_LIMIT: Final = 256
LINGER_S: Final = 0.001
QUIET_S: Final = 1.0


class _Task:
    """One caller's job, its outcome, and the event that wakes the caller; no job means rest."""

    __slots__ = ("done", "error", "job", "result")

    def __init__(self, job: Job[Any] | None) -> None:
        self.job = job
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = threading.Event()


class Writer:
    """A thread, started by the first write, that owns the write connection until `close`."""

    def __init__(
        self,
        connect: Callable[[], apsw.Connection],
        after_commit: Callable[[apsw.Connection], None],
        on_quiet: Callable[[apsw.Connection], None],
    ) -> None:
        self._connect = connect
        self._after_commit = after_commit
        self._on_quiet = on_quiet
        self._queue: deque[_Task] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._pid = os.getpid()

    def run(self, job: Job[T]) -> T:
        """Run `job` in a transaction of its own standing, commit it, and return its result.

        The job may be run again if a neighbour's failure cost the shared transaction, so it must
        depend on nothing but the connection. Raises what the job raises, or StorageError.
        """
        result: T = self._wait_for(_Task(job))
        return result

    def rest(self) -> None:
        """Do now what a quiet moment would bring."""
        self._wait_for(_Task(None))

    def _wait_for(self, task: _Task) -> Any:
        self.refuse_after_fork()
        with self._changed:
            while len(self._queue) >= QUEUE_LIMIT and not self._closing:
                self._changed.wait()
            if self._closing:
                raise StorageError("The store is closed.", hint="Open a new MemoryStore.")
            self._queue.append(task)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._serve, name="houkai-writer", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
        task.done.wait()
        if task.error is not None:
            raise task.error
        return task.result

    def refuse_after_fork(self) -> None:
        """Raise in a forked child: SQLite connections and threads do not survive a fork."""
        if os.getpid() != self._pid:
            raise StorageError(
                "This store was opened before the process forked.",
                hint="Open a new MemoryStore in the child process.",
            )

    def close(self) -> None:
        """Commit what waits, then end the thread and its connection; harmless when repeated."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and os.getpid() == self._pid:
            thread.join()

    def _serve(self) -> None:
        connection: apsw.Connection | None = None
        crowd = 1
        try:
            while (batch := self._take(crowd, connection)) is not None:
                try:
                    connection = connection or self._connect()
                except BaseException as error:  # noqa: BLE001 - the caller gets it
                    _fail(batch, error)
                    continue
                crowd = len(batch)
                jobs = [task for task in batch if task.job is not None]
                if jobs:
                    _commit(connection, jobs)
                    self._after_commit(connection)
                if len(jobs) < len(batch):
                    self._on_quiet(connection)
                    for task in batch:
                        task.done.set()
        finally:
            if connection is not None:
                connection.close()

    def _take(self, crowd: int, connection: apsw.Connection | None) -> list[_Task] | None:
        """Wait for jobs; linger for the rest of a crowd seen before; None ends the thread."""
        with self._changed:
            rested = connection is None
            while not self._queue:
                if self._closing:
                    return None
                if not self._changed.wait(None if rested else QUIET_S) and connection is not None:
                    rested = True
                    self._rest(connection)
            if crowd > 1 and len(self._queue) < crowd:
                deadline = time.monotonic() + LINGER_S
                while len(self._queue) < crowd and (left := deadline - time.monotonic()) > 0:
                    self._changed.wait(left)
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_LIMIT))]
            self._changed.notify_all()
            return batch

    def _rest(self, connection: apsw.Connection) -> None:
        self._changed.release()
        try:
            self._on_quiet(connection)
        finally:
            self._changed.acquire()


def _commit(connection: apsw.Connection, batch: list[_Task]) -> None:
    """Run a batch in one transaction; when that is lost, each job alone in its own."""
    try:
        connection.execute("begin immediate")
    except apsw.Error as error:
        _fail(batch, translate(error))
        return
    try:
        for task in batch:
            _attempt(connection, task)
        connection.execute("commit")
    except BaseException as error:  # noqa: BLE001 - the callers get it
        if connection.in_transaction:
            connection.execute("rollback")
        if len(batch) == 1:
            _fail(batch, translate(error) if isinstance(error, apsw.Error) else error)
            return
        for task in batch:
            task.result, task.error = None, None
            _commit(connection, [task])
        return
    for task in batch:
        task.done.set()


def _attempt(connection: apsw.Connection, task: _Task) -> None:
    """Run one job in a savepoint. Raises when the whole transaction is gone."""
    connection.execute("savepoint job")
    try:
        task.result = task.job(connection) if task.job is not None else None
        connection.execute("release job")
    except BaseException as error:
        if not connection.in_transaction:
            raise
        connection.execute("rollback to job; release job")
        task.error = translate(error) if isinstance(error, apsw.Error) else error


def _fail(batch: list[_Task], error: BaseException) -> None:
    for task in batch:
        task.error = error
        task.done.set()
