"""Change a file's embedding model in steps that may stop anywhere: the SQL of it.

Vectors of the coming model are gathered beside those of the present one. meta.reembed names the
coming model until the file has changed over; only one can be coming.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, get_args

import apsw

from houkai.errors import ModelMismatch
from houkai.storage import vectors

Texts = dict[bytes, str]
Source = Literal["memory", "past"]
SOURCES: Final[tuple[Source, ...]] = get_args(Source)
"""Where texts are that need vectors: what recall shows, and what an undo can bring back."""
END: Final = 2**63 - 1
_IN_USE: Final = "(select value from meta where key in ('model', 'reembed'))"


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
            hint="Run `houkai reembed` with the model you want; nothing is lost.",
        )
    return bool(present == target)


def ends(connection: apsw.Connection) -> dict[Source, int]:
    """Return the last row of each table at present."""
    return {
        source: connection.execute(f"select coalesce(max(pk), 0) from {source}").get
        for source in SOURCES
    }


def unembedded(
    connection: apsw.Connection, target: int, source: Source, after: int, limit: int
) -> tuple[int, Texts]:
    """Return texts of a table that lack vectors of a model, and the row to go on after."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select pk, text_hash, text from {source} t where pk > ?
            and not exists (select 1 from embedding where text_hash = t.text_hash and model = ?)
            order by pk limit ?""",
        (after, target, limit),
    ).fetchall()
    return rows[-1][0] if rows else END, {hash: text for _, hash, text in rows}


def enter(connection: apsw.Connection, target: int, encoded: Sequence[vectors.Encoded]) -> None:
    """Store vectors of a model that is still wanted. Raises ModelMismatch."""
    arrived(connection, target)
    for one in encoded:
        vectors.keep(connection, one, target)


def census(connection: apsw.Connection, target: int) -> tuple[int, int]:
    """Return how many distinct texts the file can show or bring back, and how many lack vectors."""
    total, missing = connection.execute(
        """select count(*), count(*) filter (where not exists (
             select 1 from embedding e where e.text_hash = t.text_hash and e.model = ?))
           from (select text_hash from memory union select text_hash from past) t""",
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
    if complete and any(unembedded(connection, target, name, 0, 1)[1] for name in SOURCES):
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
    connection.executemany(
        f"delete from embedding where text_hash = ? and model not in {_IN_USE}", hashes
    )
    return hashes[-1][0] if hashes else None, len(hashes)
