"""Enter into the search table what writes have put off, a little in each quiet moment.

vec0 takes longer for one memory than all the rest of a write. From meta.deferred on memories may
be missing from it; whoever searches it takes them from the vectors themselves. A re-embedding that
was killed while it filled the table anew is finished here too: until then nobody searches it.
"""

from __future__ import annotations

import time
from typing import Any, Final

import apsw

from houkai.storage import known, vectors

SLICE: Final = 500
"""Memories entered in one transaction; vec0 takes 35 to 75 µs each."""
PATIENCE_S: Final = 0.1
"""How long a write that comes meanwhile may have to wait."""
BACKLOG: Final = 20_000
"""Memories that may be left out: a process that does not stay compares each at every recall."""


def defer(connection: apsw.Connection, pk: int) -> None:
    """Note that a new memory is to be entered later, with those after it."""
    facts = known.of(connection)
    if facts.deferred is not None and facts.deferred <= pk:
        return
    connection.execute(
        """insert into meta(key, value) values ('deferred', ?) on conflict(key)
           do update set value = excluded.value where excluded.value < value""",
        (pk,),
    )
    facts.deferred = pk


def deferred(connection: apsw.Connection) -> int | None:
    """Return the number from which on memories may be missing, None when all are in."""
    pk: int | None = connection.execute("select value from meta where key = 'deferred'").get
    return pk


def enter_next(connection: apsw.Connection, limit: int) -> bool:
    """Enter the next memories that were put off; False when none is left."""
    first = deferred(connection)
    if first is None:
        return False
    pks: list[tuple[Any, ...]] = connection.execute(
        "select pk from memory where pk >= ? order by pk limit ?", (first, limit)
    ).fetchall()
    if len(pks) < limit:
        connection.execute("delete from meta where key = 'deferred'")
    else:
        connection.execute("update meta set value = ? where key = 'deferred'", (pks[-1][0] + 1,))
    if pks:
        vectors.enter_between(connection, first, pks[-1][0] + 1)
    return len(pks) == limit


def keep_up(connection: apsw.Connection) -> None:
    """Enter some while much is written, once the backlog is long: a bulk load may be all that a
    process does, and whoever only reads enters nothing.
    """
    first = deferred(connection)
    if first is not None and connection.execute("select max(pk) from memory").get - first > BACKLOG:
        catch_up(connection)


def catch_up(connection: apsw.Connection) -> None:
    """Enter what was put off until it is done or somebody may be waiting, in short transactions.

    They need not reach the disk at once: what is lost is entered again.
    """
    if deferred(connection) is None and vectors.is_filled(connection):
        return
    deadline = time.monotonic() + PATIENCE_S
    level = connection.pragma("synchronous")
    connection.pragma("synchronous", 1)
    try:
        more = True
        while more and time.monotonic() < deadline:
            connection.execute("begin immediate")
            more = enter_next(connection, SLICE) or vectors.fill_index(connection, SLICE)
            connection.execute("commit")
    finally:
        if connection.in_transaction:
            connection.execute("rollback")
        connection.pragma("synchronous", level)
