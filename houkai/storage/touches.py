"""Access counts, gathered in memory and written when the writer rests; never journaled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

import apsw

PATIENCE_S: Final = 30.0
"""How long accesses may wait in memory while a store is never quiet, or never written to."""


class Touches:
    """The accesses of one open file that are not written yet.

    `overdue` is called when accesses go on for long and nothing else has them written.
    """

    def __init__(self, overdue: Callable[[], None]) -> None:
        self._pending: dict[str, tuple[int, float]] = {}
        self._lock = threading.Lock()
        self._overdue = overdue
        self._written_at = time.monotonic()

    def add(self, ids: Iterable[str], at: float) -> None:
        """Count one access of each memory."""
        with self._lock:
            for id in ids:
                self._pending[id] = (self._pending.get(id, (0, 0.0))[0] + 1, at)
            moment = time.monotonic()
            late = bool(self._pending) and moment - self._written_at > PATIENCE_S
            if late:
                self._written_at = moment
        if late:
            self._overdue()

    def pending(self, id: str) -> tuple[int, float] | None:
        """Return the accesses of a memory that are not in the file yet."""
        return self._pending.get(id)

    def __bool__(self) -> bool:
        """Say whether anything waits to be written."""
        return bool(self._pending)

    def flush(self, connection: apsw.Connection) -> None:
        """Write what waits, in a transaction that need not reach the disk at once.

        A recall that counts its hits meanwhile does not wait for it.
        """
        with self._lock:
            batch = dict(self._pending)
            self._written_at = time.monotonic()
        if not batch:
            return
        level = connection.pragma("synchronous")
        connection.pragma("synchronous", 1)
        try:
            with connection:
                write(connection, batch)
        finally:
            connection.pragma("synchronous", level)
        with self._lock:
            for id, (written, _) in batch.items():
                count, at = self._pending.pop(id)
                if count > written:
                    self._pending[id] = (count - written, at)


def write(connection: apsw.Connection, batch: dict[str, tuple[int, float]]) -> None:
    """Add counts to the file; another process's counts are added to, never overwritten."""
    connection.executemany(
        """insert into touch(id, count, last_at) values (?, ?, ?)
           on conflict(id) do update set count = count + excluded.count,
             last_at = max(last_at, excluded.last_at)""",
        [(id, count, at) for id, (count, at) in batch.items()],
    )
