"""Which memories are near each other: all pairs of a collection, or those around one.

The similarity of two memories is the cosine of their vectors. Of long ones, each window looks for
its best match in the other; the mean of one side's matches and of the other's are taken, and the
smaller counts, so that a note that repeats one passage of a document does not equal it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search import dense
from houkai.search.arrays import Ints, Vector
from houkai.search.sketches import Probe, View
from houkai.storage.eligible import Filter, condition

BLOCK: Final = 2_048
"""Windows compared with as many others at once."""


ROUNDING: Final = 0.002
"""What a stored vector may have lost of its length; `similarity` makes it good."""


class Pair(NamedTuple):
    """Two memories by their numbers, the smaller first, and their similarity."""

    a: int
    b: int
    similarity: float


@dataclass(frozen=True)
class Shelf:
    """The windows of the eligible memories of one type, ordered by memory."""

    pk: Ints
    vectors: NDArray[np.floating]

    def of(self, pk: int) -> Vector:
        """Return the unit vectors of a memory's windows."""
        first, last = np.searchsorted(self.pk, [pk, pk + 1])
        return unit(self.vectors[first:last])


def shelves(connection: apsw.Connection, where: Filter) -> list[Shelf]:
    """Read the vectors of the eligible memories, apart by type."""
    sql, values = condition(where)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select m.type, m.pk, e.vector from memory m
            join embedding e on e.text_hash = m.text_hash
            where e.model = (select value from meta where key = 'model') and {sql}
            order by m.type, m.pk, e.window""",
        values,
    ).fetchall()
    by_type: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        by_type.setdefault(row[0], []).append(row)
    return [
        Shelf(
            np.array([pk for _, pk, _ in some], np.int64),
            np.frombuffer(b"".join(blob for *_, blob in some), "<f2").reshape(len(some), -1),
        )
        for some in by_type.values()
    ]


def unit(vectors: NDArray[Any]) -> Vector:
    """Return stored vectors in full precision, with the length that rounding took from them."""
    full = vectors.astype(np.float32)
    full /= np.linalg.norm(full, axis=1, keepdims=True)
    return full


def similarity(a: Vector, b: Vector) -> float:
    """Return the similarity of two memories by the unit vectors of their windows."""
    cosines = a @ b.T
    return float(min(cosines.max(axis=1).mean(), cosines.max(axis=0).mean(), 1.0))


def around(view: View, vectors: Vector, where: Filter, threshold: float) -> dict[int, float]:
    """Return the eligible memories at least that similar to some windows, by number."""
    near: set[int] = set()
    for vector in vectors:
        near |= _within(view, vector, where, threshold - ROUNDING)
    exact = {
        pk: similarity(vectors, other)
        for pk, other in windows_of(view.connection, sorted(near)).items()
    }
    return {pk: value for pk, value in exact.items() if value >= threshold}


def _within(view: View, vector: Vector, where: Filter, least: float) -> set[int]:
    """Return the memories with a window at least that near, however many there are."""
    enough, known = 0, -1
    while True:
        found = dense.search(view, Probe(vector), where, enough)
        near = found.pk[found.cosine >= least]
        if len(near) < len(found.pk) or len(near) == known:
            return set(near.tolist())
        enough, known = 4 * len(near), len(near)


def windows_of(connection: apsw.Connection, pks: Sequence[int]) -> dict[int, Vector]:
    """Return the unit vectors of the windows of some memories, by number."""
    rows: list[tuple[Any, ...]] = connection.execute(
        """select m.pk, e.vector from json_each(?) a cross join memory m on m.pk = a.value
           cross join embedding e on e.text_hash = m.text_hash
             and e.model = (select value from meta where key = 'model')
           order by m.pk, e.window""",
        (json.dumps(list(pks)),),
    ).fetchall()
    blobs: dict[int, list[bytes]] = {}
    for pk, blob in rows:
        blobs.setdefault(pk, []).append(blob)
    return {pk: stacked(some) for pk, some in blobs.items()}


def stacked(blobs: Sequence[bytes]) -> Vector:
    """Return stored vectors as the rows of one array, each of length 1."""
    return unit(np.frombuffer(b"".join(blobs), "<f2").reshape(len(blobs), -1))


def similar(shelf: Shelf, threshold: float, most: int) -> list[Pair]:
    """Return the pairs at least that similar, most similar first and at most so many.

    Compares every window with every other, as products of matrices: 10,000 in two seconds of CPU,
    ten times as many in a hundred times that. Hashed sketches and cells around pivots compare
    fewer, but on real texts lose a pair in ten before they are any cheaper.
    """
    parts: list[_Found] = []
    for found in _near(shelf, threshold):
        parts.append(found)
        if sum(len(part.cosine) for part in parts) > 4 * most:
            parts = [_strongest(parts, most)]
    if not parts:
        return []
    near = _strongest(parts, 4 * most)
    pairs = _pairs(shelf, near)
    kept = [pair for pair in pairs if pair.similarity >= threshold]
    return sorted(kept, key=lambda pair: -pair.similarity)[:most]


def among(windows: Sequence[Vector], threshold: float) -> list[Pair]:
    """Return the similar pairs among a few memories, by their places in the list."""
    if not windows:
        return []
    places = np.repeat(np.arange(len(windows)), [len(some) for some in windows])
    return similar(Shelf(places, np.concatenate(windows)), threshold, len(windows) ** 2)


class _Found(NamedTuple):
    """Pairs of windows as parallel arrays: their positions and their cosines."""

    left: Ints
    right: Ints
    cosine: NDArray[np.float32]


def _near(shelf: Shelf, threshold: float) -> Iterator[_Found]:
    """Yield the pairs of two memories' windows at least that near, block against block."""
    vectors = shelf.vectors
    for top in range(0, len(vectors), BLOCK):
        rows = unit(vectors[top : top + BLOCK])
        for side in range(top, len(vectors), BLOCK):
            cosines = rows @ unit(vectors[side : side + BLOCK]).T
            left, right = np.nonzero(cosines >= threshold)
            forward = shelf.pk[left + top] < shelf.pk[right + side]
            left, right = left[forward], right[forward]
            yield _Found(left + top, right + side, cosines[left, right])


def _strongest(parts: list[_Found], most: int) -> _Found:
    found = _Found(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    if len(found.cosine) <= most:
        return found
    best = np.argpartition(-found.cosine, most)[:most]
    return _Found(found.left[best], found.right[best], found.cosine[best])


def _pairs(shelf: Shelf, near: _Found) -> Iterator[Pair]:
    """Yield pairs of memories for pairs of windows, each once."""
    long = {int(pk) for pk in shelf.pk[1:][np.diff(shelf.pk) == 0]}
    seen: set[tuple[int, int]] = set()
    a, b = shelf.pk[near.left].tolist(), shelf.pk[near.right].tolist()
    for first, second, cosine in zip(a, b, near.cosine.tolist(), strict=True):
        if (first, second) in seen:
            continue
        seen.add((first, second))
        if first in long or second in long:
            cosine = similarity(shelf.of(first), shelf.of(second))
        yield Pair(first, second, min(cosine, 1.0))
