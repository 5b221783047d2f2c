"""Read the journal: entries, past states, and what an undo would put back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import apsw

from houkai.errors import Corrupt
from houkai.model import JournalEntry
from houkai.storage.rows import Image, split_link_key

_BEFORE: Final = """(select p.after from change p where p.kind = c.kind and p.key = c.key
  and p.operation < c.operation order by p.operation desc limit 1)"""
_OPERATION: Final = """o.seq, o.id, o.at, o.op, o.actor, o.collection, o.undoes, o.undone_by,
  o.session, o.meta"""


_ABOUT: Final = """select pk from change where kind = 'memory' and key = :id
  union all
  select pk from change where kind = 'link' and key >= :id || '|' and key < :id || '}'
  union all
  select pk from change where counterpart = :id"""
"""The changes that concern the memory `:id`: its own, its links both ways."""
OPERATIONS_ABOUT: Final = f"select operation from change where pk in ({_ABOUT})"


def decode(blob: bytes | None) -> Image | None:
    """Return the image that a journal blob holds. Raises Corrupt."""
    try:
        return None if blob is None else apsw.jsonb_decode(blob)
    except ValueError as error:
        raise Corrupt(f"The journal is damaged: an entry cannot be read ({error}).") from error


def changes(
    connection: apsw.Connection, operation: int
) -> list[tuple[str, str, Image | None, Image | None]]:
    """Return (kind, key, before, after) of every row an operation changed."""
    rows = connection.execute(
        f"""select c.kind, c.key, {_BEFORE}, c.after from change c
            where c.operation = ? order by c.pk""",
        (operation,),
    )
    return [(kind, key, decode(before), decode(after)) for kind, key, before, after in rows]


def entries_of(connection: apsw.Connection, operation: int) -> list[JournalEntry]:
    """Return one entry for each row that an operation changed."""
    rows = connection.execute(
        f"""select {_OPERATION}, c.kind, c.key, {_BEFORE}, c.after
            from change c join operation o on o.seq = c.operation
            where c.operation = ? order by c.pk""",
        (operation,),
    )
    return [_entry(row) for row in rows]


def entries_about(connection: apsw.Connection, id: str) -> list[JournalEntry]:
    """Return every change that concerns a memory, oldest first: its own, its links both ways."""
    rows = connection.execute(
        f"""select {_OPERATION}, c.kind, c.key, {_BEFORE}, c.after
            from change c join operation o on o.seq = c.operation
            where c.pk in ({_ABOUT})
            order by c.operation, c.pk""",
        {"id": id},
    )
    return [_entry(row) for row in rows]


def _entry(row: tuple[Any, ...]) -> JournalEntry:
    (seq, uuid, at, op, actor, collection, undoes, undone_by, session, meta,
     kind, key, before, after) = row  # fmt: skip
    extra: dict[str, Any] = decode(meta) or {}
    id = key
    if kind == "link":
        id, rel, target = split_link_key(key)
        extra = {**extra, "src_id": id, "dst_id": target, "rel": rel}
    return JournalEntry(
        ts=at, op=op, actor=actor, id=id, before=decode(before), after=decode(after), meta=extra,
        scope=collection, operation=seq, operation_id=uuid, kind=kind, undoes=undoes,
        undone_by=undone_by, session=session,
    )  # fmt: skip


def operations(
    connection: apsw.Connection, sql: str, values: dict[str, Any]
) -> Iterator[JournalEntry]:
    """Yield one entry for each operation that meets a condition on `operation o`."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select {_OPERATION},
              (select count(*) from change c where c.operation = o.seq),
              (select min(c.pk) from change c where c.operation = o.seq)
            from operation o where {sql}""",
        values,
    ).fetchall()
    for *head, number, first in rows:
        detail = connection.execute(
            f"select c.kind, c.key, {_BEFORE}, c.after from change c where c.pk = ?", (first,)
        ).get
        entry = _entry((*head, *(detail or ("memory", "*", None, None))))
        if number != 1:
            entry = _whole(entry, number)
        yield entry


def _whole(entry: JournalEntry, number: int) -> JournalEntry:
    """Return the entry of an operation on several rows: no images, the first row's id if alone."""
    values = {**entry.__dict__, "before": None, "after": None, "changes": number}
    return JournalEntry(**{**values, "id": "*" if number else entry.id})


def seq_at(connection: apsw.Connection, moment: float) -> int:
    """Return the last operation at or before a moment, 0 when there is none."""
    seq: int | None = connection.execute(
        "select seq from operation where at <= ? order by at desc, seq desc limit 1", (moment,)
    ).get
    return seq or 0


def changed_between(
    connection: apsw.Connection, low: int, high: int, collection: str
) -> list[tuple[str, str]]:
    """Return (kind, key) of the rows that operations of a collection changed after one, up to
    another.
    """
    rows: list[tuple[Any, ...]] = connection.execute(
        """select c.kind, c.key from change c join operation o on o.seq = c.operation
           where c.operation > ? and c.operation <= ?
             and (o.collection is null or o.collection = ?)
           group by c.kind, c.key order by min(c.pk)""",
        (low, high, collection),
    ).fetchall()
    return rows


def last_at(connection: apsw.Connection) -> float:
    """Return the moment of the last operation, 0 when there is none."""
    at: float | None = connection.execute("select at from operation order by seq desc limit 1").get
    return at or 0.0


def state(connection: apsw.Connection, seq: int) -> Iterator[tuple[str, str, Image]]:
    """Yield (kind, key, image) of every memory and link as it was once operation `seq` was done.

    The plus keeps SQLite from looking up each row by its key: in order they are read five times
    as fast.
    """
    rows = connection.execute(
        """select kind, key, after from change
           where +kind in ('memory', 'link') and operation <= ? and until > ? and after is not null
           order by operation, pk""",
        (seq, seq),
    )
    for kind, key, after in rows:
        yield kind, key, decode(after) or {}


def image_at(connection: apsw.Connection, seq: int, kind: str, key: str) -> Image | None:
    """Return one row's image as it was once operation `seq` was done."""
    return decode(
        connection.execute(
            """select after from change where kind = ? and key = ? and operation <= ?
               order by operation desc limit 1""",
            (kind, key, seq),
        ).get
    )
