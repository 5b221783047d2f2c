"""Read the sketches of sqlite-vec's table as they lie in it.

vec0 compares one after the other without SIMD and returns 4,096 at most; its chunks, read whole and
compared as arrays, tell the same in a tenth of the time [the layout: sqlite-vec, ARCHITECTURE.md].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.errors import Corrupt
from houkai.search.arrays import Ints
from houkai.storage import indexing, vectors
from houkai.storage.vectors import WINDOWS

WORD: Final = 8
"""Bytes compared at once."""
_CHUNK: Final = 20_000


class Sketches(NamedTuple):
    """Row numbers of windows (memory * 8192 + window) in order, and a sketch for each."""

    key: Ints
    signs: NDArray[np.uint8]


def read(connection: apsw.Connection, width: int, scope: int | None) -> Sketches:
    """Return the sketches, of `width` bytes, of a collection's windows, or of all.

    What vec0 has not taken in comes from the vectors' own table. Raises Corrupt.
    """
    later = indexing.deferred(connection)
    if not vectors.is_filled(connection):
        later = 0
    keys, signs = [np.empty(0, np.int64)], [np.empty((0, width), np.uint8)]
    for validity, rowids, blob in connection.execute(
        """select c.validity, c.rowids, v.vectors from memory_vec_chunks c
           join memory_vec_vector_chunks00 v on v.rowid = c.chunk_id
           where ?1 is null or c.partition00 = ?1""",
        (scope,),
    ):
        rows, some = _chunk(validity, rowids, blob, width)
        if later is not None:
            earlier = rows < later * WINDOWS
            rows, some = rows[earlier], some[earlier]
        keys.append(rows)
        signs.append(some)
    if later is not None:
        for fresh in _fresh(connection, width, scope, later):
            keys.append(fresh.key)
            signs.append(fresh.signs)
    key = np.concatenate(keys)
    order = np.argsort(key, kind="stable")
    return Sketches(key[order], np.concatenate(signs)[order])


def _fresh(
    connection: apsw.Connection, width: int, scope: int | None, first: int
) -> Iterator[Sketches]:
    """Yield the sketches of the memories from a number on, as they are stored with the vectors."""
    cursor = connection.execute(
        """select m.pk * 8192 + e.window, e.sketch from memory m
           cross join embedding e on e.text_hash = m.text_hash
             and e.model = (select value from meta where key = 'model')
           where m.pk >= ?1 and (?2 is null or m.collection = ?2)""",
        (first, scope),
    )
    while rows := list(islice(cursor, _CHUNK)):
        key = np.array([number for number, _ in rows], np.int64)
        yield Sketches(key, stacked([sketch for _, sketch in rows], width))


def stacked(sketches: Sequence[Any], width: int) -> NDArray[np.uint8]:
    """Return stored sketches as rows. Raises Corrupt."""
    if any(len(sketch) != width for sketch in sketches):
        raise Corrupt("The stored sketches are damaged: some are cut off.")
    return np.frombuffer(b"".join(sketches), np.uint8).reshape(len(sketches), width)


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
