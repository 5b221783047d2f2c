"""Own the one write connection: a thread that commits waiting jobs together.

One fsync serves all callers that wait, and one that fails takes nothing of its neighbours with it.
A lone caller has the transaction to itself and never lingers. The thread starts with the first
write and ends when nothing is written for a while.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

import apsw

from houkai.errors import StorageError
from houkai.storage.batch import Job, Task, commit, fail
from houkai.storage.connection import shut
from houkai.storage.pool import DRAIN_S, Refusal, closed

T = TypeVar("T")

QUEUE_LIMIT: Final = 1_024
BATCH_LIMIT: Final = 256
LINGER_SHARE: Final = 0.5
"""How long to wait for the rest of a crowd, as a share of what the last commit took."""
QUIET_S: Final = 1.0
IDLE_S: Final = 60.0

Step = Callable[[apsw.Connection], None]
_log = logging.getLogger(__name__)


class Writer:
    """The write connection of one open file, and the thread that uses it."""

    def __init__(
        self, connect: Callable[[], apsw.Connection], after_commit: Step, on_quiet: Step
    ) -> None:
        self._connect = connect
        self._after_commit = after_commit
        self._on_quiet = on_quiet
        self._queue: deque[Task] = deque()
        lock = threading.Lock()
        self._work = threading.Condition(lock)
        self._room = threading.Condition(lock)
        self._parked = threading.Condition(lock)
        self._thread: threading.Thread | None = None
        self.connection: apsw.Connection | None = None
        self._busy = False
        self._held = False
        self._refusal: Refusal | None = None
        self.began = False
        self._crowd = 1
        self._wanted = 1
        self._linger_s = 0.0

    def run(self, job: Job[T]) -> T:
        """Run `job` in a transaction of its own standing, commit it, and return its result.

        The job may be run again if a neighbour's failure cost the shared transaction, so it must
        depend on nothing but the connection. Raises what the job raises, or StorageError.
        """
        result: T = self._outcome(Task(job))
        return result

    def rest(self) -> None:
        """Do now what a quiet moment would bring."""
        self._outcome(Task(None))

    def rest_soon(self) -> None:
        """Have it done without waiting, if that is possible now."""
        with self._work:
            if self._refusal is None and len(self._queue) < QUEUE_LIMIT:
                self._append(Task(None))

    def _outcome(self, task: Task) -> Any:
        if self._refusal is not None:  # before the lock, which a fork may have left locked
            raise self._refusal()
        try:
            self._enqueue(task)
            return task.wait()
        except BaseException:
            with self._work, contextlib.suppress(ValueError):
                self._queue.remove(task)  # what has not begun need not be done
            raise

    def _enqueue(self, task: Task) -> None:
        with self._work:
            if self._thread is not None and self._thread.ident == threading.get_ident():
                raise StorageError("A write was begun inside a write, which could never end.")
            while len(self._queue) >= QUEUE_LIMIT and self._refusal is None:
                self._room.wait()
            if self._refusal is not None:
                raise self._refusal()
            self._append(task)

    def _append(self, task: Task) -> None:
        self.began = self.began or task.job is not None
        self._start()
        self._queue.append(task)
        if len(self._queue) >= self._wanted:
            self._work.notify()

    def _start(self) -> None:
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._serve, name="houkai-writer", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            if not self._thread.is_alive():
                self._thread = None
            raise

    def close(self) -> None:
        """Commit what waits, then end the thread and its connection; harmless when repeated."""
        with self._work:
            self._refusal = self._refusal or closed
            self._work.notify()
            self._room.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def hold(self) -> bool:
        """Bring the thread to rest without a connection; False when it does not come to rest."""
        with self._work:
            self._held = True
            self._work.notify()
            if threading.current_thread() is self._thread:
                return False
            return self._parked.wait_for(
                lambda: self.connection is None and not self._busy, DRAIN_S
            )

    def resume(self) -> None:
        """Go on after `hold`."""
        with self._work:
            self._held = False
            self._work.notify()

    def abandon(self, refusal: Refusal) -> list[apsw.Connection]:
        """Refuse from now on, in a forked child; return the connection if it was in use.

        Nothing is locked: a thread that is not there any more may have held the lock.
        """
        self._refusal = refusal
        return [self.connection] if self.connection is not None else []

    def _serve(self) -> None:
        while True:
            batch = self._take()
            if batch:
                self._do(batch)
                continue
            self._disconnect()
            if self._may_end():
                return

    def _take(self) -> list[Task]:
        """Wait for jobs and for the rest of a crowd; an empty list asks to let go of the file."""
        with self._work:
            self._busy = False
            rested = self.connection is None
            while not self._queue or self._held:
                if self._held or self._refusal is not None:
                    return []
                if self._work.wait(IDLE_S if rested else QUIET_S):
                    continue
                if rested:
                    return []
                rested = True
                self._work.release()
                self._upkeep(self._on_quiet)
                self._work.acquire()
            self._linger()
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH_LIMIT))]
            self._room.notify_all()
            self._busy = True
            return batch

    def _linger(self) -> None:
        """Wait for those that were here a moment ago: one fsync serves them all."""
        self._wanted = min(self._crowd, BATCH_LIMIT)
        deadline = time.monotonic() + self._linger_s
        while len(self._queue) < self._wanted and (left := deadline - time.monotonic()) > 0:
            self._work.wait(left)
        self._wanted = 1

    def _may_end(self) -> bool:
        """Say whether the thread is not needed; while the file is let go for a fork, wait."""
        with self._work:
            self._parked.notify_all()
            while self._held:
                self._work.wait()
            if self._queue:
                return False
            self._thread = None
            return True

    def _do(self, batch: list[Task]) -> None:
        """Carry out a batch. Whatever happens, every caller is answered and the thread lives."""
        jobs = [task for task in batch if task.job is not None]
        took_s = 0.0
        try:
            if self.connection is None:
                self.connection = self._connect()
            if jobs:
                took_s = commit(self.connection, jobs)
        except BaseException as error:  # noqa: BLE001 - the callers get it
            self._disconnect()
            fail(batch, error)
        with self._work:
            self._crowd = len(jobs) + len(self._queue)
        self._linger_s = LINGER_SHARE * took_s
        for task in jobs:
            task.finish()
        self._upkeep(self._after_commit)
        if len(jobs) < len(batch):
            self._upkeep(self._on_quiet)
            for task in batch:
                if task.job is None:
                    task.finish()

    def _upkeep(self, step: Step) -> None:
        if self.connection is None:
            return
        try:
            step(self.connection)
        except Exception:  # noqa: BLE001 - no write of a user may fail for it
            _log.exception("Upkeep of the memory file failed")

    def _disconnect(self) -> None:
        if self.connection is not None:
            shut(self.connection)
            self.connection = None
