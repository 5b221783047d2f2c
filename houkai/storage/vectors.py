"""Unit vectors by text hash and model, and the sign sketches that sqlite-vec searches.

A vector is stored once for each window of a text as float16 (little-endian); its sketch holds one
bit a dimension. `memory_vec` is derived: it maps every window of every live memory to its sketch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

import apsw

from houkai.errors import InputError

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


@dataclass(frozen=True)
class StoredModel:
    """The embedding model whose vectors a file holds."""

    pk: int
    name: str
    dim: int
    fingerprint: str


def encode(hashes: Iterable[bytes], arrays: Sequence[NDArray[np.float32]]) -> list[Encoded]:
    """Encode the vectors of texts, each an array (windows, dim) of unit vectors."""
    import numpy as np

    most = max(map(len, arrays))
    if most > WINDOWS:
        raise InputError(f"A text may have at most {WINDOWS} windows, this one has {most}.")
    rows = np.concatenate(arrays)
    halves = rows.astype("<f2")
    signs = np.packbits(rows > 0, axis=1, bitorder="little")
    windows = zip(map(bytes, halves), map(bytes, signs), strict=True)
    return [
        Encoded(hash, list(islice(windows, len(array))))
        for hash, array in zip(hashes, arrays, strict=True)
    ]


def sketch(vector: NDArray[np.float32]) -> bytes:
    """Return the signs of a vector, one bit a dimension, padded to whole bytes."""
    import numpy as np

    return np.packbits(vector > 0, bitorder="little").tobytes()


def current_model(connection: apsw.Connection) -> StoredModel | None:
    """Return the model the file's vectors were made with, None before the first."""
    row = connection.execute(
        """select pk, name, dim, fingerprint from model
           where pk = (select value from meta where key = 'model')"""
    ).get
    return StoredModel(*row) if row else None


def adopt_model(connection: apsw.Connection, name: str, dim: int, fingerprint: str) -> StoredModel:
    """Make this the file's model; the sketches of another are dropped with their table."""
    connection.execute(
        "insert into model(name, dim, fingerprint) values (?, ?, ?) on conflict do nothing",
        (name, dim, fingerprint),
    )
    pk = connection.execute("select pk from model where fingerprint = ?", (fingerprint,)).get
    connection.execute("insert or replace into meta(key, value) values ('model', ?)", (pk,))
    rebuild(connection)
    return StoredModel(pk, name, dim, fingerprint)


def rebuild(connection: apsw.Connection) -> None:
    """Make the sketch table anew from the stored vectors of the present model."""
    model = current_model(connection)
    bits = -(-model.dim // 8) * 8 if model else 384
    connection.execute("drop table if exists memory_vec")
    connection.execute(
        "create virtual table memory_vec using"
        f" vec0(collection integer partition key, sketch bit[{bits}])"
    )
    connection.execute(
        """insert into memory_vec(rowid, collection, sketch)
           select m.pk * 8192 + e.window, m.collection, vec_bit(e.sketch)
           from memory m join embedding e on e.text_hash = m.text_hash
           where e.model = (select value from meta where key = 'model')"""
    )
    connection.execute("update meta set value = value + 1 where key = 'vector_epoch'")


def keep(connection: apsw.Connection, encoded: Encoded, model: int) -> None:
    """Store a text's vectors unless the file has them."""
    connection.executemany(
        """insert into embedding(text_hash, model, window, vector, sketch)
           values (?, ?, ?, ?, ?) on conflict do nothing""",
        [(encoded.hash, model, w, *pair) for w, pair in enumerate(encoded.windows)],
    )


def has(connection: apsw.Connection, hash: bytes, model: int) -> bool:
    """Say whether a text's vectors are stored."""
    return bool(
        connection.execute(
            "select exists (select 1 from embedding where text_hash = ? and model = ?)",
            (hash, model),
        ).get
    )


def index(connection: apsw.Connection, pk: int, collection: int, hash: bytes) -> None:
    """Enter a memory's sketches into the search table."""
    # Not "insert ... select": that opens a savepoint, see fulltext.py.
    rows = connection.execute(
        """select ? * 8192 + window, ?, sketch from embedding
           where text_hash = ? and model = (select value from meta where key = 'model')""",
        (pk, collection, hash),
    ).fetchall()
    connection.executemany(
        "insert into memory_vec(rowid, collection, sketch) values (?, ?, vec_bit(?))", rows
    )


def unindex(connection: apsw.Connection, pk: int, hash: bytes) -> None:
    """Take a memory's sketches out; one rowid at a time, as vec0 scans for anything else."""
    rows = connection.execute(
        """select ? * 8192 + window from embedding
           where text_hash = ? and model = (select value from meta where key = 'model')""",
        (pk, hash),
    ).fetchall()
    connection.executemany("delete from memory_vec where rowid = ?", rows)
