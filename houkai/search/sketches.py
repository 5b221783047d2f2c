"""What dense search stands on: the windows of a file's memories, near a vector by their signs."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple, Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.errors import Corrupt
from houkai.search.arrays import Ints, Matrix, Vector, bound, distinct
from houkai.search.facts import Facts
from houkai.search.state import At
from houkai.storage.eligible import Filter

EXACT: Final = 4_000
"""Windows up to which every one is scored and sketches are not asked."""
SHORT: Final = 64
"""Dimensions under which signs tell too little, so that every vector is scored."""
FLOOR: Final = 320
PER_ROOT: Final = 8.0
"""Windows to score of N that sketches choose from: FLOOR, or PER_ROOT * sqrt(N) if more, up to
CEILING.
"""
CEILING: Final = 5_120


def to_score(size: int, at_least: int = 0) -> int:
    """Return how many of `size` windows to score so that the ten best are nearly surely in."""
    return max(FLOOR, at_least, min(CEILING, math.ceil(PER_ROOT * math.sqrt(size))))


def closest(distance: NDArray[np.uint16], pk: Ints, limit: int, depth: int, most: int) -> Ints:
    """Return the places of the windows of least distance, `limit` of them or more: all that are as
    near as the last one, and where `depth` is said, so many that they belong to as many memories.

    `most` windows can be chosen.
    """
    upto = np.cumsum(np.bincount(distance))
    while True:
        near = np.flatnonzero(distance <= int(np.searchsorted(upto, limit)))
        if not depth or limit >= most or len(distinct(pk[near])) >= depth:
            return near
        limit = min(2 * limit, most)


class Probe(NamedTuple):
    """What stored vectors are compared with: a question, and the mean of its collection."""

    vector: Vector
    mean: Vector | None = None


class Windows(NamedTuple):
    """Windows as parallel arrays: whose they are, and the number of their stored vector."""

    pk: Ints
    embedding: Ints


class View(Protocol):
    """The memories of one snapshot: looked up in the file, or held in RAM."""

    @property
    def connection(self) -> apsw.Connection:
        """Return the connection that sees the snapshot."""

    @property
    def at(self) -> At:
        """Return the state of the file that the snapshot shows."""

    def near(self, vector: Vector, where: Filter, depth: int) -> Windows:
        """Return eligible windows among which the nearest `depth` are, as far as can be told."""

    def few(self, where: Filter, most: int) -> Ints | None:
        """Return the eligible memories in order, None if they are more than so many."""

    def eligible(self, pks: Ints, where: Filter) -> Ints:
        """Return which of some numbers, given in order, are those of eligible memories."""

    def windows(self, pks: Ints) -> Windows:
        """Return all windows of some memories."""

    def vectors(self, embeddings: Ints) -> Matrix:
        """Return stored vectors by their numbers, in that order."""

    def facts(self, pks: Ints) -> Facts:
        """Return what ranking asks of memories, given in order."""


class Sketches(Protocol):
    """The sketches of a file, held in RAM by a process that stays or asked of vec0 by one that
    goes.
    """

    def at(self, connection: apsw.Connection) -> View:
        """Return the memories as the connection's snapshot has them."""


def read_vectors(connection: apsw.Connection, embeddings: Ints) -> Matrix:
    """Return stored vectors by their numbers, in that order."""
    if not len(embeddings):
        return np.empty((0, 0), np.float32)
    rows: list[tuple[Any, ...]] = connection.execute(
        "select e.vector from carray(?) a cross join embedding e on e.pk = a.value",
        (bound(embeddings),),
    ).fetchall()
    stored = np.frombuffer(b"".join([blob for (blob,) in rows]), "<f2")
    if len(rows) < len(embeddings) or len(stored) % len(rows):
        raise Corrupt("The stored vectors are damaged: some are missing or cut off.")
    return stored.reshape(len(rows), -1).astype(np.float32)


def as_windows(rows: list[tuple[int | float | str | bytes | None, ...]]) -> Windows:
    """Return (pk, embedding) rows as arrays."""
    pairs = np.array(rows, np.int64).reshape(len(rows), 2)
    return Windows(pairs[:, 0].copy(), pairs[:, 1].copy())
