"""Commit the jobs of several callers in one transaction, each standing for itself."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import apsw

from houkai.storage import known
from houkai.storage.connection import translate

T = TypeVar("T")
Job = Callable[[apsw.Connection], T]


class Task:
    """One caller's job, its outcome, and the lock that the caller waits at; no job means rest."""

    __slots__ = ("_error", "_result", "_settled", "_turn", "job")

    def __init__(self, job: Job[Any] | None) -> None:
        self.job = job
        self._result: Any = None
        self._error: BaseException | None = None
        self._settled = False
        self._turn = threading.Lock()
        self._turn.acquire()

    def attempt(self, connection: apsw.Connection) -> None:
        """Run the job and keep what it returns."""
        self._error = None
        self._result = self.job(connection) if self.job is not None else None

    def settle(self) -> None:
        """Let the outcome stand, whatever happens to others: what it says is on disk."""
        self._settled = True

    def reject(self, error: BaseException) -> None:
        """Keep an error as the outcome, in the words of houkai, unless it is settled."""
        if self._settled:
            return
        self._result, self._error = None, error
        if isinstance(error, apsw.Error):
            self._error = translate(error)
            self._error.__cause__ = error

    def finish(self) -> None:
        """Let the caller go on."""
        self._turn.release()

    def wait(self) -> Any:
        """Wait for the outcome; return what the job returned or raise what it raised."""
        self._turn.acquire()
        if self._error is None:
            return self._result
        try:
            raise self._error
        finally:
            del self  # or the error's traceback would keep it alive


class _Soiled(Exception):
    """Say that a job failed after it had changed something, with nothing to undo it alone."""


def commit(connection: apsw.Connection, batch: Sequence[Task], *, shielded: bool = False) -> float:
    """Run a batch in one transaction; when that is lost, each job alone in its own.

    Jobs get a savepoint each (`shielded`) only once one of them has failed halfway: at every
    savepoint FTS5 writes out its words, so that a crowd would pay for each job as if it were alone.
    Every task then has its outcome, which is on disk. Return how long the commit took. Raises
    apsw.Error when the connection is of no more use.
    """
    try:
        connection.execute("begin immediate")
    except apsw.Error as error:
        fail(batch, error)
        return 0.0
    try:
        known.begin(connection)
        for task in batch:
            _attempt(connection, task, alone=len(batch) == 1, shielded=shielded)
        facts = known.sure(connection)
        started = time.monotonic()
        connection.execute("commit")
        took_s = time.monotonic() - started
        if facts is not None:
            known.confirm(connection, facts)
    except BaseException as error:  # noqa: BLE001 - the callers get it
        known.forget(connection)
        if connection.in_transaction:
            connection.execute("rollback")
        if len(batch) == 1 or isinstance(error, apsw.BusyError):
            fail(batch, error)
            return 0.0
        if isinstance(error, _Soiled):
            return commit(connection, batch, shielded=True)
    else:
        for task in batch:
            task.settle()
        return took_s
    return sum(commit(connection, [task]) for task in batch)


def _attempt(connection: apsw.Connection, task: Task, *, alone: bool, shielded: bool) -> None:
    """Run one job. Raises _Soiled when it fails and may leave something of itself behind."""
    if alone:
        task.attempt(connection)
        return
    if shielded:
        _attempt_shielded(connection, task)
        return
    before = connection.total_changes()
    try:
        task.attempt(connection)
    except BaseException as error:
        if isinstance(error, apsw.Error) or connection.total_changes() != before:
            raise _Soiled from error
        task.reject(error)


def _attempt_shielded(connection: apsw.Connection, task: Task) -> None:
    """Run one job in a savepoint. Raises when the whole transaction is lost."""
    connection.execute("savepoint job")
    try:
        task.attempt(connection)
        connection.execute("release job")
    except BaseException as error:
        if not connection.in_transaction:
            raise
        connection.execute("rollback to job; release job")
        task.reject(error)


def fail(batch: Sequence[Task], error: BaseException) -> None:
    """Give an error to every caller of a batch; each raises one of its own."""
    for task in batch:
        shared = len(batch) > 1 and not isinstance(error, apsw.Error)
        task.reject(copy.copy(error) if shared else error)
