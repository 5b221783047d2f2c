"""A copy in RAM of the sign sketches, kept current by the journal's sequence number.

Derived from the file and thrown away at will: it only decides which vectors are scored exactly.
The vectors of a file that is not very large are held too, so that scoring reads nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search.sketches import (
    EXACT,
    Ints,
    Matrix,
    Vector,
    Windows,
    distinct,
    products,
    read_vectors,
    to_score,
)
from houkai.storage import vectors

_SKETCHES: Final = """select m.pk, m.collection, e.pk, e.sketch from memory m
  join embedding e on e.text_hash = m.text_hash
  where e.model = (select value from meta where key = 'model')"""
HOLD: Final = 200_000
"""Windows of a file up to which their vectors are held as well, in a byte a dimension."""
WHOLE: Final = 20_000
"""Windows of a file up to which they are held as they are, so that nothing is read to score."""
_CHUNK: Final = 10_000
_RELOAD: Final = 2_000
"""Changed memories beyond which a fresh copy is cheaper than patching."""


class _Shelf:
    """Vectors by the number of their embedding: as they are, or of many in whole numbers.

    A number stands for one vector as long as the file's vector epoch is the same.
    """

    def __init__(self, epoch: int, *, whole: bool) -> None:
        self.epoch, self.whole = epoch, whole
        self.count = 0
        self._row: Ints = np.empty(0, np.int64)
        self._vectors: NDArray[Any] = np.empty((0, 0), np.float32 if whole else np.int8)
        self._scale: NDArray[np.float32] = np.empty(0, np.float32)

    def of(self, connection: apsw.Connection, embeddings: Ints) -> tuple[Matrix, Vector]:
        """Return vectors and what each must be multiplied by; only those that are new are read."""
        if not len(embeddings):
            return np.empty((0, 0), np.float32), np.empty(0, np.float32)
        self.add(connection, embeddings)
        rows = self._row[embeddings]
        return self._vectors[rows].astype(np.float32, copy=False), self._scale[rows]

    def add(self, connection: apsw.Connection, embeddings: Ints) -> None:
        """Read the vectors that are missing."""
        last = int(embeddings.max(initial=-1))
        if last >= len(self._row):
            longer = np.full(max(last + 1, 5 * len(self._row) // 4), -1, np.int64)
            longer[: len(self._row)] = self._row
            self._row = longer
        missing = distinct(embeddings[self._row[embeddings] < 0])
        for start in range(0, len(missing), _CHUNK):
            some = missing[start : start + _CHUNK]
            self._append(some, read_vectors(connection, some))

    def _append(self, numbers: Ints, fresh: Matrix) -> None:
        end = self.count + len(fresh)
        if end > len(self._vectors):
            self._grow(max(end, 5 * len(self._vectors) // 4), fresh.shape[1])
        scale = np.ones(len(fresh), np.float32)
        if not self.whole:
            scale = np.maximum(np.abs(fresh).max(axis=1) / 127, np.float32(1e-9))
            fresh = np.rint(fresh / scale[:, None])
        self._vectors[self.count : end] = fresh
        self._scale[self.count : end] = scale
        self._row[numbers] = np.arange(self.count, end)
        self.count = end

    def _grow(self, room: int, width: int) -> None:
        wider, scale = np.empty((room, width), self._vectors.dtype), np.empty(room, np.float32)
        if self.count:
            wider[: self.count] = self._vectors[: self.count]
            scale[: self.count] = self._scale[: self.count]
        self._vectors, self._scale = wider, scale


@dataclass(frozen=True)
class _Copy:
    """One state of the sketches, in the order of the memories' numbers; never changed in place.

    `bits` holds a row for each 64 dimensions, so that distances add up along whole rows.
    """

    at: tuple[int, int]
    pk: Ints
    collection: Ints
    embedding: Ints
    bits: NDArray[np.uint64]

    def inside(self, scope: int | None) -> Ints | slice:
        """Return where a collection's windows are."""
        if scope is None:
            return slice(None)
        match = self.collection == scope
        return slice(None) if match.all() else np.flatnonzero(match)

    def near(self, sketch: bytes, inside: Ints | slice, limit: int) -> Ints:
        """Return the places, of those inside, of the windows that differ in the fewest signs.

        At least `limit`, and all that differ in as many as the last of them.
        """
        distance = np.zeros(len(self.pk[inside]), np.uint16)
        for row, word in zip(self.bits, _words(sketch), strict=True):
            distance += np.bitwise_count(row[inside] ^ word)
        upto = int(np.searchsorted(np.cumsum(np.bincount(distance)), limit))
        return np.flatnonzero(distance <= upto)


class Resident:
    """The sketches of every window of every memory, as of the snapshot that asks.

    The vectors of a file with up to HOLD windows are held too; among few they decide alone.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copy: _Copy | None = None
        self._shelf = _Shelf(-1, whole=True)

    def nearest(
        self, connection: apsw.Connection, vector: Vector, scope: int | None, limit: int
    ) -> Windows:
        """Return the nearest windows, by cosine where the vectors are held, else by sketch."""
        copy = self._current(connection)
        inside = copy.inside(scope)
        pk, embedding = copy.pk[inside], copy.embedding[inside]
        if limit >= len(pk):
            return Windows(pk, embedding)
        held = len(copy.pk) <= HOLD
        wide = max(to_score(len(pk)), 2 * limit) if held else limit
        if len(copy.pk) > EXACT and wide < len(pk):
            near = copy.near(vectors.sketch(vector), inside, wide)
            pk, embedding = pk[near], embedding[near]
        if held and len(pk) > limit:
            rows, scale = self._held(connection, copy, embedding)
            best = np.argpartition(-products(rows, vector) * scale, limit)[:limit]
            pk, embedding = pk[best], embedding[best]
        return Windows(pk, embedding)

    def exact(self, connection: apsw.Connection) -> bool:
        """Say whether `nearest` goes by the vectors themselves, not by their sketches."""
        return len(self._current(connection).pk) <= HOLD

    def vectors(self, connection: apsw.Connection, embeddings: Ints) -> Matrix:
        """Return stored vectors by their numbers, from RAM where they are held as they are."""
        copy = self._current(connection)
        if len(copy.pk) > WHOLE:
            return read_vectors(connection, embeddings)
        return self._held(connection, copy, embeddings)[0]

    def _held(
        self, connection: apsw.Connection, copy: _Copy, embeddings: Ints
    ) -> tuple[Matrix, Vector]:
        with self._lock:
            whole = len(copy.pk) <= WHOLE
            present = (self._shelf.epoch, self._shelf.whole)
            if present != (copy.at[1], whole) or self._shelf.count > 2 * HOLD:
                self._shelf = _Shelf(copy.at[1], whole=whole)
            if not self._shelf.count:
                self._shelf.add(connection, copy.embedding)
            return self._shelf.of(connection, embeddings)

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
        return _Copy(
            state, old.pk[stay], old.collection[stay], old.embedding[stay], old.bits[:, stay]
        )
    if not stay.any():
        return fresh
    pk = np.concatenate([old.pk[stay], fresh.pk])
    order = np.argsort(pk, kind="stable")
    return _Copy(
        state,
        pk[order],
        np.concatenate([old.collection[stay], fresh.collection])[order],
        np.concatenate([old.embedding[stay], fresh.embedding])[order],
        np.concatenate([old.bits[:, stay], fresh.bits], axis=1)[:, order],
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
        np.ascontiguousarray(bits.reshape(len(rows), -1).T)
        if rows
        else np.empty((1, 0), np.uint64),
    )


def _padded(sketch: bytes) -> bytes:
    return sketch.ljust(-(-len(sketch) // 8) * 8, b"\0")


def _words(sketch: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(_padded(sketch), np.uint64)
