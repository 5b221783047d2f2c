"""Check and mend the stored vectors, their signs, their tokens, and the table that is searched.

Each check names what is wrong and changes nothing; what a mending drops is embedded anew when it
is next needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final

import apsw

from houkai.storage import indexing, vectors

ALIKE: Final = 0.002
"""How far a stored digit may be from the model's: float16 and other processors' arithmetic."""
_WINDOWS: Final = """select m.pk * 8192 + e.window, m.collection, e.sketch from memory m
  join embedding e on e.text_hash = m.text_hash
  where e.model = (select value from meta where key = 'model')"""


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
    later = indexing.deferred(connection)
    end = math.inf if later is None else later * 8192
    return [
        f"window {row % 8192} of memory {row // 8192}"
        for row in sorted(wanted.keys() | there.keys())
        if wanted.get(row) != there.get(row) and (row in there or sure <= row < end)
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
    connection: apsw.Connection, model: int, made: Callable[[list[str]], Iterable[tuple[Any, Any]]]
) -> list[bytes]:
    """Return the hashes of the texts whose vectors are not those that a model makes of them.

    The model makes of each text its windows and its tokens, as arrays.
    """
    rows: list[tuple[Any, ...]] = connection.execute(
        "select text_hash, text from memory union select text_hash, text from past"
    ).fetchall()
    rows.sort(key=lambda row: len(row[1]))
    wrong: list[bytes] = []
    for start in range(0, len(rows), 64):
        some = rows[start : start + 64]
        right = made([text for _, text in some])
        for (hash, _), (windows, tokens) in zip(some, right, strict=True):
            same = _alike(connection, hash, model, windows)
            if not (same and _alike_tokens(connection, hash, model, tokens)):
                wrong.append(hash)
    return wrong


def _alike_tokens(connection: apsw.Connection, hash: bytes, model: int, right: Any) -> bool:
    """Say whether stored tokens, if there are any, are these; a step apart is rounding."""
    import numpy as np

    blob: bytes | None = connection.execute(
        """select t.vectors from embedding e join token t on t.embedding = e.pk
           where e.text_hash = ? and e.model = ?""",
        (hash, model),
    ).get
    if blob is None:
        return True
    stored = np.frombuffer(blob, np.int8).astype(int)
    same = stored.size == right.size
    return same and bool(np.abs(stored - right.ravel()).max(initial=0) <= 1)


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
