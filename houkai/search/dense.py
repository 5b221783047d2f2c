"""The dense channel: which stored vectors are nearest to the query's, exactly scored.

The one planner. The nearest sketches are looked at first; when a filter lets few of them through,
the circle widens, and when it lets hardly any through, the eligible memories are listed instead.
"""

from __future__ import annotations

import math
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search.sketches import Ints, Sketches, Windows
from houkai.storage import vectors
from houkai.storage.eligible import ANY_COLLECTION, Filter, condition
from houkai.storage.rows import collection_pk

FLOOR: Final = 320
PER_ROOT: Final = 8.0
"""Sketch candidates for N windows: max(FLOOR, PER_ROOT * sqrt(N))."""
RARE: Final = 0.05
"""Share of eligible memories under which listing them beats searching around them."""
SHORT: Final = 64
"""Dimensions under which signs tell too little, so that every vector is scored."""


def search(
    connection: apsw.Connection,
    vector: NDArray[np.float32],
    where: Filter,
    sketches: Sketches,
    at_least: int = 0,
) -> Windows:
    """Return the windows worth scoring exactly: those of eligible memories near the query."""
    size = sketches.size(connection)
    scope = (
        None
        if where.collection == ANY_COLLECTION
        else (collection_pk(connection, where.collection) or 0)
    )
    reach = size if len(vector) < SHORT else candidates(size, at_least)
    sketch = vectors.sketch(vector)
    while True:
        near = sketches.nearest(connection, sketch, scope, reach)
        kept = _eligible(connection, near, where)
        share = len(kept.pk) / max(1, len(near.pk))
        enough = candidates(math.ceil(share * size), at_least)
        if len(kept.pk) >= enough or len(near.pk) < reach or reach >= size:
            return kept
        if share < RARE:
            return _listed(connection, where, sketches)
        reach = min(size, math.ceil(1.2 * enough / share))


def candidates(size: int, at_least: int = 0) -> int:
    """Return how many of `size` windows to score so that the ten best are nearly surely in."""
    return max(FLOOR, at_least, math.ceil(PER_ROOT * math.sqrt(size)))


def _eligible(connection: apsw.Connection, near: Windows, where: Filter) -> Windows:
    sql, values = condition(where)
    pks = np.unique(near.pk)
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


def cosines(
    connection: apsw.Connection, windows: Windows, vector: NDArray[np.float32]
) -> tuple[Ints, NDArray[np.float64]]:
    """Return memories' numbers and exact cosines: of several windows, the best."""
    order = np.argsort(windows.embedding)
    embedding, pk = np.ascontiguousarray(windows.embedding[order]), windows.pk[order]
    if not len(embedding):
        return embedding, np.empty(0, np.float64)
    wanted, where = np.unique(embedding, return_inverse=True)
    rows: list[tuple[Any, ...]] = connection.execute(
        "select e.vector from carray(?) a cross join embedding e on e.pk = a.value",
        (apsw.carray(wanted),),
    ).fetchall()
    stored = np.frombuffer(b"".join([blob for (blob,) in rows]), "<f2").reshape(len(rows), -1)
    values = (stored.astype(np.float32) @ vector).astype(np.float64)[where]
    unique, place = np.unique(pk, return_inverse=True)
    best = np.full(len(unique), -2.0)
    np.maximum.at(best, place, values)
    return unique, best
