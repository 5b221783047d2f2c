"""One state of all memories in RAM: read whole, or patched where it has changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search import chunks
from houkai.search import facts as all_facts
from houkai.search.arrays import Ints, Mask, bound, held
from houkai.search.facts import Facts, Labels
from houkai.search.sketches import closest
from houkai.search.state import At
from houkai.storage import vectors

_CHUNK: Final = 20_000
_PICK: Final = 0.25
"""Share of eligible windows below which picking them out is cheaper than passing over the rest."""


@dataclass(frozen=True)
class Copy:
    """One state of all memories and their windows, by their numbers; never changed in place.

    `bits` holds a row for each 64 dimensions, so that distances add up along whole rows.
    """

    at: At
    facts: Facts
    pk: Ints
    embedding: Ints
    bits: NDArray[np.uint64]

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.pk)

    @cached_property
    def single(self) -> bool:
        """Say whether no memory has two windows."""
        return bool((self.pk[1:] > self.pk[:-1]).all())

    def inside(self, eligible: Mask) -> Mask:
        """Return which windows belong to eligible memories."""
        if len(self.pk) == len(self.facts.pk):
            return eligible
        return eligible[np.searchsorted(self.facts.pk, self.pk)]

    def near(self, sketch: bytes, inside: Mask, limit: int, depth: int) -> Ints:
        """Return the places, of those inside, of the windows that differ in the fewest signs.

        At least `limit`, and all that differ in as many as the last of them; more where they are
        windows of fewer than `depth` memories.
        """
        some = np.flatnonzero(inside) if inside.mean() < _PICK else slice(None)
        distance = np.zeros(len(self.pk[some]), np.uint16)
        for row, word in zip(self.bits, _words(sketch), strict=True):
            distance += np.bitwise_count(row[some] ^ word)
        if isinstance(some, slice):
            distance[~inside] = np.iinfo(np.uint16).max
        all_of_them, few = int(np.count_nonzero(inside)), 0 if self.single else depth
        near = closest(distance, self.pk[some], min(limit, all_of_them), few, all_of_them)
        return near if isinstance(some, slice) else some[near]


def read(connection: apsw.Connection, state: At) -> Copy:
    """Read all memories. Sketches come from vec0 in one piece, the numbers of their vectors from
    two indexes in one order: row by row it takes three times as long.
    """
    facts = all_facts.read(connection, Labels(), "memory m order by m.pk")
    cursor = connection.execute(
        """select m.pk * 8192 + e.window, e.pk from memory m indexed by memory_by_text
           cross join embedding e on e.text_hash = m.text_hash
             and e.model = (select value from meta where key = 'model')"""
    )
    parts = [np.empty((0, 2), np.int64)]
    while rows := list(islice(cursor, _CHUNK)):
        parts.append(np.array(rows, np.int64))
    found = np.concatenate(parts)
    found = found[np.argsort(found[:, 0], kind="stable")]
    key, embedding = found[:, 0].copy(), found[:, 1].copy()
    bits = _bits(connection, key, embedding)
    return Copy(state, facts, key // vectors.WINDOWS, embedding, bits)


def _bits(connection: apsw.Connection, key: Ints, embedding: Ints) -> NDArray[np.uint64]:
    """Return the sketches of windows; what vec0 should hold and does not is read one by one."""
    model = vectors.current_model(connection)
    width = -(-model.dim // 8) if model else 0
    known = chunks.read(connection, width, None)
    signs, there = np.zeros((len(key), width), np.uint8), held(key, known.key)
    signs[there] = known.signs[np.searchsorted(known.key, key[there])]
    if not there.all():
        rows: list[tuple[Any, ...]] = connection.execute(
            "select e.sketch from carray(?) a cross join embedding e on e.pk = a.value",
            (bound(embedding[~there]),),
        ).fetchall()
        signs[~there] = chunks.stacked([sketch for (sketch,) in rows], width)
    return _turned(signs)


def _some(connection: apsw.Connection, old: Copy, pks: Ints, state: At) -> Copy:
    """Read some memories."""
    rows: list[tuple[Any, ...]] = connection.execute(
        """select m.pk, e.pk, e.sketch from carray(?) a cross join memory m on m.pk = a.value
           cross join embedding e on e.text_hash = m.text_hash
             and e.model = (select value from meta where key = 'model')
           order by 1, 2""",
        (bound(pks),),
    ).fetchall()
    pairs = np.array([row[:2] for row in rows], np.int64).reshape(len(rows), 2)
    signs = chunks.stacked([row[2] for row in rows], len(rows[0][2]) if rows else 0)
    facts = all_facts.of(connection, old.facts.labels, "memory", pks)
    return Copy(state, facts, pairs[:, 0].copy(), pairs[:, 1].copy(), _turned(signs))


def patched(connection: apsw.Connection, old: Copy, changed: Ints, state: At) -> Copy:
    """Put the changed memories in the place of what they were."""
    if not len(changed):
        return replace(old, at=state)
    fresh = _some(connection, old, changed, state)
    if changed[0] > old.facts.pk.max(initial=0):
        return _with(old, fresh)
    stay = old.facts.take(~held(old.facts.pk, changed))
    there = ~held(old.pk, changed)
    kept = Copy(state, stay, old.pk[there], old.embedding[there], old.bits[:, there])
    both = _with(kept, fresh)
    order = np.argsort(both.pk, kind="stable")
    facts = both.facts.take(np.argsort(both.facts.pk, kind="stable"))
    return Copy(state, facts, both.pk[order], both.embedding[order], both.bits[:, order])


def _with(old: Copy, fresh: Copy) -> Copy:
    """Return what two copies hold, one behind the other, in the state of the fresh one."""
    facts = old.facts.joined(fresh.facts)
    if not len(old) or not len(fresh):  # which has no bits to speak of
        return replace(fresh if len(fresh) else old, at=fresh.at, facts=facts)
    return Copy(
        fresh.at,
        facts,
        np.concatenate([old.pk, fresh.pk]),
        np.concatenate([old.embedding, fresh.embedding]),
        np.concatenate([old.bits, fresh.bits], axis=1),
    )


def _turned(signs: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return sketches as a row for each 64 dimensions."""
    count, width = signs.shape
    padded = np.zeros((count, max(1, -(-width // chunks.WORD)) * chunks.WORD), np.uint8)
    padded[:, :width] = signs
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _words(sketch: bytes) -> NDArray[np.uint64]:
    return _turned(np.frombuffer(sketch, np.uint8)[None])[:, 0]
