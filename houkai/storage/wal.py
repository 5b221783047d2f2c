"""Keep the write-ahead log short: fold it into the file as it grows, empty it in quiet moments."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import apsw

from houkai.storage.connection import BUSY_S, jittered_wait

FOLD_PAGES: Final = 2_000
"""Growth of the log, 8 MiB, at which the writer folds it into the file."""
TRIM_PAGES: Final = 4_000
"""Length from which it also waits for readers to let the log start anew."""
TRIM_S: Final = 0.1
"""How long it waits for each TRIM_PAGES of the log: the longer it is, the more that is worth."""
LONGEST_TRIM_S: Final = 5.0

Chore = Callable[[apsw.Connection], None]
_log = logging.getLogger(__name__)


class Log:
    """The log of one open file, looked after by its writer between transactions.

    Never inside a commit, as SQLite does by itself: there a checkpoint that fails would make a
    commit that stands look like one that does not.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._pages = 0
        self._folded = 0
        self.chores: list[Chore] = []
        self.pressing: list[Chore] = []
        """Chores that are not left to a quiet moment while much is written."""

    def watch(self, connection: apsw.Connection) -> None:
        """Take note of the log's length at every commit of the write connection."""
        connection.set_wal_hook(self._note)

    def _note(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        if pages < self._pages:
            self._folded = 0
        self._pages = pages
        return apsw.SQLITE_OK

    def fold(self, connection: apsw.Connection) -> None:
        """Fold the log into the file when it has grown enough."""
        if self._pages - self._folded < FOLD_PAGES:
            return
        self._folded = self._pages
        for chore in self.pressing:
            self._patiently(connection, TRIM_S, chore)
        if self._pages < TRIM_PAGES:
            self._checkpoint(connection, apsw.SQLITE_CHECKPOINT_PASSIVE, 0.0)
        else:
            patience = min(LONGEST_TRIM_S, self._pages / TRIM_PAGES * TRIM_S)
            self._checkpoint(connection, apsw.SQLITE_CHECKPOINT_TRUNCATE, patience)

    def rest(self, connection: apsw.Connection) -> None:
        """Do the chores and empty the log, so that a plain copy of the file is whole."""
        for chore in self.chores:
            self._patiently(connection, TRIM_S, chore)
        self._checkpoint(connection, apsw.SQLITE_CHECKPOINT_TRUNCATE, TRIM_S)

    def _checkpoint(self, connection: apsw.Connection, mode: int, patience: float) -> None:
        self._patiently(connection, patience, lambda held: held.wal_checkpoint(mode=mode))

    def _patiently(
        self,
        connection: apsw.Connection,
        patience: float,
        chore: Callable[[apsw.Connection], object],
    ) -> None:
        """Do a chore but wait only so long for others: a user's write may be waiting behind it."""
        connection.set_busy_handler(jittered_wait(patience))
        try:
            chore(connection)
        except (apsw.BusyError, apsw.LockedError):
            pass  # somebody reads or writes; the next quiet moment will do
        except Exception as error:  # noqa: BLE001 - no write of a user may fail for a chore
            _log.warning("Upkeep of %s is put off: %s", self._name, error)
        finally:
            connection.set_busy_handler(jittered_wait(BUSY_S))
