"""What becomes of open files when the process ends or forks.

SQLite counts a process's locks in memory that a fork copies, though the system gives the child
none of them. A child that then opened the file itself would believe itself locked in while its
parent deletes the log below it. So a fork waits until no connection is open.
"""

from __future__ import annotations

import atexit
import ctypes
import logging
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from houkai.errors import StorageError

if TYPE_CHECKING:
    from houkai.storage.database import Database

opened: weakref.WeakSet[Database] = weakref.WeakSet()
_log = logging.getLogger(__name__)
_fork = threading.RLock()
_held: list[tuple[Database, bool]] = []
_lost: set[tuple[int, int]] = set()
_registered_in = 0


def enter(database: Database) -> None:
    """See to it that a file is at rest in a fork, and closed when the process ends without it.

    It comes before the first connection, and waits for a fork that has counted the files already.
    """
    global _registered_in
    with _fork:
        opened.add(database)
    if _registered_in == os.getpid():
        return
    _registered_in = os.getpid()
    atexit.unregister(close_all)
    atexit.register(close_all)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        # Such a child may end without running atexit's functions, but it runs these.
        sys.modules["multiprocessing.util"].Finalize(None, close_all, exitpriority=-100)


def close_all() -> None:
    """Leave one file behind for each that is still open."""
    for database in list(opened):
        try:
            database.close()
        except Exception:  # noqa: BLE001 - the others must be closed all the same
            _log.exception("%s could not be closed", database.name)


def refuse_lost(path: Path) -> None:
    """Refuse a file that was in use at the moment this process was forked from its parent."""
    if not _lost:
        return
    status = path.stat()
    if (status.st_dev, status.st_ino) in _lost:
        raise StorageError(
            f"{path} was being read or written at the moment this process was forked, so it "
            "cannot be opened safely here.",
            hint="Fork when no recall or write is under way, or start the process afresh (spawn).",
        )


def _before_fork() -> None:
    _fork.acquire()
    for database in list(opened):
        rested = False
        try:
            rested = database.hold()
        except Exception:  # noqa: BLE001 - the fork takes place all the same
            _log.exception("%s could not be brought to rest for a fork", database.name)
        _held.append((database, rested))


def _after_in_parent() -> None:
    for database, _ in _held:
        database.resume()
    _held.clear()
    _fork.release()


def _after_in_child() -> None:
    global _fork
    _fork = threading.RLock()
    for database, rested in _held:
        for connection in database.abandon(_forked):
            # Closing it would write to the memory that the parent's connections share.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        if not rested and database.path is not None and database.path.exists():
            status = database.path.stat()
            _lost.add((status.st_dev, status.st_ino))
    _held.clear()
    opened.clear()


def _forked() -> StorageError:
    return StorageError(
        "This store was opened before the process forked.",
        hint="Open a new MemoryStore in the child process.",
    )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_in_parent,
        after_in_child=_after_in_child,
    )
