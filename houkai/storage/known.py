"""What the write connection remembers of the file from one job to the next.

Each write needs the journal's last operation, the model, a collection's number: to ask the file
anew took as many statements as the write itself. They hold as long as nothing but journaled jobs
has changed the file, which two counters of SQLite tell: one for other connections, one for this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from houkai.storage.vectors import StoredModel


@dataclass
class Known:
    """Facts of the file, each None or missing until somebody has asked for it."""

    version: int = -1
    changes: int = -1
    writable: bool = False
    """Whether the schema is the one this houkai writes."""
    head: tuple[int, float, bytes] | None = None
    """Number, moment and hash of the last operation."""
    model: StoredModel | None = None
    collections: dict[str, int] = field(default_factory=dict)
    deferred: int | None = None
    """A number from which on meta.deferred covers new memories."""


class WriteConnection(apsw.Connection):
    """A connection that has a place for what is known."""

    known: Known


def of(connection: apsw.Connection) -> Known:
    """Return what is known inside a journaled job; any other connection remembers nothing."""
    return getattr(connection, "known", None) or Known()


def begin(connection: apsw.Connection) -> None:
    """Forget everything at the start of a transaction if others have changed the file."""
    if not isinstance(connection, WriteConnection):
        return
    version: int = connection.execute("pragma data_version").get
    _check(connection, version)


def recall(connection: apsw.Connection) -> Known:
    """Return what is known at the start of a job; nothing if another has changed a row unseen."""
    if not isinstance(connection, WriteConnection):
        return Known()
    return _check(connection, connection.known.version)


def _check(connection: WriteConnection, version: int) -> Known:
    known, changes = connection.known, connection.total_changes()
    if (known.version, known.changes) != (version, changes):
        known = connection.known = Known(version, changes)
    return known


def confirm(connection: apsw.Connection, known: Known) -> None:
    """Let what is known stand once a job has done all its changes."""
    known.changes = connection.total_changes()


def sure(connection: apsw.Connection) -> Known | None:
    """Return what is known at the end of a transaction, if nothing has changed it since.

    FTS5 changes rows at the commit; `confirm` lets what is known stand then.
    """
    if not isinstance(connection, WriteConnection):
        return None
    known = connection.known
    return known if known.changes == connection.total_changes() else None


def forget(connection: apsw.Connection) -> None:
    """Forget everything, as after a rollback, which the counters do not show."""
    if isinstance(connection, WriteConnection):
        connection.known = Known()
