"""The dense channel: which stored vectors are nearest to the query's, exactly scored."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from houkai.search.arrays import Floats, Ints, distinct, products
from houkai.search.sketches import Probe, View, Windows
from houkai.storage.eligible import Filter


class Near(NamedTuple):
    """Memories as parallel arrays: their numbers, and their products with what is sought."""

    pk: Ints
    cosine: Floats
    common: Floats
    """Product with the mean of the collection."""


NONE: Final = Near(np.empty(0, np.int64), np.empty(0, np.float64), np.empty(0, np.float64))
DEPTH: Final = 400
"""Memories taken from the channel, if no more are asked for."""


def search(view: View, probe: Probe, where: Filter, at_least: int = 0) -> Near:
    """Return the nearest eligible memories with their exact cosines, best first."""
    depth = max(DEPTH, at_least)
    return best(score(view, view.near(probe.vector, where, depth), probe), depth)


def score(view: View, windows: Windows, probe: Probe) -> Near:
    """Return memories and their exact products: of several windows the best with the question,
    the first with the mean.
    """
    if not len(windows.pk):
        return NONE
    numbers = distinct(windows.embedding)
    rows = view.vectors(numbers)
    place = np.searchsorted(numbers, windows.embedding)
    pk = windows.pk
    if not (pk[1:] > pk[:-1]).all():
        order = np.lexsort((windows.embedding, pk))
        pk, place = pk[order], place[order]
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
