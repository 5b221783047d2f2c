"""Find damage in what nothing else can tell: pages, references, the journal, the memories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import apsw

from houkai.storage import chain
from houkai.storage.history import decode
from houkai.storage.journal import FOREVER
from houkai.storage.rows import KINDS, Image

_OF_AN_INDEX: Final = re.compile(
    r"row \S+ missing from index|wrong # of entries in index|non-unique entry in index"
    r"|malformed inverted index|fts5: "
)
KEYS: Final = {"format", "store_id", "created_at", "vector_epoch"}
"""What `meta` holds in every file."""
MOST: Final = 100
"""Messages of SQLite's to read; a file with more is lost in any case."""


def _messages(connection: apsw.Connection) -> list[str]:
    try:
        found: list[tuple[Any, ...]] = connection.execute(
            f"pragma integrity_check({MOST})"
        ).fetchall()
    except apsw.CorruptError as error:  # damage that the check itself stumbles over
        return [str(error)]
    return [line for (text,) in found for line in str(text).splitlines() if line != "ok"]


def broken_pages(connection: apsw.Connection) -> list[str]:
    """Return SQLite's complaints about the file but for those about indexes."""
    return [line for line in _messages(connection) if not _OF_AN_INDEX.search(line)]


def broken_indexes(connection: apsw.Connection) -> list[str]:
    """Return SQLite's complaints about indexes, which can be made anew."""
    return [line for line in _messages(connection) if _OF_AN_INDEX.search(line)]


def mend_indexes(connection: apsw.Connection) -> None:
    """Make every index anew."""
    connection.execute("reindex")


def missing_keys(connection: apsw.Connection) -> list[str]:
    """Name what every file says of itself and this one does not."""
    rows: list[tuple[Any, ...]] = connection.execute("select key from meta").fetchall()
    return sorted(KEYS - {key for (key,) in rows})


def dangling(connection: apsw.Connection) -> list[str]:
    """Name the rows that refer to rows that are not there."""
    rows: list[tuple[Any, ...]] = connection.execute(
        'select "table", rowid, parent from pragma_foreign_key_check'
    ).fetchall()
    return [f"{table} {row or ''} at a {parent}" for table, row, parent in rows]


def broken_chain(connection: apsw.Connection) -> list[str]:
    """Name the first operation that does not follow from what is stored."""
    seq = chain.first_break(connection)
    return [] if seq is None else [f"at operation {seq}"]


def unlike_journal(connection: apsw.Connection) -> list[str]:
    """Name the memories and links that differ from their last recorded image."""
    return [f"{kind} {key} {how}" for kind, key, how in differences(connection)]


def differences(connection: apsw.Connection) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, key, how it differs) of rows that are not what the journal says."""
    for kind, key, after, recorded in _last_images(connection):
        if not recorded:
            continue
        stored = KINDS[kind].load(connection, key)
        if stored != after:
            how = "is gone" if stored is None else "is not gone" if after is None else "differs"
            yield kind, key, how
    for kind, key in connection.execute(
        """select 'memory', id from memory m where not exists (
             select 1 from change where kind = 'memory' and key = m.id)
           union all
           select 'link', s.id || '|' || l.rel || '|' || d.id from link l
             join memory s on s.pk = l.src join memory d on d.pk = l.dst where not exists (
               select 1 from change where kind = 'link'
               and key = s.id || '|' || l.rel || '|' || d.id)
           union all
           select 'trash', id from trash t where not exists (
             select 1 from change where kind = 'trash' and key = t.id)"""
    ):
        yield str(kind), str(key), "was never recorded"


def _last_images(
    connection: apsw.Connection,
) -> Iterator[tuple[str, str, Image | None, bool]]:
    """Yield (kind, key, image, whether images were recorded at all) of every row's last change."""
    rows: list[tuple[Any, ...]] = connection.execute(
        """select c.kind, c.key, c.after, o.meta, c.digest from change c
           join operation o on o.seq = c.operation where c.until = ?""",
        (FOREVER,),
    ).fetchall()
    for kind, key, after, meta, digest in rows:
        kept = digest is None and (decode(meta) or {}).get("images") is not False
        yield kind, key, decode(after), kept


def count_unembedded(connection: apsw.Connection) -> int:
    """Return how many memories have no vector of the file's model."""
    number: int = connection.execute(
        """select count(*) from memory m where not exists (select 1 from embedding e
           where e.text_hash = m.text_hash
             and e.model = (select value from meta where key = 'model'))"""
    ).get
    return number


def unembedded(connection: apsw.Connection) -> list[str]:
    """Name the memories that have no vector of the file's model."""
    rows: list[tuple[Any, ...]] = connection.execute(
        """select id from memory m where not exists (select 1 from embedding e
           where e.text_hash = m.text_hash
             and e.model = (select value from meta where key = 'model'))"""
    ).fetchall()
    return [f"memory {id}" for (id,) in rows]
