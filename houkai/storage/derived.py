"""Check and mend what follows from memories, journal and vectors: columns, versions, indexes.

Each check names what is wrong and changes nothing; each mending makes the thing anew from what it
is derived from. Mendings run on the write connection, where triggers are off.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import apsw

from houkai.storage import vectors
from houkai.storage.fulltext import Index
from houkai.storage.history import decode
from houkai.storage.journal import FOREVER
from houkai.storage.rows import Image, columns, derived_columns, load_memory
from houkai.text import text_hash

_DERIVED: Final = ("text_hash", "content_hash", "words", "names", "dates")
_ONLY_LIVE: Final = ("pinned", "superseded_at", "content_hash")
"""Columns of `memory` that `past` does not have."""
ALIKE: Final = 0.002
"""How far a stored digit may be from the model's: float16 and other processors' arithmetic."""
_WINDOWS: Final = """select m.pk * 8192 + e.window, m.collection, e.sketch from memory m
  join embedding e on e.text_hash = m.text_hash
  where e.model = (select value from meta where key = 'model')"""
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
    mend_sketches(connection)


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


def wrong_sketches(connection: apsw.Connection) -> list[str]:
    """Name the windows that the search table lacks, has too many, or has otherwise."""
    wanted: dict[Any, Any] = {row[0]: row[1:] for row in connection.execute(_WINDOWS)}
    there: dict[Any, Any] = {}
    try:
        for row in connection.execute("select rowid, collection, sketch from memory_vec"):
            there[row[0]] = row[1:]
    except apsw.SQLError as error:
        return [str(error)]
    sure = connection.execute(
        "select coalesce((select value from meta where key = 'indexed'), 0) * 8192"
    ).get
    return [
        f"window {row % 8192} of memory {row // 8192}"
        for row in sorted(wanted.keys() | there.keys())
        if wanted.get(row) != there.get(row) and (row in there or row >= sure)
    ]


def mend_sketches(connection: apsw.Connection) -> None:
    """Make the search table anew."""
    vectors.rebuild(connection)


def wrong_signs(connection: apsw.Connection) -> list[str]:
    """Name the vectors whose sketch is not made of their signs."""
    return [f"vector {pk}" for pk, _ in _missigned(connection)]


def mend_signs(connection: apsw.Connection) -> None:
    """Sketch such vectors anew."""
    connection.executemany(
        "update embedding set sketch = ? where pk = ?",
        [(sketch, pk) for pk, sketch in _missigned(connection)],
    )
    mend_sketches(connection)


def _missigned(connection: apsw.Connection) -> list[tuple[int, bytes]]:
    import numpy as np

    wrong = []
    for pk, vector, sketch in connection.execute(
        "select pk, vector, sketch from embedding where length(vector) % 2 = 0"
    ):
        right = vectors.sketch(np.frombuffer(vector, "<f2"))
        if right != sketch:
            wrong.append((pk, right))
    return wrong


def wrong_vectors(connection: apsw.Connection) -> list[str]:
    """Name the vectors that are not of their model's width and of unit length, or their tokens."""
    return [f"vector {pk}" for pk in dict.fromkeys(_unfit(connection))]


def mend_vectors(connection: apsw.Connection) -> None:
    """Drop such vectors, so that their texts are embedded anew when they are next needed.

    All windows of a text go together, since a text with any vector counts as embedded.
    """
    connection.executemany(
        """delete from embedding where (text_hash, model) in
             (select text_hash, model from embedding where pk = ?)""",
        [(pk,) for pk in _unfit(connection)],
    )
    mend_sketches(connection)


def _unfit(connection: apsw.Connection) -> list[int]:
    import numpy as np

    wrong = _with_unfit_tokens(connection)
    for pk, vector, dim in connection.execute(
        "select e.pk, e.vector, m.dim from embedding e left join model m on m.pk = e.model"
    ):
        values = np.frombuffer(vector, "<f2").astype(np.float32) if len(vector) % 2 == 0 else ()
        if len(values) != dim or not abs(float(np.dot(values, values)) - 1) < 0.02:
            wrong.append(pk)
    return wrong


def unlike_model(
    connection: apsw.Connection, model: int, passages: Callable[[list[str]], list[Any]]
) -> list[bytes]:
    """Return the hashes of the texts whose vectors are not those that a model makes of them."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select text_hash, text from memory union select text_hash, text from past"
    ).fetchall()
    rows.sort(key=lambda row: len(row[1]))
    wrong: list[bytes] = []
    for start in range(0, len(rows), 64):
        some = rows[start : start + 64]
        for (hash, _), right in zip(some, passages([text for _, text in some]), strict=True):
            if not _alike(connection, hash, model, right):
                wrong.append(hash)
    return wrong


def _alike(connection: apsw.Connection, hash: bytes, model: int, right: Any) -> bool:
    """Say whether stored vectors, if there are any, are these."""
    import numpy as np

    rows: list[tuple[Any, ...]] = connection.execute(
        "select vector from embedding where text_hash = ? and model = ? order by window",
        (hash, model),
    ).fetchall()
    stored = np.frombuffer(b"".join(blob for (blob,) in rows), "<f2").astype(np.float32)
    same = stored.size == right.size and np.allclose(stored, right.ravel(), atol=ALIKE)
    return same or not rows


def drop_vectors(connection: apsw.Connection, hashes: Iterable[bytes]) -> None:
    """Drop the vectors of some texts, so that they are embedded anew when they are next needed."""
    connection.executemany(
        "delete from embedding where text_hash = ?", [(hash,) for hash in hashes]
    )
    mend_sketches(connection)


def _with_unfit_tokens(connection: apsw.Connection) -> list[int]:
    """Return the vectors whose tokens are not as many unit vectors as they should be."""
    import numpy as np

    wrong = []
    for pk, count, stored in connection.execute("select embedding, count, vectors from token"):
        if count > 0 and stored and len(stored) % count == 0:
            values = np.frombuffer(stored, np.int8).reshape(count, -1) / 127
            if (np.abs(np.square(values).sum(axis=1) - 1) < 0.1).all():
                continue
        if count or stored:
            wrong.append(pk)
    return wrong
