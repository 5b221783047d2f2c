"""A copy in RAM of what recall asks of memories, kept current by the journal's sequence number.

Derived from the file and thrown away at will. The vectors of a file that is not very large are
held too, so that scoring reads nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search import facts as all_facts
from houkai.search.arrays import (
    Ints,
    Mask,
    Matrix,
    Vector,
    bound,
    distinct,
    held,
    numbers,
    products,
)
from houkai.search.facts import Facts, Labels
from houkai.search.shelf import Shelf
from houkai.search.sketches import EXACT, SHORT, Windows, read_vectors, to_score
from houkai.storage import vectors
from houkai.storage.eligible import ANY_COLLECTION, Filter
from houkai.storage.rows import collection_pk

_SKETCHES: Final = """select m.pk, e.pk, e.sketch from memory m
  join embedding e on e.text_hash = m.text_hash
  where e.model = (select value from meta where key = 'model')"""
HOLD: Final = 200_000
"""Windows of a file up to which their vectors are held as well, in a byte a dimension."""
WHOLE: Final = 20_000
"""Windows of a file up to which they are held as they are, so that nothing is read to score."""
_CHUNK: Final = 20_000
_RELOAD: Final = 2_000
"""Changed memories beyond which a fresh copy is cheaper than patching."""
_PICK: Final = 0.25
"""Share of eligible windows below which picking them out is cheaper than passing over the rest."""


@dataclass(frozen=True)
class Copy:
    """One state of all memories and their windows, by their numbers; never changed in place.

    `bits` holds a row for each 64 dimensions, so that distances add up along whole rows.
    """

    at: tuple[int, int]
    facts: Facts
    pk: Ints
    embedding: Ints
    bits: NDArray[np.uint64]

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.pk)

    def inside(self, eligible: Mask) -> Mask:
        """Return which windows belong to eligible memories."""
        if len(self.pk) == len(self.facts.pk):
            return eligible
        return eligible[np.searchsorted(self.facts.pk, self.pk)]

    def near(self, sketch: bytes, inside: Mask, limit: int) -> Ints:
        """Return the places, of those inside, of the windows that differ in the fewest signs.

        At least `limit`, and all that differ in as many as the last of them.
        """
        some = np.flatnonzero(inside) if inside.mean() < _PICK else slice(None)
        distance = np.zeros(len(self.pk[some]), np.uint16)
        for row, word in zip(self.bits, _words(sketch), strict=True):
            distance += np.bitwise_count(row[some] ^ word)
        if isinstance(some, slice):
            distance[~inside] = np.iinfo(np.uint16).max
        upto = int(np.searchsorted(np.cumsum(np.bincount(distance)), limit))
        near = np.flatnonzero(distance <= upto)
        return near if isinstance(some, slice) else some[near]


class Resident:
    """All memories as of the snapshot that asks, and the vectors of a file with up to HOLD
    windows.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copy: Copy | None = None
        self._labels = Labels()
        self._shelf = Shelf(-1, whole=True)

    def at(self, connection: apsw.Connection) -> HeldView:
        """Return the memories as the connection's snapshot has them."""
        state: tuple[int, int] = connection.execute(
            f"select (select coalesce(max(seq), 0) from operation), ({vectors.EPOCH})"
        ).get
        with self._lock:
            if self._copy is None or self._copy.at != state:
                self._copy = _renewed(connection, self._labels, self._copy, state)
            return HeldView(connection, self._copy, self)

    def held(
        self, connection: apsw.Connection, copy: Copy, embeddings: Ints
    ) -> tuple[Matrix, Vector]:
        """Return vectors and what each must be multiplied by."""
        with self._lock:
            whole = len(copy) <= WHOLE
            present = (self._shelf.epoch, self._shelf.whole)
            if present != (copy.at[1], whole) or self._shelf.count > 2 * HOLD:
                self._shelf = Shelf(copy.at[1], whole=whole)
            if not self._shelf.count:
                self._shelf.add(connection, copy.embedding)
            return self._shelf.of(connection, embeddings)


@dataclass(frozen=True)
class HeldView:
    """The memories of one snapshot, held in RAM."""

    connection: apsw.Connection
    copy: Copy
    resident: Resident
    _masks: dict[Filter, Mask] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        """Return a number as long as which stays the same, a stored vector keeps its number."""
        return self.copy.at[1]

    def near(self, vector: Vector, where: Filter, depth: int) -> Windows:
        """Return eligible windows among which the nearest `depth` are, as far as can be told."""
        copy = self.copy
        inside = copy.inside(self._mask(where))
        some, held = int(np.count_nonzero(inside)), len(copy) <= HOLD
        wide = max(to_score(some), 2 * depth) if held else to_score(some, depth)
        if some <= max(EXACT, wide) or len(vector) < SHORT:
            at = np.flatnonzero(inside)
        else:
            at = copy.near(vectors.sketch(vector), inside, wide)
        spare = 3 * depth if len(copy) <= WHOLE else depth  # what is whole is exact in one step
        if held and len(at) > spare:
            rows, scale = self.resident.held(self.connection, copy, copy.embedding[at])
            at = at[np.argpartition(-products(rows, vector) * scale, depth)[:depth]]
        return Windows(copy.pk[at], copy.embedding[at])

    def few(self, where: Filter) -> Ints | None:
        """Return the eligible memories in order, None if they are too many to score each."""
        mask = self._mask(where)
        return self.copy.facts.pk[mask] if np.count_nonzero(mask) <= EXACT else None

    def eligible(self, pks: Ints, where: Filter) -> Ints:
        """Return which of some numbers, given in order, are those of eligible memories."""
        there = pks[held(pks, self.copy.facts.pk)]
        return there[self._mask(where)[np.searchsorted(self.copy.facts.pk, there)]]

    def _mask(self, where: Filter) -> Mask:
        known = self._masks.get(where)
        if known is None:
            collection, tagged = None, np.empty(0, np.int64)
            if where.collection != ANY_COLLECTION:
                collection = collection_pk(self.connection, where.collection)
            if where.tag is not None:
                tagged = numbers(
                    self.connection,
                    "select memory as number from tag where name = ? order by 1",
                    (where.tag,),
                )
            known = all_facts.mask(self.copy.facts, where, collection, tagged)
            self._masks[where] = known
        return known

    def windows(self, pks: Ints) -> Windows:
        """Return all windows of some memories."""
        copy, wanted = self.copy, distinct(pks)
        first = np.searchsorted(copy.pk, wanted, "left")
        last = np.searchsorted(copy.pk, wanted, "right")
        if (last - first > 1).any():
            spans = [np.arange(a, b) for a, b in zip(first, last, strict=True)]
            at = np.concatenate(spans)
        else:
            at = first[last > first]
        return Windows(copy.pk[at], copy.embedding[at])

    def vectors(self, embeddings: Ints) -> Matrix:
        """Return stored vectors by their numbers, from RAM where they are held as they are."""
        if len(self.copy) > WHOLE:
            return read_vectors(self.connection, embeddings)
        return self.resident.held(self.connection, self.copy, embeddings)[0]

    def facts(self, pks: Ints) -> Facts:
        """Return what ranking asks of memories, given in order."""
        return self.copy.facts.take(np.searchsorted(self.copy.facts.pk, pks))


def _renewed(
    connection: apsw.Connection, labels: Labels, old: Copy | None, state: tuple[int, int]
) -> Copy:
    """Patch the copy from the journal, or read it anew when that is not less work."""
    if old is not None and old.at[1] == state[1] and old.at[0] < state[0]:
        changed = numbers(
            connection,
            """select distinct row as number from change
               where kind = 'memory' and operation > ? limit ?""",
            (old.at[0], _RELOAD + 1),
        )
        if len(changed) <= _RELOAD:
            return _patched(connection, old, np.sort(changed), state)
    return _read(connection, labels, state, "true", "memory m order by m.pk", ())


def _read(
    connection: apsw.Connection,
    labels: Labels,
    state: tuple[int, int],
    which: str,
    rest: str,
    values: Sequence[Any],
) -> Copy:
    """Read memories; `which` chooses them for their sketches, `rest` for their facts."""
    facts = all_facts.read(connection, labels, rest, values)
    cursor = connection.execute(f"{_SKETCHES} and {which}", values)
    pk, embedding, bits = [np.empty(0, np.int64)], [np.empty(0, np.int64)], list[Any]()
    while rows := list(islice(cursor, _CHUNK)):
        pk.append(np.array([row[0] for row in rows], np.int64))
        embedding.append(np.array([row[1] for row in rows], np.int64))
        bits.append(_words(b"".join([_padded(row[2]) for row in rows])).reshape(len(rows), -1))
    pks, embeddings = np.concatenate(pk), np.concatenate(embedding)
    signs = np.concatenate(bits) if bits else np.empty((0, 1), np.uint64)
    order = np.lexsort((embeddings, pks))
    turned = np.ascontiguousarray(signs[order].T)
    return Copy(state, facts, pks[order], embeddings[order], turned)


def _patched(connection: apsw.Connection, old: Copy, changed: Ints, state: tuple[int, int]) -> Copy:
    """Put the changed memories in the place of what they were."""
    if not len(changed):
        return replace(old, at=state)
    which = "m.pk in (select value from carray(?))"
    values = (bound(changed),)
    labels = old.facts.labels
    fresh = _read(connection, labels, state, which, f"memory m where {which}", values)
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


def _padded(sketch: bytes) -> bytes:
    return sketch.ljust(-(-len(sketch) // 8) * 8, b"\0")


def _words(sketch: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(_padded(sketch), np.uint64)
