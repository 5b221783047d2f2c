"""Read the sketches of sqlite-vec's table as they lie in it.

vec0 compares one after the other without SIMD and returns 4,096 at most; its chunks, read whole and
compared as arrays, tell the same in a tenth of the time [the layout: sqlite-vec, ARCHITECTURE.md].
"""

from __future__ import annotations

from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.errors import Corrupt
from houkai.search.arrays import Ints

WORD: Final = 8
"""Bytes compared at once."""


def distances(
    connection: apsw.Connection, sketch: bytes, scope: int | None
) -> tuple[Ints, NDArray[np.uint16]]:
    """Return the row numbers of a collection's windows, or of all, and in how many signs each
    differs. Raises Corrupt.
    """
    keys, counts = [np.empty(0, np.int64)], [np.empty(0, np.uint16)]
    for validity, rowids, blob in connection.execute(
        """select c.validity, c.rowids, v.vectors from memory_vec_chunks c
           join memory_vec_vector_chunks00 v on v.rowid = c.chunk_id
           where ?1 is null or c.partition00 = ?1""",
        (scope,),
    ):
        rows, signs = _chunk(validity, rowids, blob, len(sketch))
        keys.append(rows)
        counts.append(differing(signs, sketch))
    return np.concatenate(keys), np.concatenate(counts)


def _chunk(validity: Any, rowids: Any, vectors: Any, width: int) -> tuple[Ints, NDArray[np.uint8]]:
    """Return a chunk's row numbers and their sketches, without the places that are free."""
    there = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little").astype(bool)
    rows = np.frombuffer(rowids, np.int64)
    signs = np.frombuffer(vectors, np.uint8)
    if len(rows) != len(there) or len(signs) != len(rows) * width:
        raise Corrupt("The table of sketches is damaged: a chunk of it has not the size it says.")
    signs = signs.reshape(len(rows), width)
    return (rows, signs) if there.all() else (rows[there], signs[there])


def differing(signs: NDArray[np.uint8], sketch: bytes) -> NDArray[np.uint16]:
    """Return in how many bits each row differs from a sketch."""
    wanted = np.frombuffer(sketch, np.uint8)
    kind = np.uint64 if len(sketch) % WORD == 0 else np.uint8
    differ = np.ascontiguousarray(signs).view(kind) ^ wanted.view(kind)
    count: NDArray[np.uint16] = np.bitwise_count(differ).sum(axis=1, dtype=np.uint16)
    return count
