"""Vectors in RAM, by the number of their embedding."""

from __future__ import annotations

from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search.arrays import Ints, Matrix, Vector, distinct
from houkai.search.sketches import read_vectors

_CHUNK: Final = 10_000


class Shelf:
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
        rows: Any = self._row[embeddings]
        if rows[-1] - rows[0] == len(rows) - 1 and (rows[1:] > rows[:-1]).all():
            rows = slice(rows[0], rows[-1] + 1)  # all in a row need not be copied
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
