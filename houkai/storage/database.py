"""One open memory file: snapshots for reading, one door for writing, a clean end."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, TypeVar

import apsw

from houkai.errors import Corrupt, InputError, ReadOnly, StorageError
from houkai.storage import connection as sqlite
from houkai.storage import files, known, migrate, process
from houkai.storage.batch import Job
from houkai.storage.known import WriteConnection
from houkai.storage.pool import Readers, Refusal
from houkai.storage.wal import Chore, Log
from houkai.storage.writer import Writer
from houkai.vocabulary import Durability

T = TypeVar("T")
MEMORY: Final = ":memory:"
JOURNAL_VARIABLE: Final = "HOUKAI_JOURNAL"
SYNCHRONOUS: Final[dict[Durability, int]] = {"full": 2, "normal": 1}
"""SQLite's level: whether the log reaches the disk at every commit, or when it is folded in."""


class Database:
    """A memory file, or a private database in RAM for the path ":memory:"."""

    def __init__(self, path: str | os.PathLike[str], *, durability: Durability = "full") -> None:
        # Absolute, so that it means the same file wherever the process goes from here.
        is_file = os.fspath(path) != MEMORY
        self.path: Path | None = Path(path).expanduser().absolute() if is_file else None
        self.name = MEMORY if self.path is None else str(self.path)
        self.durability: Durability = durability
        self.read_only = False
        self.closed = False
        self._journal_mode = self._choose_journal_mode()
        self._target = self._prepare_target()
        self._log = Log(self.name)
        self._readers = Readers(self._connect_reader)
        self._writer = Writer(self._connect_writer, self._log.fold, self._log.rest)
        process.enter(self)
        self._settle()

    def _prepare_target(self) -> str:
        if self.path is None:
            return f"file:/houkai-{uuid.uuid4()}?vfs=memdb"
        if files.inspect(self.path) is files.Found.NOTHING:
            files.reserve(self.path)
        process.refuse_lost(self.path)
        if not files.writable(self.path):
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
        keep_log = self.path is not None and files.has_log(self.path)
        try:
            with self._readers.lend(self._connect) as first, sqlite.translated():
                # Until the file is known to be ours, it and its log stay as they lie.
                first.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep_log)
                present = migrate.version(first, self.name)
                first.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, False)
                if self._journal_mode == "delete" and not self.read_only:
                    self._set_journal_mode(first)
                if present != migrate.head():
                    self._migrate(first)
                first.execute("pragma query_only = on")
        except BaseException as error:
            self.close()
            if isinstance(error, Corrupt):
                raise Corrupt(
                    f"{self.name} is damaged or cut off: it was left as it was."
                ) from error
            raise

    def _migrate(self, connection: apsw.Connection) -> None:
        if self.read_only:
            raise ReadOnly(f"{self.name} needs a newer schema, but it cannot be written.")
        self._set_journal_mode(connection)
        migrate.migrate(connection, self.path, self.name)

    def _set_journal_mode(self, connection: apsw.Connection) -> None:
        if self.path is not None:
            sqlite.while_busy(lambda: connection.pragma("journal_mode", self._journal_mode))
            sqlite.verify_pragma(connection, "journal_mode", self._journal_mode)

    def _connect(self, made: type[apsw.Connection] = apsw.Connection) -> apsw.Connection:
        flags = sqlite.READ_ONLY if self.read_only else sqlite.READ_WRITE
        return sqlite.connect(self._target, flags, made)

    def _connect_reader(self) -> apsw.Connection:
        connection = self._connect()
        connection.execute("pragma query_only = on")
        return connection

    def _connect_writer(self) -> apsw.Connection:
        if self.read_only:
            raise ReadOnly(
                f"{self.name} cannot be written: the file or its folder is read-only.",
                hint="Check its permissions, or copy it to a folder you own.",
            )
        connection = self._connect(WriteConnection)
        try:
            with sqlite.translated():
                self._prepare_writer(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare_writer(self, connection: apsw.Connection) -> None:
        known.forget(connection)
        self._set_journal_mode(connection)
        # rows.py keeps the word index itself, see fulltext.py; triggers are for other tools.
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        level = SYNCHRONOUS[self.durability]
        for name in ("fullfsync", "checkpoint_fullfsync"):  # macOS: reach the disk, not its cache
            connection.pragma(name, self.durability == "full")
        connection.pragma("synchronous", level)
        sqlite.verify_pragma(connection, "synchronous", level)
        self._log.watch(connection)

    def read(self, *, fresh: bool = False) -> AbstractContextManager[apsw.Connection]:
        """Yield a connection that sees one unchanging snapshot of the file."""
        return self._readers.snapshot(fresh=fresh)

    def write(self, job: Job[T]) -> T:
        """Run `job` on the write connection, commit, and return its result."""
        return self._writer.run(job)

    def rehearse(self, job: Job[T]) -> T:
        """Run `job` as `write` does and return its result, but take back all that it did."""

        class Over(Exception):
            pass

        def act(connection: apsw.Connection) -> T:
            raise Over(job(connection))

        try:
            return self.write(act)
        except Over as over:
            result: T = over.args[0]
            return result

    @property
    def wrote(self) -> bool:
        """Say whether anything was written through this object."""
        return self._writer.began

    def settle(self) -> None:
        """Do the chores of a quiet moment now."""
        self._writer.rest()

    def settle_soon(self) -> None:
        """Have the chores done without waiting for them."""
        self._writer.rest_soon()

    def when_quiet(self, *chores: Chore, pressing: Sequence[Chore] = ()) -> None:
        """Add chores that the writer does a second after the last write, and at the end.

        Pressing ones it does while much is written, as often as it folds the log into the file.
        """
        self._log.chores.extend(chores)
        self._log.pressing.extend(pressing)

    def close(self) -> None:
        """End every connection, the last of which leaves only the file; harmless when repeated."""
        self.closed = True
        self._writer.close()
        self._readers.close()

    def hold(self) -> bool:
        """Close the file until `resume` without ending the store; False when it stays in use."""
        if self.path is None:
            return True
        return all([self._writer.hold(), self._readers.hold()])

    def resume(self) -> None:
        """Go on after `hold`."""
        self._writer.resume()
        self._readers.resume()

    def abandon(self, refusal: Refusal) -> list[apsw.Connection]:
        """Refuse all use in a forked child; return the connections that were in use."""
        self.closed = True
        return [*self._writer.abandon(refusal), *self._readers.abandon(refusal)]
