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
PATIENCE_S: Final = 0.02
"""How long a crowd waits for the next to come back: to open another takes more work."""
DRAIN_S: Final = 5.0
"""How long a fork or a close waits for readers and the writer to come to rest."""

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
        self._returns = 0
        self._renew_locks()
        self._held = False
        self._refusal: Refusal | None = None

    def _renew_locks(self) -> None:
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        self._returned = threading.Condition(lock)

    @contextlib.contextmanager
    def lend(
        self, connect: Callable[[], apsw.Connection] | None = None, *, fresh: bool = False
    ) -> Iterator[apsw.Connection]:
        """Yield a connection for one thread's use, opened by `connect` when none is idle."""
        loan = self._borrow()
        try:
            if fresh and loan.connection is not None:
                shut(loan.connection)
                loan.connection = None
            if loan.connection is None:
                loan.connection = (connect or self._connect)()
            yield loan.connection
        finally:
            self._give_back(loan)

    @contextlib.contextmanager
    def snapshot(self, *, fresh: bool = False) -> Iterator[apsw.Connection]:
        """Yield a connection that sees one unchanging state of the file.

        A `fresh` one has read nothing before: FTS5 remembers more from one snapshot to the next
        than its own integrity check can bear, and reports damage where another process wrote.
        """
        with self.lend(fresh=fresh) as connection, translated():
            connection.execute("begin")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("rollback")

    def _borrow(self) -> _Loan:
        self._refuse()
        with self._changed:
            self._await_return()
            while self._held:
                self._changed.wait()
            self._refuse()
            loan = _Loan(self._idle.pop() if self._idle else None)
            self._loans.append(loan)
        return loan

    def _await_return(self) -> None:
        """Wait while others give back what they borrowed; what is lent for long is not waited for.

        A thread that has one already may be what the others wait for.
        """
        returns = -1
        while len(self._loans) >= KEEP and not self._idle and not self._lent_to_me():
            if returns == self._returns:
                return
            returns = self._returns
            self._returned.wait(PATIENCE_S)

    def _refuse(self) -> None:
        if self._refusal is not None:
            raise self._refusal()

    def _give_back(self, loan: _Loan) -> None:
        with self._changed:
            if loan not in self._loans:
                return  # a fork has made it the parent's
            if loan.connection is not None and self._wanted(loan.connection):
                self._idle.append(loan.connection)
            elif loan.connection is not None:
                shut(loan.connection)
            self._loans.remove(loan)
            self._returns += 1
            self._returned.notify()
            self._changed.notify_all()

    def _lent_to_me(self) -> bool:
        own = threading.get_ident()
        return any(loan.owner == own for loan in self._loans)

    def _wanted(self, connection: apsw.Connection) -> bool:
        """Say whether to keep a connection; one that could not end its snapshot is broken."""
        full = len(self._idle) >= KEEP
        return not (self._refusal or self._held or full or connection.in_transaction)

    def close(self) -> None:
        """Close what is idle, and what is lent once it comes back, which is waited for.

        A thread that the end of the process stops in mid-read would leave the log behind.
        """
        self._refusal = self._refusal or closed
        self._drain()
        self._close_idle()

    def _close_idle(self) -> None:
        """Close under the lock: a fork that comes now must find it done."""
        with self._changed:
            while self._idle:
                shut(self._idle.pop())

    def hold(self) -> bool:
        """Close every connection and lend none until `resume`; False when one stays lent."""
        with self._changed:
            self._held = True
        drained = self._drain()
        self._close_idle()
        return drained

    def _drain(self) -> bool:
        """Wait for what other threads have on loan; False when some stays lent."""
        deadline = time.monotonic() + DRAIN_S
        with self._changed:
            while self._loans and not self._lent_to_me():
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    break
            return not self._loans

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
        self._renew_locks()
        lost = [loan.connection for loan in self._loans if loan.connection is not None]
        self._loans = []
        return lost
