"""Unit vectors by text hash and model, and the sign sketches that sqlite-vec searches.

A vector is stored once for each window of a text as float16 (little-endian); its sketch holds one
bit a dimension. Token vectors, where a model gives them, belong to the first window and go with it
by the foreign key, whoever deletes it. `memory_vec` is derived: it maps every window of every live
memory to its sketch. While meta.indexed is there, memories below that number may still be missing
from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Final

import apsw

from houkai.errors import InputError
from houkai.storage import known

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WINDOWS: Final = 8_192
"""Windows a memory may have: memory_vec.rowid = memory.pk * WINDOWS + window."""


@dataclass(frozen=True)
class Encoded:
    """A text's vectors in the form they are stored in: (float16 bytes, sketch bytes) a window."""

    hash: bytes
    windows: Sequence[tuple[bytes, bytes]]
    tokens: tuple[int, bytes] | None = None
    """How many word pieces have a vector, and these as int8; None of a model that gives none."""


@dataclass(frozen=True)
class StoredModel:
    """The embedding model whose vectors a file holds."""

    pk: int
    name: str
    dim: int
    fingerprint: str
    coming: str | None = None
    """Fingerprint of the model that a re-embedding is changing the file over to."""


def encode(
    hashes: Iterable[bytes],
    arrays: Sequence[NDArray[np.float32]],
    tokens: Iterable[NDArray[np.int8] | None] = repeat(None),
) -> list[Encoded]:
    """Encode the vectors of texts, each an array (windows, dim) of unit vectors, and its tokens."""
    import numpy as np

    most = max(map(len, arrays))
    if most > WINDOWS:
        raise InputError(f"A text may have at most {WINDOWS} windows, this one has {most}.")
    rows = np.concatenate(arrays)
    halves = rows.astype("<f2")
    # A number of 16 bits is above zero where its bits are as an integer, which compares faster.
    signs = np.packbits(halves.view("<i2") > 0, axis=1, bitorder="little")
    windows = zip(_rows(halves), _rows(signs), strict=True)
    return [
        Encoded(
            hash,
            list(islice(windows, len(array))),
            None if pieces is None else (len(pieces), pieces.tobytes()),
        )
        for (hash, array), pieces in zip(zip(hashes, arrays, strict=True), tokens, strict=False)
    ]


def _rows(array: NDArray[Any]) -> Iterator[bytes]:
    """Yield the bytes of each row; numpy takes ten times as long to make an object of each."""
    data, width = array.tobytes(), array.itemsize * array.shape[1]
    return (data[at : at + width] for at in range(0, len(data), width))


def sketch(vector: NDArray[np.float32]) -> bytes:
    """Return the signs of a vector, one bit a dimension, padded to whole bytes."""
    import numpy as np

    return np.packbits(vector > 0, bitorder="little").tobytes()


def current_model(connection: apsw.Connection) -> StoredModel | None:
    """Return the model the file's vectors were made with, None before the first."""
    row = connection.execute(
        """select pk, name, dim, fingerprint, (select fingerprint from model
             where pk = (select value from meta where key = 'reembed')) from model
           where pk = (select value from meta where key = 'model')"""
    ).get
    return StoredModel(*row) if row else None


def enter_model(connection: apsw.Connection, name: str, dim: int, fingerprint: str) -> int:
    """Return the number of a model, which is entered if the file has never met it."""
    connection.execute(
        "insert into model(name, dim, fingerprint) values (?, ?, ?) on conflict do nothing",
        (name, dim, fingerprint),
    )
    pk: int = connection.execute("select pk from model where fingerprint = ?", (fingerprint,)).get
    return pk


def adopt_model(connection: apsw.Connection, name: str, dim: int, fingerprint: str) -> StoredModel:
    """Make this the model of a file that has none."""
    pk = enter_model(connection, name, dim, fingerprint)
    connection.execute("insert or replace into meta(key, value) values ('model', ?)", (pk,))
    rebuild(connection)
    known.of(connection).model = None
    return StoredModel(pk, name, dim, fingerprint)


def rebuild(connection: apsw.Connection) -> None:
    """Make the sketch table anew from the stored vectors of the present model."""
    renew_index(connection)
    while fill_index(connection, 1_000):
        pass


def renew_index(connection: apsw.Connection) -> None:
    """Put an empty sketch table in the place of the present one; `fill_index` fills it."""
    model = current_model(connection)
    bits = -(-model.dim // 8) * 8 if model else 384
    connection.execute("drop table if exists memory_vec")
    connection.execute(
        "create virtual table memory_vec using"
        f" vec0(collection integer partition key, sketch bit[{bits}])"
    )
    connection.execute(
        """insert or replace into meta(key, value)
           values ('indexed', (select coalesce(max(pk), 0) + 1 from memory))"""
    )
    connection.execute("delete from meta where key = 'deferred'")
    known.of(connection).deferred = None
    tell_others(connection)


def fill_index(connection: apsw.Connection, limit: int) -> bool:
    """Enter the next memories into a renewed sketch table; False when all are in.

    vec0 takes 35 to 75 µs a row, so a large file is filled in several transactions. It goes from
    the newest memory down, since what is stored meanwhile enters itself.
    """
    at = connection.execute("select value from meta where key = 'indexed'").get
    if at is None:
        return False
    first = connection.execute(
        """select min(pk) from (select pk from memory where pk < ? order by pk desc limit ?)""",
        (at, limit),
    ).get
    if first is None:
        connection.execute("delete from meta where key = 'indexed'")
        return False
    enter_between(connection, first, at)
    connection.execute("update meta set value = ? where key = 'indexed'", (first,))
    return True


def enter_between(connection: apsw.Connection, first: int, end: int) -> None:
    """Enter the sketches that are missing of the memories from one number up to another."""
    rows = connection.execute(
        """select m.pk * 8192 + e.window, m.collection, e.sketch
           from memory m join embedding e on e.text_hash = m.text_hash
           where m.pk >= ? and m.pk < ?
             and e.model = (select value from meta where key = 'model')
             and not exists (select 1 from memory_vec where rowid = m.pk * 8192 + e.window)""",
        (first, end),
    ).fetchall()
    # Not one statement: SQLite would put the rows by, and vec0 would not know them for bits; and it
    # would open a savepoint, see fulltext.py.
    connection.executemany(
        "insert into memory_vec(rowid, collection, sketch) values (?, ?, vec_bit(?))", rows
    )


def is_filled(connection: apsw.Connection) -> bool:
    """Say whether the sketch table holds every memory with vectors, but for those put off."""
    return bool(
        connection.execute("select not exists (select 1 from meta where key = 'indexed')").get
    )


EPOCH: Final = "select value from meta where key = 'vector_epoch'"


def tell_others(connection: apsw.Connection) -> None:
    """Have every process read its copies anew: a vector's number may stand for another now."""
    connection.execute("update meta set value = value + 1 where key = 'vector_epoch'")


def keep(connection: apsw.Connection, encoded: Iterable[Encoded], model: int) -> None:
    """Store the vectors of texts unless the file has them."""
    new = [one.hash for one in encoded if _enter(connection, one, model)]
    if new:
        _index_waiting(connection, new, model)


def _enter(connection: apsw.Connection, encoded: Encoded, model: int) -> bool:
    for window, pair in enumerate(encoded.windows):
        connection.execute(
            """insert into embedding(text_hash, model, window, vector, sketch)
               values (?, ?, ?, ?, ?) on conflict do nothing""",
            (encoded.hash, model, window, *pair),
        )
        if not connection.changes():
            return False
        if window == 0 and encoded.tokens is not None:
            connection.execute(
                "insert into token(embedding, count, vectors) values (?, ?, ?)",
                (connection.last_insert_rowid(), *encoded.tokens),
            )
    return True


def _index_waiting(connection: apsw.Connection, hashes: Sequence[bytes], model: int) -> None:
    """Enter the memories that were stored before their text had vectors of the file's model."""
    waiting: list[tuple[Any, ...]] = connection.execute(
        """select m.pk from json_each(?) h cross join memory m on m.text_hash = unhex(h.value)
           where ? = (select value from meta where key = 'model')""",
        (_listed(hashes), model),
    ).fetchall()
    for (pk,) in waiting:
        unindex(connection, pk)
        enter_between(connection, pk, pk + 1)
    if waiting:
        tell_others(connection)


def _listed(hashes: Iterable[bytes]) -> str:
    return json.dumps([hash.hex() for hash in hashes])


def lacking(connection: apsw.Connection, hashes: Iterable[bytes], model: int) -> list[bytes]:
    """Return the texts of which no vectors are stored."""
    rows: list[tuple[Any, ...]] = connection.execute(
        """select h.value from json_each(?) h where not exists
             (select 1 from embedding where text_hash = unhex(h.value) and model = ?)""",
        (_listed(hashes), model),
    ).fetchall()
    return [bytes.fromhex(hash) for (hash,) in rows]


def has(connection: apsw.Connection, hash: bytes, model: int) -> bool:
    """Say whether a text's vectors are stored."""
    return bool(
        connection.execute(
            "select exists (select 1 from embedding where text_hash = ? and model = ?)",
            (hash, model),
        ).get
    )


def unindex(connection: apsw.Connection, pk: int) -> None:
    """Take a memory's sketches out; one rowid at a time, as vec0 scans for anything else.

    vec0's own table tells which are there, since the vectors that they were made of may be lost.
    """
    rows = connection.execute(
        "select rowid from memory_vec_rowids where rowid >= ?1 * 8192 and rowid < (?1 + 1) * 8192",
        (pk,),
    ).fetchall()
    connection.executemany("delete from memory_vec where rowid = ?", rows)
