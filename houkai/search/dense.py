"""The dense channel: which stored vectors are nearest to the query's, exactly scored.

The one planner. The nearest sketches are looked at first; when a filter lets few of them through,
the circle widens, and when it lets hardly any through, the eligible memories are listed instead.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.errors import Corrupt
from houkai.search.sketches import Ints, Sketches, Vector, Windows, distinct
from houkai.storage.eligible import ANY_COLLECTION, Filter, condition
from houkai.storage.rows import collection_pk


class Near(NamedTuple):
    """Memories as parallel arrays: their numbers and their cosines to a query."""

    pk: Ints
    cosine: NDArray[np.float64]


NONE: Final = Near(np.empty(0, np.int64), np.empty(0, np.float64))
FLOOR: Final = 320
PER_ROOT: Final = 8.0
"""Sketch candidates for N windows: max(FLOOR, PER_ROOT * sqrt(N))."""
RARE: Final = 0.05
"""Share of eligible memories under which listing them beats searching around them."""
SHORT: Final = 64
"""Dimensions under which signs tell too little, so that every vector is scored."""


def search(
    connection: apsw.Connection,
    vector: Vector,
    where: Filter,
    sketches: Sketches,
    at_least: int = 0,
) -> Near:
    """Return the nearest eligible memories with their exact cosines, best first."""
    size = sketches.size(connection)
    scope = (
        None
        if where.collection == ANY_COLLECTION
        else (collection_pk(connection, where.collection) or 0)
    )
    reach = size if len(vector) < SHORT else candidates(size, at_least)
    while True:
        near = sketches.nearest(connection, vector, scope, reach)
        kept = _eligible(connection, near, where)
        share = len(kept.pk) / max(1, len(near.pk))
        enough = candidates(math.ceil(share * size), at_least)
        if len(kept.pk) >= enough or len(near.pk) < reach or reach >= size:
            break
        if share < RARE:
            kept = _listed(connection, where, sketches)
            break
        reach = min(size, math.ceil(1.2 * enough / share))
    return best(score(connection, kept, vector), enough)


def candidates(size: int, at_least: int = 0) -> int:
    """Return how many of `size` windows to score so that the ten best are nearly surely in."""
    return max(FLOOR, at_least, math.ceil(PER_ROOT * math.sqrt(size)))


def _eligible(connection: apsw.Connection, near: Windows, where: Filter) -> Windows:
    sql, values = condition(where)
    pks = distinct(near.pk)
    if not len(pks):
        return near
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select m.pk from carray(:near) a cross join memory m on m.pk = a.value
            where {sql}""",
        {**values, "near": apsw.carray(pks)},
    ).fetchall()
    if len(rows) == len(pks):
        return near
    mask = np.isin(near.pk, np.array([pk for (pk,) in rows], np.int64))
    return Windows(near.pk[mask], near.embedding[mask])


def _listed(connection: apsw.Connection, where: Filter, sketches: Sketches) -> Windows:
    sql, values = condition(where)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"select m.pk from memory m where {sql}", values
    ).fetchall()
    return sketches.windows(connection, np.array([pk for (pk,) in rows], np.int64))


def score(connection: apsw.Connection, windows: Windows, vector: Vector) -> Near:
    """Return memories and their exact cosines: of several windows, the best."""
    if not len(windows.pk):
        return Near(windows.pk, np.empty(0, np.float64))
    wanted, where = np.unique(windows.embedding, return_inverse=True)
    values = (read_vectors(connection, wanted) @ vector).astype(np.float64)[where]
    unique, place = np.unique(windows.pk, return_inverse=True)
    top = np.full(len(unique), -2.0)
    np.maximum.at(top, place, values)
    return Near(unique, top)


def read_vectors(connection: apsw.Connection, embeddings: Ints) -> NDArray[np.float32]:
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


def best(near: Near, limit: int) -> Near:
    """Return the `limit` memories of highest cosine."""
    order = np.argsort(-near.cosine, kind="stable")[:limit]
    return Near(near.pk[order], near.cosine[order])
