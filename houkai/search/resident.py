"""A copy in RAM of the sign sketches, kept current by the journal's sequence number.

Derived from the file and thrown away at will: it only decides which vectors are scored exactly.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search import dense
from houkai.search.sketches import EXACT, Ints, Vector, Windows, distinct
from houkai.storage import vectors

_SKETCHES: Final = """select m.pk, m.collection, e.pk, e.sketch from memory m
  join embedding e on e.text_hash = m.text_hash
  where e.model = (select value from meta where key = 'model')"""
_RELOAD: Final = 2_000
"""Changed memories beyond which a fresh copy is cheaper than patching."""


@dataclass(frozen=True)
class _Copy:
    """One state of the sketches, in the order of the memories' numbers; never changed in place."""

    at: tuple[int, int]
    pk: Ints
    collection: Ints
    embedding: Ints
    bits: NDArray[np.uint64]


class Resident:
    """The sketches of every window of every memory, as of the snapshot that asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copy: _Copy | None = None
        self._vectors_of: _Copy | None = None
        self._embeddings: list[int] = []
        self._vectors: NDArray[np.float32] = np.empty((0, 0), np.float32)

    def nearest(
        self, connection: apsw.Connection, vector: Vector, scope: int | None, limit: int
    ) -> Windows:
        """Return the nearest windows: by cosine of few, by sketch of many."""
        copy = self._current(connection)
        inside = np.flatnonzero(copy.collection == scope) if scope is not None else slice(None)
        pk, embedding = copy.pk[inside], copy.embedding[inside]
        if limit >= len(pk):
            return Windows(pk, embedding)
        if len(copy.pk) <= EXACT:
            away = -(self._exact(connection, copy)[inside] @ vector)
        else:
            differ = copy.bits[inside] ^ _words(vectors.sketch(vector))
            away = np.bitwise_count(differ).sum(axis=1, dtype=np.int32)
        best = np.argpartition(away, limit)[:limit]
        return Windows(pk[best], embedding[best])

    def _exact(self, connection: apsw.Connection, copy: _Copy) -> NDArray[np.float32]:
        """Return the vectors of every window, of which only new ones are read."""
        with self._lock:
            if self._vectors_of is not copy:
                wanted = copy.embedding.tolist()
                held = self._vectors
                rows = {number: row for row, number in enumerate(self._embeddings)}
                known = {number: rows[number] for number in wanted if number in rows}
                missing = sorted({number for number in wanted if number not in known})
                if missing:
                    fresh = dense.read_vectors(connection, np.array(missing, np.int64))
                    # Vectors of which none is wanted may be another model's, of another length.
                    held = np.concatenate([held, fresh]) if known else fresh
                    start = len(held) - len(fresh)
                    known |= {number: start + row for row, number in enumerate(missing)}
                self._vectors = held[[known[number] for number in wanted]]
                self._embeddings, self._vectors_of = wanted, copy
            return self._vectors

    def windows(self, connection: apsw.Connection, pks: Ints) -> Windows:
        """Return all windows of some memories."""
        copy = self._current(connection)
        wanted = distinct(pks)
        first = np.searchsorted(copy.pk, wanted, "left")
        last = np.searchsorted(copy.pk, wanted, "right")
        at = (
            np.concatenate(
                [np.arange(a, b) for a, b in zip(first, last, strict=True)]
                or [np.empty(0, np.int64)]
            )
            if (last - first > 1).any()
            else first[last > first]
        )
        return Windows(copy.pk[at], copy.embedding[at])

    def size(self, connection: apsw.Connection) -> int:
        """Return how many windows there are."""
        return len(self._current(connection).pk)

    def _current(self, connection: apsw.Connection) -> _Copy:
        state: tuple[int, int] = connection.execute(
            """select (select coalesce(max(seq), 0) from operation),
                      (select value from meta where key = 'vector_epoch')"""
        ).get
        with self._lock:
            if self._copy is None or self._copy.at != state:
                self._copy = _renewed(connection, self._copy, state)
            return self._copy


def _renewed(connection: apsw.Connection, old: _Copy | None, state: tuple[int, int]) -> _Copy:
    """Patch the copy from the journal, or read it anew when that is not less work."""
    if old is not None and old.at[1] == state[1] and old.at[0] < state[0]:
        changed: list[tuple[Any, ...]] = connection.execute(
            """select distinct row from change
               where kind = 'memory' and operation > ? limit ?""",
            (old.at[0], _RELOAD + 1),
        ).fetchall()
        if len(changed) <= _RELOAD:
            return _patched(connection, old, np.array([pk for (pk,) in changed], np.int64), state)
    return _copy_of(connection.execute(_SKETCHES).fetchall(), state)


def _patched(
    connection: apsw.Connection, old: _Copy, changed: Ints, state: tuple[int, int]
) -> _Copy:
    rows = (
        connection.execute(
            f"{_SKETCHES} and m.pk in (select value from carray(?))", (apsw.carray(changed),)
        ).fetchall()
        if len(changed)
        else []
    )
    fresh = _copy_of(rows, state)
    stay = ~np.isin(old.pk, changed)
    if not rows:
        return _Copy(state, old.pk[stay], old.collection[stay], old.embedding[stay], old.bits[stay])
    if not stay.any():
        return fresh
    pk = np.concatenate([old.pk[stay], fresh.pk])
    order = np.argsort(pk, kind="stable")
    return _Copy(
        state,
        pk[order],
        np.concatenate([old.collection[stay], fresh.collection])[order],
        np.concatenate([old.embedding[stay], fresh.embedding])[order],
        np.concatenate([old.bits[stay], fresh.bits])[order],
    )


def _copy_of(rows: Sequence[tuple[Any, ...]], state: tuple[int, int]) -> _Copy:
    ordered = sorted(rows, key=lambda row: row[:3])
    numbers = np.array([row[:3] for row in ordered], np.int64).reshape(len(rows), 3)
    bits = _words(b"".join(_padded(row[3]) for row in ordered))
    return _Copy(
        state,
        numbers[:, 0].copy(),
        numbers[:, 1].copy(),
        numbers[:, 2].copy(),
        bits.reshape(len(rows), -1) if rows else np.empty((0, 1), np.uint64),
    )


def _padded(sketch: bytes) -> bytes:
    return sketch.ljust(-(-len(sketch) // 8) * 8, b"\0")


def _words(sketch: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(_padded(sketch), np.uint64)
