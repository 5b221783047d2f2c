"""What several test modules share: a clock to set, snapshots to compare, processes to start."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw

from houkai import HoukaiError, Memory, MemoryStore
from houkai.storage import indexing

ROOT = Path(__file__).parent.parent
START = 1_700_000_000.0
TOUCHED = ("access_count", "last_accessed")


class Clock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now: float = START) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        """Move the clock, back when negative, and return the new moment."""
        self.now += seconds
        return self.now


def plain(memories: Iterable[Memory]) -> dict[str, dict[str, Any]]:
    """Return memories by id without access counts, links in a fixed order."""
    found = {}
    for memory in memories:
        fields = {k: v for k, v in memory.to_dict().items() if k not in TOUCHED}
        fields["links"] = sorted(fields["links"], key=lambda link: (link["to"], link["rel"]))
        found[memory.id] = fields
    return found


EVERYTHING: Any = {
    "include_superseded": True,
    "include_expired": True,
    "include_retired": True,
}


def contents(store: MemoryStore) -> dict[str, dict[str, Any]]:
    """Return everything a collection holds now, hidden memories too."""
    return plain(store.list_recent(None, **EVERYTHING))


def texts(memories: Iterable[Memory]) -> list[str]:
    """Return the texts in the order given."""
    return [memory.text for memory in memories]


def dump(connection: apsw.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table that stores something, shadow tables too."""
    names = connection.execute(
        """select name from sqlite_schema where type = 'table'
           and sql not like 'create virtual table%' order by name"""
    ).fetchall()
    schema = connection.execute("select type, name, sql from sqlite_schema order by 1, 2")
    found: dict[str, list[tuple[Any, ...]]] = {"sqlite_schema": schema.fetchall()}
    for (name,) in names:
        rows = connection.execute(f'select * from "{name}"').fetchall()
        found[name] = sorted(rows, key=repr)
    return found


def dump_of(store: MemoryStore) -> dict[str, list[tuple[Any, ...]]]:
    """Return every stored row of an open store's file."""
    with store.read() as connection:
        return dump(connection)


def sha256(path: Path) -> str:
    """Return the hash of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def folder(path: Path) -> list[str]:
    """Return the names of what lies beside a file, itself too."""
    return sorted(entry.name for entry in path.parent.iterdir() if entry.name != "home")


def is_one_sentence(error: HoukaiError) -> bool:
    """Say whether an error is what a person can read: one line, no driver's jargon."""
    message = str(error)
    jargon = ("apsw", "Traceback", "sqlite3_")
    return (
        message.endswith(".")
        and "\n" not in message
        and len(message) < 300
        and not any(word in message for word in jargon)
    )


def obey_permissions() -> None:
    """Make permission bits bind this process, as they bind everybody but root on Linux."""
    if os.geteuid() != 0:
        return
    version = ctypes.c_uint32 * 2
    sets = ctypes.c_uint32 * 6  # effective, permitted and inheritable, twice: none of each
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset(version(0x20080522, 0), sets()) != 0:
        raise OSError(ctypes.get_errno(), "capset")


PATIENCE_S = 120
"""How long a child process may take: only one that hangs takes longer."""


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a child process that imports this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", **more}


def start(code: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start Python on a piece of code; it reads its arguments from sys.argv."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def run(code: str, *arguments: str, **options: Any) -> str:
    """Run Python on a piece of code and return what it printed; fail with what it complained of."""
    process = start(code, *arguments, **options)
    try:
        out, complaint = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"It hangs; until then it said: {process.communicate()}") from None
    assert process.returncode == 0, complaint
    return out


def caught_up(store: MemoryStore) -> MemoryStore:
    """Return a store whose search table holds what writes have put off."""
    while store.db.write(lambda connection: indexing.enter_next(connection, 1_000)):
        pass
    return store
