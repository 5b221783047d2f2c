"""Lend read connections: one to each reader of a moment, a few kept open for the next."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

import apsw

from houkai.errors import StorageError
from houkai.storage.connection import shut, translated

KEEP: Final = 8
DRAIN_S: Final = 5.0
"""How long a fork waits for readers and the writer to come to rest."""

Refusal = Callable[[], StorageError]


def closed() -> StorageError:
    """Return the error of a store that was closed."""
    return StorageError("The store is closed.", hint="Open a new MemoryStore.")


class _Loan:
    """A connection in use, opened when the loan found none idle, and the thread that uses it."""

    __slots__ = ("connection", "owner")

    def __init__(self, connection: apsw.Connection | None) -> None:
        self.connection = connection
        self.owner = threading.get_ident()


class Readers:
    """The read connections of one open file."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._idle: list[apsw.Connection] = []
        self._loans: list[_Loan] = []
        self._changed = threading.Condition()
        self._held = False
        self._refusal: Refusal | None = None

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """Yield a connection that sees one unchanging state of the file."""
        loan = self._borrow()
        try:
            if loan.connection is None:
                loan.connection = self._connect()
            with translated():
                loan.connection.execute("begin")
                try:
                    yield loan.connection
                finally:
                    if loan.connection.in_transaction:
                        loan.connection.execute("rollback")
        finally:
            self._give_back(loan)

    def add(self, connection: apsw.Connection) -> None:
        """Take in a connection that is open already."""
        self._idle.append(connection)

    def _borrow(self) -> _Loan:
        self._refuse()
        with self._changed:
            while self._held:
                self._changed.wait()
            self._refuse()
            loan = _Loan(self._idle.pop() if self._idle else None)
            self._loans.append(loan)
        return loan

    def _refuse(self) -> None:
        if self._refusal is not None:
            raise self._refusal()

    def _give_back(self, loan: _Loan) -> None:
        with self._changed:
            if loan not in self._loans:
                return  # a fork has made it the parent's
            self._loans.remove(loan)
            spare = loan.connection
            if spare is not None and self._wanted(spare):
                self._idle.append(spare)
                spare = None
            self._changed.notify_all()
        if spare is not None:
            shut(spare)

    def _wanted(self, connection: apsw.Connection) -> bool:
        """Say whether to keep a connection; one that could not end its snapshot is broken."""
        full = len(self._idle) >= KEEP
        return not (self._refusal or self._held or full or connection.in_transaction)

    def close(self) -> None:
        """Close what is idle, and what is lent once it comes back."""
        self._refusal = self._refusal or closed
        self._close_idle()

    def _close_idle(self) -> None:
        with self._changed:
            idle, self._idle = self._idle, []
        for connection in idle:
            shut(connection)

    def hold(self) -> bool:
        """Close every connection and lend none until `resume`; False when one stays lent."""
        deadline = time.monotonic() + DRAIN_S
        with self._changed:
            self._held = True
            own = threading.get_ident()
            while self._loans and not any(loan.owner == own for loan in self._loans):
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    break
            drained = not self._loans
        self._close_idle()
        return drained

    def resume(self) -> None:
        """Lend again."""
        with self._changed:
            self._held = False
            self._changed.notify_all()

    def abandon(self, refusal: Refusal) -> list[apsw.Connection]:
        """Refuse from now on, in a forked child; return the connections that were in use.

        A thread that is not there any more may have held the lock.
        """
        self._refusal = refusal
        self._changed = threading.Condition()
        lost = [loan.connection for loan in self._loans if loan.connection is not None]
        self._loans = []
        return lost
