"""Compare a file's tables, indexes, views and triggers with those of its schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import apsw

from houkai.storage import connection as sqlite
from houkai.storage import migrate, vectors
from houkai.storage.derived import mend_index
from houkai.storage.fulltext import Index

_INDEXES: Final[tuple[Index, ...]] = ("memory_fts", "past_fts")
_VECTORS: Final = "memory_vec"

Objects = dict[str, str]
"""What creates each object, by name; "" for the tables that hold a virtual table's data."""


@cache
def _expected() -> Objects:
    return _without_data((name, sql) for _, name, sql in _definitions())


def _without_data(objects: Iterable[tuple[str, str]]) -> Objects:
    """Keep what an object says of itself; the search tables' widths and data are theirs alone."""
    theirs = (*(f"{name}_" for name in _INDEXES), _VECTORS)
    return {
        name: "" if name.startswith(theirs) else " ".join(sql.split()).lower()
        for name, sql in objects
    }


def _objects(connection: apsw.Connection) -> Objects:
    return _without_data((name, sql) for _, name, sql in _listed(connection))


def _listed(connection: apsw.Connection) -> list[tuple[str, str, str]]:
    return connection.execute(  # type: ignore[return-value]
        """select type, name, coalesce(sql, '') from sqlite_schema
           where name not like 'sqlite_%'"""
    ).fetchall()


def missing(connection: apsw.Connection) -> list[str]:
    """Name what the schema has and the file has not, or has in another form."""
    there = _objects(connection)
    return [name for name, sql in _expected().items() if there.get(name) != sql]


def foreign(connection: apsw.Connection) -> list[str]:
    """Name what the file has and the schema has not; a trigger could act on every write."""
    expected = _expected()
    return [
        name
        for name in _objects(connection)
        if name not in expected and not name.startswith(f"{_VECTORS}_")
    ]


def mend(connection: apsw.Connection) -> None:
    """Create the indexes, views, triggers and search tables that are missing."""
    gone = missing(connection)
    for kind, name, sql in _definitions():
        if name in gone and kind in ("index", "view", "trigger"):
            connection.execute(f"drop {kind} if exists {name}")
            connection.execute(sql)
    for table in _INDEXES:
        if any(one == table or one.startswith(f"{table}_") for one in gone):
            connection.execute(f"drop table if exists {table}")
            for _, name, sql in _definitions():
                if name == table:
                    connection.execute(sql)
            mend_index(connection, table)
    if any(one.startswith(_VECTORS) for one in gone):
        vectors.rebuild(connection)


@cache
def _definitions() -> list[tuple[str, str, str]]:
    """Return (type, name, SQL) of everything in a fresh file."""
    fresh = _fresh()
    found = _listed(fresh)
    fresh.close()
    return found


@cache
def columns(table: str) -> Mapping[str, int]:
    """Return where in a table's records each column is."""
    fresh = _fresh()
    found = fresh.execute("select name, cid from pragma_table_info(?)", (table,)).fetchall()
    fresh.close()
    return {str(name): int(str(at)) for name, at in found}


def _fresh() -> apsw.Connection:
    """Return an empty database in RAM that has the present schema."""
    fresh = sqlite.connect("file::memory:")
    for _, step in migrate.steps():
        fresh.execute(step)
    return fresh
