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

from houkai.search.sketches import (
    ENOUGH,
    Ints,
    Probe,
    Sketches,
    Windows,
    among,
    distinct,
    products,
    to_score,
)
from houkai.storage.eligible import ANY_COLLECTION, Filter, condition
from houkai.storage.rows import collection_pk


class Near(NamedTuple):
    """Memories as parallel arrays: their numbers, and their products with what is sought."""

    pk: Ints
    cosine: NDArray[np.float64]
    common: NDArray[np.float64]
    """Product with the mean of the collection."""


NONE: Final = Near(np.empty(0, np.int64), np.empty(0, np.float64), np.empty(0, np.float64))
DEPTH: Final = 400
"""Memories taken from the channel, if no more are asked for."""
LISTING: Final = 0.33
"""What it costs to list a memory, if it is eligible, against looking it up to find that out."""
SHORT: Final = 64
"""Dimensions under which signs tell too little, so that every vector is scored."""


def search(
    connection: apsw.Connection,
    probe: Probe,
    where: Filter,
    sketches: Sketches,
    at_least: int = 0,
) -> Near:
    """Return the nearest eligible memories with their exact cosines, best first."""
    depth = max(DEPTH, at_least)
    kept = _eligible_near(connection, probe, where, sketches, at_least)
    return best(score(connection, kept, probe, sketches), depth)


def _eligible_near(
    connection: apsw.Connection, probe: Probe, where: Filter, sketches: Sketches, at_least: int
) -> Windows:
    """Return the eligible windows among which the nearest are nearly surely in."""
    size, scope = sketches.size(connection), _scope(connection, where)
    exact = sketches.exact(connection)

    def wanted(of: int, depth: int) -> int:
        return max(depth, at_least) if exact else to_score(of, max(depth, at_least))

    reach = size if len(probe.vector) < SHORT else wanted(size, DEPTH)
    while True:
        near = sketches.nearest(connection, probe.vector, scope, reach)
        kept = _eligible(connection, near, where)
        share = max(len(kept.pk), 1) / max(1, len(near.pk))
        enough = wanted(math.ceil(share * size), ENOUGH)
        if len(kept.pk) >= enough or len(near.pk) < reach or reach >= size:
            return kept
        wider = math.ceil(1.2 * enough / share)
        if wider > (share * size if where.tag is not None else LISTING * size):
            return _listed(connection, where, sketches)
        reach = min(size, wider)


def _scope(connection: apsw.Connection, where: Filter) -> int | None:
    if where.collection == ANY_COLLECTION:
        return None
    return collection_pk(connection, where.collection) or 0


def _eligible(connection: apsw.Connection, near: Windows, where: Filter) -> Windows:
    pks = distinct(near.pk)
    kept = among(connection, pks, where)
    if len(kept) == len(pks):
        return near
    mask = np.isin(near.pk, kept)
    return Windows(near.pk[mask], near.embedding[mask])


def _listed(connection: apsw.Connection, where: Filter, sketches: Sketches) -> Windows:
    """Return all windows of the eligible memories, found by their tag where there is one."""
    sql, values = condition(where, each=where.tag is not None)
    source = "memory m"
    if where.tag is not None:
        source = "tag t cross join memory m on m.pk = t.memory and t.name = :f_tag"
    rows: list[tuple[Any, ...]] = connection.execute(
        f"select m.pk from {source} where {sql}", values
    ).fetchall()
    return sketches.windows(connection, np.array([pk for (pk,) in rows], np.int64))


def score(connection: apsw.Connection, windows: Windows, probe: Probe, sketches: Sketches) -> Near:
    """Return memories and their exact products: of several windows the best with the question,
    the first with the mean.
    """
    if not len(windows.pk):
        return NONE
    numbers = distinct(windows.embedding)
    rows = sketches.vectors(connection, numbers)
    place = np.searchsorted(numbers, windows.embedding)
    order = np.lexsort((windows.embedding, windows.pk))
    pk, place = windows.pk[order], place[order]
    first = np.flatnonzero(np.concatenate(([True], pk[1:] != pk[:-1])))
    cosine = np.maximum.reduceat(products(rows, probe.vector)[place], first).astype(np.float64)
    common = np.zeros(len(first))
    if probe.mean is not None:
        common = products(rows, probe.mean)[place[first]].astype(np.float64)
    return Near(pk[first], cosine, common)


def best(near: Near, limit: int) -> Near:
    """Return the `limit` memories of highest cosine."""
    order = np.argsort(-near.cosine, kind="stable")[:limit]
    return Near(near.pk[order], near.cosine[order], near.common[order])
