"""Open one SQLite connection the way every part of houkai needs it, and translate its errors."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import logging
import os
import random
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import apsw

from houkai.errors import (
    Busy,
    Corrupt,
    ExtraMissing,
    Foreign,
    Full,
    HoukaiError,
    ReadOnly,
    StorageError,
)

BUSY_S: Final = 20.0
_log = logging.getLogger(__name__)
READ_WRITE: Final = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
READ_ONLY: Final = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI

_PRAGMAS: Final[tuple[tuple[str, str | int, str | int], ...]] = (
    ("foreign_keys", "on", 1),
    ("trusted_schema", "off", 0),
    ("cell_size_check", "on", 1),
    ("temp_store", "memory", 2),
    ("journal_size_limit", 16 * 1024 * 1024, 16 * 1024 * 1024),
    ("cache_size", -16_000, -16_000),
)


@cache
def _vec_extension() -> str:
    """Find the sqlite-vec library without importing its package, which would import numpy."""
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or not spec.submodule_search_locations:
        raise ExtraMissing("The package sqlite-vec is missing.", hint="Run: pip install sqlite-vec")
    return str(Path(spec.submodule_search_locations[0]) / "vec0")


def uri(path: Path, **options: str) -> str:
    """Return the SQLite URI of a file, with its special characters escaped."""
    name = os.fsencode(path.absolute())
    text = "".join(chr(b) if b < 128 and b not in b"%?#" else f"%{b:02x}" for b in name)
    query = "&".join(f"{key}={value}" for key, value in options.items())
    return f"file:{text}?{query}" if query else f"file:{text}"


def jittered_wait(limit_s: float) -> Callable[[int], bool]:
    """Return a busy handler that sleeps 1 to 10 ms at random until `limit_s` has passed.

    SQLite's own timeout backs off to 100 ms steps, so one of several busy processes starves.
    Sleeps of a millisecond let 8 writers on 2 processors spend half their time asking.
    """
    started = 0.0

    def wait(attempt: int) -> bool:
        nonlocal started
        moment = time.monotonic()
        if attempt == 0:
            started = moment
        if moment - started > limit_s:
            return False
        time.sleep(random.uniform(0.001, 0.010))
        return True

    return wait


def while_busy(act: Callable[[], object], limit_s: float = BUSY_S) -> None:
    """Repeat what SQLite refuses at once, without asking the busy handler, while others are busy.

    It does so where two connections read and both want to write, as at a change of journal mode.
    """
    wait = jittered_wait(limit_s)
    for attempt in itertools.count():
        try:
            act()
            return
        except apsw.BusyError:
            if not wait(attempt):
                raise


def connect(
    target: str,
    flags: int = READ_WRITE,
    made: type[apsw.Connection] = apsw.Connection,
    *,
    busy_s: float = BUSY_S,
) -> apsw.Connection:
    """Open a connection with the vector extension and verified pragmas. Raises StorageError."""
    with translated():
        connection = made(target, flags=flags)
        try:
            _prepare(connection, busy_s)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: apsw.Connection, busy_s: float) -> None:
    connection.set_busy_handler(jittered_wait(busy_s))
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.enable_load_extension(True)
    connection.load_extension(_vec_extension())
    connection.enable_load_extension(False)
    for name, wanted, expected in _PRAGMAS:
        connection.execute(f"pragma {name} = {wanted}")
        verify_pragma(connection, name, expected)


def shut(connection: apsw.Connection) -> None:
    """Close a connection; if its log cannot be folded into the file, that is done another time."""
    try:
        connection.close()
    except apsw.Error as error:
        _log.warning("A connection was closed without folding its log: %s", error)


def verify_pragma(connection: apsw.Connection, name: str, expected: str | int) -> None:
    """Read a pragma back, since SQLite ignores one that it does not know or cannot set."""
    actual = connection.pragma(name)
    if actual != expected:
        raise StorageError(f"SQLite did not accept {name}: it is {actual!r}, not {expected!r}.")


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn SQLite's errors into houkai's, one sentence each."""
    try:
        yield
    except apsw.Error as error:
        raise translate(error) from error
    except UnicodeDecodeError as error:
        raise Corrupt("The memory file is damaged: it holds text that is none.") from error


def translate(error: apsw.Error) -> HoukaiError:
    """Return the houkai error that says what this SQLite error means to a user."""
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return Busy(
                "Another process kept the memory file busy for longer than the wait allows."
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return ReadOnly(
                "The memory file, or the folder it is in, cannot be written.",
                hint="Check its permissions, or copy the file to a folder you own.",
            )
        case apsw.FullError():
            return Full("The disk is full, so nothing was written.")
        case apsw.IOError():
            return StorageError(
                f"The disk failed to read or write the memory file ({error}).",
                hint="What was stored before is intact; see to the disk and try again.",
            )
        case apsw.NotADBError():
            return Foreign("The file is not a SQLite database, so it is not a houkai memory file.")
        case apsw.SQLError() if str(error).startswith("no such"):
            return Corrupt(f"The memory file is damaged: its schema is not whole ({error}).")
        case apsw.CorruptError():
            return Corrupt(f"The memory file is damaged ({error}).")
        case apsw.CantOpenError():
            return StorageError(
                "The memory file cannot be opened.",
                hint="Check that its folder exists and that you may write there.",
            )
        case _:
            return StorageError(f"SQLite reported: {error}.")
