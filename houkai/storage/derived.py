"""Check and mend what follows from memories, journal and vectors: columns, versions, indexes.

Each check names what is wrong and changes nothing; each mending makes the thing anew from what it
is derived from. Mendings run on the write connection, where triggers are off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import apsw

from houkai.storage import derived_vectors
from houkai.storage.fulltext import Index
from houkai.storage.history import decode
from houkai.storage.journal import FOREVER
from houkai.storage.rows import Image, columns, derived_columns, load_memory
from houkai.text import text_hash

_DERIVED: Final = ("text_hash", "content_hash", "words", "names", "dates")
_ONLY_LIVE: Final = ("pinned", "superseded_at", "content_hash")
"""Columns of `memory` that `past` does not have."""
_VERSIONS: Final = f"""select c.key, c.operation, c.until, c.after from change c
  where c.kind = 'memory' and c.until < {FOREVER} and c.after is not null"""
_PLAIN: Final = (
    "text", "type", "importance", "polarity", "source", "position", "author", "trust",
    "created_at", "expires_at", "valid_from", "valid_until", "superseded_by",
)  # fmt: skip
"""Columns of `past` that hold a field of the image as it is."""
_SAME_VERSION: Final = " and ".join(
    [
        *(f"p.{name} is coalesce(c.after ->> '$.{name}', {default})" for name, default in (
            (name, {"polarity": "0", "trust": "'trusted'"}.get(name, "null")) for name in _PLAIN)),
        "(select name from collection where pk = p.collection) = c.after ->> '$.collection'",
        """(select json_group_array(value order by value) from json_each(p.tags))
           = (select json_group_array(value order by value) from json_each(c.after, '$.tags'))""",
    ]
)  # fmt: skip


def wrong_columns(connection: apsw.Connection) -> list[str]:
    """Name the memories whose hashes or index words are not those of their text and names."""
    wrong = [f"memory {id}" for id, _ in _miscomputed(connection)]
    return wrong + [f"{id} in the trash" for id, _ in _mishashed(connection)]


def mend_columns(connection: apsw.Connection) -> None:
    """Compute hashes and index words of memories anew."""
    connection.executemany(
        """update memory set text_hash = ?, content_hash = ?, words = ?, names = ?, dates = ?
           where id = ?""",
        [(*(right[name] for name in _DERIVED), id) for id, right in _miscomputed(connection)],
    )
    connection.executemany(
        "update trash set text_hash = ? where id = ?",
        [(right, id) for id, right in _mishashed(connection)],
    )
    mend_index(connection, "memory_fts")
    derived_vectors.mend_sketches(connection)


def _mishashed(connection: apsw.Connection) -> list[tuple[str, bytes]]:
    """Return (id, right hash) of what lies in the trash under another hash than its text's."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select id, text_hash, body ->> '$.memory.text' from trash"
    ).fetchall()
    return [(id, text_hash(text)) for id, stored, text in rows if text_hash(text) != stored]


def _miscomputed(connection: apsw.Connection) -> list[tuple[str, dict[str, Any]]]:
    rows: list[tuple[Any, ...]] = connection.execute(
        f"select id, {', '.join(_DERIVED)} from memory"
    ).fetchall()
    wrong = []
    for id, *stored in rows:
        image = load_memory(connection, id)
        right = derived_columns(image) if image else {}
        if image and [right[name] for name in _DERIVED] != stored:
            wrong.append((id, right))
    return wrong


def wrong_versions(connection: apsw.Connection) -> list[str]:
    """Name the replaced versions that recall as of a moment would miss or wrongly find."""
    missing = [f"memory {key} as of operation {seq}" for key, seq, *_ in _lost(connection)]
    return missing + [f"version {pk} that the journal does not know" for pk in _stray(connection)]


def mend_versions(connection: apsw.Connection) -> None:
    """Take the replaced versions from the journal anew."""
    connection.executemany("delete from past where pk = ?", [(pk,) for pk in _stray(connection)])
    for key, seq, until, image in list(_lost(connection)):
        connection.execute("delete from past where id = ? and until = ?", (key, until))
        _enter_version(connection, key, seq, until, image)
    mend_index(connection, "past_fts")


def wrong_version_words(connection: apsw.Connection) -> list[str]:
    """Name the replaced versions whose hashes or index words are not those of their texts."""
    return [f"version {pk}" for pk, _ in _misworded(connection)]


def mend_version_words(connection: apsw.Connection) -> None:
    """Compute hashes and index words of replaced versions anew."""
    connection.executemany(
        "update past set text_hash = ?, words = ?, names = ?, dates = ? where pk = ?",
        [(*right, pk) for pk, right in _misworded(connection)],
    )
    mend_index(connection, "past_fts")


def _misworded(connection: apsw.Connection) -> list[tuple[int, tuple[Any, ...]]]:
    wrong = []
    for pk, after, *stored in connection.execute(
        """select p.pk, c.after, p.text_hash, p.words, p.names, p.dates from past p
           join change c on c.kind = 'memory' and c.key = p.id and c.operation = p.operation
           where c.after is not null"""
    ):
        right = derived_columns(decode(after) or {})
        values = tuple(right[name] for name in ("text_hash", "words", "names", "dates"))
        if values != tuple(stored):
            wrong.append((pk, values))
    return wrong


def _lost(connection: apsw.Connection) -> Iterator[tuple[str, int, int, Image]]:
    """Yield the versions of the journal that `past` lacks or holds otherwise."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""{_VERSIONS} and not exists (select 1 from past p where p.id = c.key
              and p.operation = c.operation and p.until = c.until and {_SAME_VERSION})"""
    ).fetchall()
    for key, seq, until, after in rows:
        yield key, seq, until, decode(after) or {}


def _stray(connection: apsw.Connection) -> list[int]:
    rows: list[tuple[Any, ...]] = connection.execute(
        """select pk from past p where not exists (select 1 from change c where c.kind = 'memory'
             and c.key = p.id and c.operation = p.operation and c.until = p.until)"""
    ).fetchall()
    return [pk for (pk,) in rows]


def _enter_version(
    connection: apsw.Connection, id: str, operation: int, until: int, image: Image
) -> None:
    stored = columns(connection, image)
    row = {
        "id": id,
        "operation": operation,
        "until": until,
        "tags": json.dumps(image.get("tags", []), ensure_ascii=False, separators=(",", ":")),
        **{name: value for name, value in stored.items() if name not in _ONLY_LIVE},
    }
    connection.execute(
        f"insert into past({', '.join(row)}) values ({', '.join('?' * len(row))})",
        tuple(row.values()),
    )


def wrong_index(connection: apsw.Connection, index: Index) -> list[str]:
    """Let FTS5 compare an index with the texts; it does so only for who may write."""
    try:
        connection.execute(f"insert into {index}({index}, rank) values ('integrity-check', 1)")
    except (apsw.CorruptError, apsw.SQLError) as error:
        return [str(error)]
    return []


def mend_index(connection: apsw.Connection, index: Index) -> None:
    """Index every text anew."""
    connection.execute(f"insert into {index}({index}) values ('rebuild')")
