"""One open memory file: snapshots for reading, one door for writing, a clean end."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import logging
import os
import threading
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import apsw

from houkai.errors import Corrupt, InputError, ReadOnly, StorageError
from houkai.storage import connection as sqlite
from houkai.storage import files, migrate
from houkai.storage.writer import Job, Writer
from houkai.vocabulary import Durability

T = TypeVar("T")
MEMORY: Final = ":memory:"
JOURNAL_VARIABLE: Final = "HOUKAI_JOURNAL"
FOLD_PAGES: Final = 1_000
TRIM_PAGES: Final = 4_000
"""Length of the log from which commits wait for readers to let it start anew: 16 MiB."""
UPKEEP_S: Final = 0.1

_log = logging.getLogger(__name__)
_alive: weakref.WeakSet[Database] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Leave one file behind even when a program ends without closing its stores."""
    for database in list(_alive):
        database.close()


def _abandon_all() -> None:
    """Keep a forked child from closing the parent's connections.

    A child holds none of the parent's locks, so a close there would delete the log in use.
    """
    for database in list(_alive):
        database.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)


class Database:
    """A memory file, or a private database in RAM for the path ":memory:"."""

    def __init__(self, path: str | os.PathLike[str], *, durability: Durability = "full") -> None:
        self.path: Path | None = None if os.fspath(path) == MEMORY else Path(path).expanduser()
        self.name = MEMORY if self.path is None else str(self.path)
        self.durability: Durability = durability
        self.read_only = False
        self._idle: list[apsw.Connection] = []
        self._open: set[apsw.Connection] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._chores: list[Callable[[apsw.Connection], None]] = []
        self._log_pages = 0
        self._target = self._prepare_target()
        self._journal_mode = self._choose_journal_mode()
        self._writer = Writer(self._connect_writer, self._trim_log, self._rest)
        self._settle()
        _alive.add(self)

    def _prepare_target(self) -> str:
        if self.path is None:
            return f"file:/houkai-{uuid.uuid4()}?vfs=memdb"
        if files.inspect(self.path) is files.Found.NOTHING:
            files.reserve(self.path)
        elif not files.writable(self.path):
            files.refuse_unreadable_log(self.path)
            self.read_only = True
            # WAL needs to write beside the file; immutable reads it as it lies.
            return sqlite.uri(self.path, immutable="1")
        return sqlite.uri(self.path)

    def _choose_journal_mode(self) -> str:
        """Return wal, or what a user chose for a place where wal cannot work."""
        chosen = os.environ.get(JOURNAL_VARIABLE, "").lower()
        if chosen not in ("", "wal", "delete"):
            raise InputError(f"{JOURNAL_VARIABLE} must be wal or delete, got {chosen!r}.")
        network = None if self.path is None else files.network_type(self.path)
        if network is not None and chosen != "delete":
            raise StorageError(
                f"{self.name} lies on a network file system ({network}), where the log that "
                "several processes share does not work.",
                hint=f"Keep it on a local disk, or set {JOURNAL_VARIABLE}=delete and use it "
                "from one machine at a time.",
            )
        return chosen or "wal"

    def _settle(self) -> None:
        """Check what the file is and bring it to the present schema."""
        try:
            first = self._connect_reader()
            try:
                with sqlite.translated():
                    present = migrate.version(first, self.name)
                    if present != migrate.head():
                        self._migrate(first)
            except BaseException:
                first.close()
                raise
        except Corrupt as error:
            raise Corrupt(f"{self.name} is damaged or cut off: it was left as it was.") from error
        first.execute("pragma query_only = on")
        self._open.add(first)
        self._idle.append(first)

    def _migrate(self, connection: apsw.Connection) -> None:
        if self.read_only:
            raise ReadOnly(f"{self.name} needs a newer schema, but it cannot be written.")
        self._set_journal_mode(connection)
        migrate.migrate(connection, self.path, self.name)

    def _set_journal_mode(self, connection: apsw.Connection) -> None:
        if self.path is not None:
            connection.pragma("journal_mode", self._journal_mode)
            sqlite.verify_pragma(connection, "journal_mode", self._journal_mode)

    def _connect_reader(self) -> apsw.Connection:
        return sqlite.connect(
            self._target, sqlite.READ_ONLY if self.read_only else sqlite.READ_WRITE
        )

    def _connect_writer(self) -> apsw.Connection:
        if self.read_only:
            raise ReadOnly(
                f"{self.name} cannot be written: the file or its folder is read-only.",
                hint="Check its permissions, or copy it to a folder you own.",
            )
        connection = sqlite.connect(self._target)
        with self._lock:
            self._open.add(connection)
        with sqlite.translated():
            self._set_journal_mode(connection)
            connection.set_wal_hook(self._note_log)
            level = 2 if self.durability == "full" else 1
            connection.pragma("synchronous", level)
            sqlite.verify_pragma(connection, "synchronous", level)
        return connection

    @contextlib.contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Yield a connection that sees one unchanging snapshot of the file."""
        self._writer.refuse_after_fork()
        connection = self._borrow()
        try:
            with sqlite.translated():
                connection.execute("begin")
                try:
                    yield connection
                finally:
                    if connection.in_transaction:
                        connection.execute("rollback")
        finally:
            self._give_back(connection)

    def _borrow(self) -> apsw.Connection:
        with self._lock:
            if self._closed:
                raise StorageError("The store is closed.", hint="Open a new MemoryStore.")
            if self._idle:
                return self._idle.pop()
        connection = self._connect_reader()
        connection.execute("pragma query_only = on")
        with self._lock:
            self._open.add(connection)
        return connection

    def _give_back(self, connection: apsw.Connection) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(connection)
                return
            self._open.discard(connection)
        connection.close()

    def write(self, job: Job[T]) -> T:
        """Run `job` on the write connection, commit, and return its result."""
        return self._writer.run(job)

    @property
    def closed(self) -> bool:
        """Say whether `close` was called."""
        return self._closed

    def settle(self) -> None:
        """Do the chores of a quiet moment now."""
        self._writer.rest()

    def when_quiet(self, chore: Callable[[apsw.Connection], None]) -> None:
        """Add a chore that the writer does a second after the last write, and at the end."""
        self._chores.append(chore)

    def _note_log(self, connection: apsw.Connection, name: str, pages: int) -> int:
        """Fold the log in as SQLite does by itself, and remember how long it is."""
        self._log_pages = pages
        if pages >= FOLD_PAGES:
            connection.wal_checkpoint(name, apsw.SQLITE_CHECKPOINT_PASSIVE)
        return apsw.SQLITE_OK

    def _trim_log(self, connection: apsw.Connection) -> None:
        """Start the log anew when readers that never all pause have let it grow."""
        if self._log_pages >= TRIM_PAGES:
            self._log_pages = 0
            self._upkeep(connection, [])

    def _rest(self, connection: apsw.Connection) -> None:
        """Do the chores and fold the log into the file, so that a plain copy is whole."""
        self._upkeep(connection, self._chores)

    def _upkeep(
        self, connection: apsw.Connection, chores: Sequence[Callable[[apsw.Connection], None]]
    ) -> None:
        """Give way to others at once: a user's write may be waiting behind this."""
        connection.set_busy_handler(sqlite.jittered_wait(UPKEEP_S))
        try:
            for chore in chores:
                chore(connection)
            if self.path is not None:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except (apsw.BusyError, apsw.LockedError):
            return  # somebody reads or writes; the next quiet moment will do
        except apsw.Error as error:
            _log.warning("Upkeep of %s is put off: %s", self.name, error)
        finally:
            connection.set_busy_handler(sqlite.jittered_wait(sqlite.BUSY_S))

    def abandon(self) -> None:
        """Forget the connections without closing them, in a process that did not open them."""
        self._lock = threading.Lock()  # the old one may be held by a thread that is not here
        for connection in self._open:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._closed = True

    def close(self) -> None:
        """End every connection, the last of which leaves only the file; harmless when repeated."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            idle, self._idle = self._idle, []
            self._open.difference_update(idle)
        self._writer.close()
        for connection in idle:
            connection.close()
