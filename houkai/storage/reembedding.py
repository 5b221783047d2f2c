"""Change a file's embedding model in steps that may stop anywhere: the SQL of it.

Vectors of the coming model are gathered beside those of the present one. meta.reembed names the
coming model until the file has changed over; only one can be coming.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import apsw

from houkai.errors import ModelMismatch
from houkai.storage import vectors
from houkai.storage.vectors import Encoded

_LAST_NUMBER: Final = "select max(pk) from embedding"
_IN_USE: Final = "(select value from meta where key in ('model', 'reembed'))"


@dataclass(frozen=True)
class Source:
    """A table whose texts need vectors."""

    table: str
    key: str = "pk"
    text: str = "text"
    first: int | str = 0
    """What comes before every key."""


SOURCES: Final = (
    Source("memory"),
    Source("past"),
    Source("trash", "id", "body ->> '$.memory.text'", ""),
)
"""What recall shows, what an undo can bring back, and what a restore can."""


class Row(NamedTuple):
    """A text that lacks vectors, and where it stands."""

    key: int | str
    hash: bytes
    text: str


def begin(connection: apsw.Connection, name: str, dim: int, fingerprint: str) -> int:
    """Make a model the coming one, in the place of any other, and return its number."""
    pk = vectors.enter_model(connection, name, dim, fingerprint)
    connection.execute("insert or replace into meta(key, value) values ('reembed', ?)", (pk,))
    return pk


def coming(connection: apsw.Connection) -> str | None:
    """Return the name of the model that a re-embedding has begun with and not arrived at."""
    name: str | None = connection.execute(
        """select name from model where pk = (select value from meta where key = 'reembed')
           and pk is not (select value from meta where key = 'model')"""
    ).get
    return name


def arrived(connection: apsw.Connection, target: int) -> bool:
    """Say whether the file has changed over. Raises ModelMismatch when another model is coming."""
    present, coming = connection.execute(
        """select (select value from meta where key = 'model'),
                  (select value from meta where key = 'reembed')"""
    ).get
    if target not in (present, coming):
        raise ModelMismatch(
            "Another process has begun to change the file over to another model, "
            "so this one has stopped.",
            hint="Run `reembed` with the model you want; nothing is lost.",
        )
    return bool(present == target)


def last(connection: apsw.Connection, source: Source) -> int | str:
    """Return the last key of a table at present."""
    key: int | str | None = connection.execute(f"select max({source.key}) from {source.table}").get
    return source.first if key is None else key


def unembedded(
    connection: apsw.Connection,
    target: int,
    source: Source,
    after: int | str,
    end: int | str | None = None,
    limit: int = 1,
) -> list[Row]:
    """Return rows of a table whose texts lack vectors of a model, in the order of their keys."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select {source.key}, text_hash, {source.text} from {source.table} t
            where {source.key} > ? and {source.key} <= coalesce(?, {source.key}) and not exists (
              select 1 from embedding where text_hash = t.text_hash and model = ?)
            order by 1 limit ?""",
        (after, end, target, limit),
    ).fetchall()
    return [Row(*row) for row in rows]


def enter(
    connection: apsw.Connection, target: int, source: Source, encoded: Mapping[int | str, Encoded]
) -> None:
    """Store vectors, by the keys of the rows that they were made for. Raises ModelMismatch.

    A text that went meanwhile may have been erased for good, and its vectors must not come back.
    """
    arrived(connection, target)
    for key, one in encoded.items():
        if connection.execute(
            f"""select exists (select 1 from {source.table}
                where {source.key} = ? and text_hash = ?)""",
            (key, one.hash),
        ).get:
            vectors.keep(connection, [one], target)


def census(connection: apsw.Connection, target: int) -> tuple[int, int]:
    """Return how many distinct texts there are, and how many lack vectors of a model."""
    total, missing = connection.execute(
        """select count(*), count(*) filter (where not exists (
             select 1 from embedding e where e.text_hash = t.text_hash and e.model = ?))
           from (select text_hash from memory union select text_hash from past
                 union select text_hash from trash) t""",
        (target,),
    ).get
    return total, missing


def change_over(connection: apsw.Connection, target: int, *, complete: bool) -> bool:
    """Make the coming model the file's; False, if it is to be complete, while a text lacks vectors.

    Only the sketch table is still to be filled.
    """
    if arrived(connection, target):
        connection.execute("delete from meta where key = 'reembed' and value = ?", (target,))
        return True
    if complete and any(unembedded(connection, target, one, one.first) for one in SOURCES):
        return False
    connection.execute("insert or replace into meta(key, value) values ('model', ?)", (target,))
    connection.execute("delete from meta where key = 'reembed'")
    vectors.renew_index(connection)
    return True


def drop_leftovers(
    connection: apsw.Connection, after: bytes, limit: int
) -> tuple[bytes | None, int]:
    """Delete vectors that are neither of the present model nor of a coming one.

    All windows of a text go together, since a text with vectors counts as embedded. Returns the
    hash to go on after, None at the end, and the number of texts.
    """
    hashes: list[tuple[Any, ...]] = connection.execute(
        f"""select distinct text_hash from embedding
            where text_hash > ? and model not in {_IN_USE} order by text_hash limit ?""",
        (after, limit),
    ).fetchall()
    last = connection.execute(_LAST_NUMBER).get
    connection.executemany(
        f"delete from embedding where text_hash = ? and model not in {_IN_USE}", hashes
    )
    if connection.execute(_LAST_NUMBER).get != last:  # SQLite gives only numbers behind it again
        vectors.tell_others(connection)
    return hashes[-1][0] if hashes else None, len(hashes)
