"""Bring a file to the present schema: numbered SQL files, one transaction, a backup first."""

from __future__ import annotations

import os
import re
import time
import uuid
from functools import cache
from pathlib import Path
from typing import Final

import apsw

from houkai.errors import Corrupt, Foreign, SchemaTooNew
from houkai.storage.files import APPLICATION_ID, sync_folder

FORMAT: Final = 1


@cache
def steps() -> tuple[tuple[int, str], ...]:
    """Return every schema file as (number, SQL), in order, from the wheel or the checkout."""
    package = Path(__file__).parent.parent
    folder = next(f for f in (package / "schema", package.parent / "schema") if f.is_dir())
    found = [
        (int(match[1]), file.read_text(encoding="utf-8"))
        for file in sorted(folder.glob("*.sql"))
        if (match := re.match(r"(\d{4})_", file.name))
    ]
    return tuple(found)


def head() -> int:
    """Return the number of the newest schema file."""
    return steps()[-1][0]


def version(connection: apsw.Connection, name: str) -> int:
    """Return a file's schema number, 0 for an empty one. Raises Foreign, SchemaTooNew."""
    application = connection.pragma("application_id")
    number = int(connection.pragma("user_version"))
    if application != APPLICATION_ID:
        if number == 0 and application == 0 and _is_empty(connection):
            return 0
        raise Foreign(
            f"{name} is a database of another program.",
            hint="It was left as it was; choose another path.",
        )
    if number < 1:
        raise Corrupt(f"{name} is a houkai memory file without a schema.")
    if number > head():
        raise SchemaTooNew(
            f"{name} was written by a newer houkai (schema {number}, this one knows {head()}).",
            hint="Run: pip install --upgrade houkai",
        )
    return number


def refuse_newer(connection: apsw.Connection) -> None:
    """Refuse to write where a newer houkai has migrated the file since it was opened."""
    # Not connection.pragma, which prepares its statement anew each time.
    number: int = connection.execute("pragma user_version").get
    if number != head():
        raise SchemaTooNew(
            f"A newer houkai has changed the file's schema meanwhile, to {number}"
            f" (this one knows {head()}); reading goes on.",
            hint="Run: pip install --upgrade houkai, and start this program again.",
        )


def _is_empty(connection: apsw.Connection) -> bool:
    return bool(connection.execute("select count(*) = 0 from sqlite_schema").get)


def migrate(connection: apsw.Connection, path: Path | None, name: str) -> None:
    """Apply the missing steps in one transaction; a rival that was faster is respected."""
    present = version(connection, name)
    if present == head():
        return
    if present:
        _check(connection, name)
        if path is not None:
            _back_up(connection, path, present)
    connection.execute("begin immediate")
    try:
        _apply(connection, version(connection, name))
        connection.execute("commit")
    except BaseException:
        if connection.in_transaction:
            connection.execute("rollback")
        raise


def _apply(connection: apsw.Connection, present: int) -> None:
    for number, sql in steps():
        if number > present:
            connection.execute(sql)
    if present == 0:
        _stamp(connection)
    connection.execute(f"pragma application_id = {APPLICATION_ID}")
    connection.execute(f"pragma user_version = {head()}")


def _stamp(connection: apsw.Connection) -> None:
    connection.executemany(
        "insert into meta(key, value) values (?, ?)",
        [
            ("format", FORMAT),
            ("store_id", str(uuid.uuid4())),
            ("created_at", time.time()),
            ("vector_epoch", 0),
        ],
    )


def _check(connection: apsw.Connection, name: str) -> None:
    """Refuse to change a damaged file: a migration could make the damage permanent."""
    verdict = connection.execute("pragma quick_check(1)").get
    if verdict != "ok":
        raise Corrupt(f"{name} is damaged ({verdict}), so it was not migrated.")


def _back_up(connection: apsw.Connection, path: Path, present: int) -> None:
    """Copy the file beside itself before a step changes what a user stored.

    The copy of an earlier attempt is replaced: the user may have gone on writing since.
    """
    copy = path.with_name(f"{path.name}.before-schema-{head()}-from-{present}.bak")
    part = path.with_name(f"{copy.name}.{uuid.uuid4()}.part")
    try:
        connection.execute("vacuum into ?", (os.fspath(part),))
        if _user_version(part) == present:  # else a rival migrated meanwhile, with its own copy
            with part.open("rb+") as stream:
                os.fsync(stream.fileno())
            os.replace(part, copy)
            sync_folder(copy.parent)
    finally:
        part.unlink(missing_ok=True)


def _user_version(path: Path) -> int:
    with path.open("rb") as stream:
        return int.from_bytes(stream.read(64)[60:64], "big")
