"""Which windows are near a query by the signs of their vectors: what dense search stands on."""

from __future__ import annotations

import json
import math
from typing import Any, Final, NamedTuple, Protocol

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.errors import Corrupt
from houkai.storage import indexing, vectors
from houkai.storage.eligible import Filter, condition
from houkai.storage.vectors import WINDOWS

Ints = NDArray[np.int64]
Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]
EXACT: Final = 4_000
"""Windows of a file up to which every one is scored and sketches are not asked."""
ENOUGH: Final = 150
"""Eligible memories with which a filtered search is content, if no more are asked for."""
KNN_LIMIT: Final = 4_096
"""The largest k that vec0 answers."""


FLOOR: Final = 320
PER_ROOT: Final = 8.0
"""Windows to score of N that sketches choose from: FLOOR, or PER_ROOT * sqrt(N) if more, up to
CEILING.
"""
CEILING: Final = 5_120


def to_score(size: int, at_least: int = 0) -> int:
    """Return how many of `size` windows to score so that the ten best are nearly surely in."""
    return max(FLOOR, at_least, min(CEILING, math.ceil(PER_ROOT * math.sqrt(size))))


class Probe(NamedTuple):
    """What stored vectors are compared with: a question, and the mean of its collection."""

    vector: Vector
    mean: Vector | None = None


class Windows(NamedTuple):
    """Windows as parallel arrays: whose they are, and the number of their stored vector."""

    pk: Ints
    embedding: Ints


class Sketches(Protocol):
    """The sketches of a file, held in RAM by a process that stays or asked of vec0 by one that
    goes.
    """

    def nearest(
        self, connection: apsw.Connection, vector: Vector, scope: int | None, limit: int
    ) -> Windows:
        """Return the windows nearest to a vector as far as can be told, of a collection or all."""

    def windows(self, connection: apsw.Connection, pks: Ints) -> Windows:
        """Return all windows of some memories."""

    def size(self, connection: apsw.Connection) -> int:
        """Return how many windows there are."""

    def exact(self, connection: apsw.Connection) -> bool:
        """Say whether `nearest` goes by the vectors themselves, not by their sketches."""

    def vectors(self, connection: apsw.Connection, embeddings: Ints) -> Matrix:
        """Return stored vectors by their numbers, in that order."""


class InFile:
    """The sketches as sqlite-vec holds them: nothing to load, so right for a single recall."""

    def nearest(
        self, connection: apsw.Connection, vector: Vector, scope: int | None, limit: int
    ) -> Windows:
        """Return the windows with the nearest sketches, and those that vec0 has not taken in yet.

        All there are if they are few, or while vec0 is filled anew.
        """
        few = limit > KNN_LIMIT or self.size(connection) <= EXACT
        if few or not vectors.is_filled(connection):
            return _all(connection, scope)
        inside = "" if scope is None else "and collection = :scope"
        rows = connection.execute(
            f"""select v.rowid / :windows, e.pk from
                  (select rowid from memory_vec
                   where sketch match vec_bit(:sketch) and k = :k {inside}) v
                cross join memory m on m.pk = v.rowid / :windows
                cross join embedding e on e.text_hash = m.text_hash
                  and e.model = (select value from meta where key = 'model')
                  and e.window = v.rowid % :windows""",
            {"sketch": vectors.sketch(vector), "k": limit, "windows": WINDOWS}
            | ({} if scope is None else {"scope": scope}),
        ).fetchall()
        later = indexing.deferred(connection)
        more = [] if later is None else _from(connection, later, scope)
        return as_windows(sorted({*rows, *more}))

    def windows(self, connection: apsw.Connection, pks: Ints) -> Windows:
        """Return all windows of some memories."""
        rows = (
            connection.execute(
                """select m.pk, e.pk from carray(?) a cross join memory m on m.pk = a.value
               cross join embedding e on e.text_hash = m.text_hash
                 and e.model = (select value from meta where key = 'model')""",
                (apsw.carray(np.ascontiguousarray(pks)),),
            ).fetchall()
            if len(pks)
            else []
        )
        return as_windows(rows)

    def size(self, connection: apsw.Connection) -> int:
        """Return how many vectors are stored, which is close enough."""
        return int(connection.execute("select count(*) from embedding").get)

    def exact(self, connection: apsw.Connection) -> bool:
        """Say whether `nearest` returns all there are, since they are few."""
        return self.size(connection) <= EXACT

    def vectors(self, connection: apsw.Connection, embeddings: Ints) -> Matrix:
        """Return stored vectors by their numbers, in that order."""
        return read_vectors(connection, embeddings)


def read_vectors(connection: apsw.Connection, embeddings: Ints) -> Matrix:
    """Return stored vectors by their numbers, in that order."""
    if not len(embeddings):
        return np.empty((0, 0), np.float32)
    rows: list[tuple[Any, ...]] = connection.execute(
        "select e.vector from carray(?) a cross join embedding e on e.pk = a.value",
        (apsw.carray(embeddings),),
    ).fetchall()
    stored = np.frombuffer(b"".join([blob for (blob,) in rows]), "<f2")
    if len(rows) < len(embeddings) or len(stored) % len(rows):
        raise Corrupt("The stored vectors are damaged: some are missing or cut off.")
    return stored.reshape(len(rows), -1).astype(np.float32)


def _all(connection: apsw.Connection, scope: int | None) -> Windows:
    return as_windows(_from(connection, 0, scope))


def _from(connection: apsw.Connection, first: int, scope: int | None) -> list[tuple[Any, ...]]:
    """Return (memory, embedding) of every window of the memories from a number on."""
    return connection.execute(
        """select m.pk, e.pk from memory m cross join embedding e on e.text_hash = m.text_hash
             and e.model = (select value from meta where key = 'model')
           where m.pk >= :first and (:scope is null or m.collection = :scope)""",
        {"scope": scope, "first": first},
    ).fetchall()


def as_windows(rows: list[tuple[int | float | str | bytes | None, ...]]) -> Windows:
    """Return (pk, embedding) rows as arrays."""
    pairs = np.array(rows, np.int64).reshape(len(rows), 2)
    return Windows(pairs[:, 0].copy(), pairs[:, 1].copy())


def products(rows: Matrix, vector: Vector) -> Vector:
    """Return the product of each row with a vector.

    Not by the BLAS, whose threads wait for each other for longer than so little work takes.
    """
    found: Vector = np.einsum("ij,j->i", rows, vector)
    return found


def among(connection: apsw.Connection, pks: Ints, where: Filter) -> Ints:
    """Return which of some memories are eligible, in order."""
    if not len(pks):
        return pks
    sql, values = condition(where, each=True)
    found: str = connection.execute(
        f"""select json_group_array(m.pk) from carray(:pks) a
            cross join memory m on m.pk = a.value where {sql}""",
        {**values, "pks": apsw.carray(pks)},
    ).get
    return np.array(json.loads(found), np.int64)


def distinct(numbers: Ints) -> Ints:
    """Return numbers in order without repeats.

    np.unique would do, but it imports numpy.ma, which takes longer than a recall.
    """
    ordered = np.sort(numbers)
    fresh = np.ones(len(ordered), bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]
