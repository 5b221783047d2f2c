"""A copy in RAM of what recall asks of memories, kept current by the journal's sequence number.

Derived from the file and thrown away at will. The vectors of a file that is not very large are
held too, so that scoring reads nothing.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Final

import apsw
import numpy as np

from houkai.search import facts as all_facts
from houkai.search import state as states
from houkai.search.arrays import Ints, Mask, Matrix, Vector, distinct, held, numbers, products
from houkai.search.copies import Copy, patched, read
from houkai.search.facts import Facts
from houkai.search.shelf import Shelf
from houkai.search.sketches import EXACT, SHORT, Windows, read_vectors, to_score
from houkai.search.state import At
from houkai.storage import vectors
from houkai.storage.eligible import ANY_COLLECTION, Filter
from houkai.storage.rows import collection_pk

HOLD: Final = 200_000
"""Windows of a file up to which their vectors are held as well, in a byte a dimension."""
WHOLE: Final = 20_000
"""Windows of a file up to which they are held as they are, so that nothing is read to score."""
_RELOAD: Final = 2_000
"""Changed memories beyond which a fresh copy is cheaper than patching."""
_TRAIL: Final = 64
"""Earlier states from which an older snapshot is told what has changed since."""
_STALE: Final = 10_000
"""Texts of sources and authors that may be kept after nobody has them any more."""


class Resident:
    """All memories as of the snapshot that asks, and the vectors of a file with up to HOLD
    windows.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._copy: Copy | None = None
        self._trail: deque[tuple[At, Ints]] = deque(maxlen=_TRAIL)
        self._shelf = Shelf(-1, whole=True)

    def at(self, connection: apsw.Connection) -> HeldView:
        """Return the memories as the connection's snapshot has them."""
        state = states.at(connection)
        with self._lock:
            copy = self._renewed(connection, state)
            return HeldView(connection, copy, self, late=copy is not self._copy)

    def _renewed(self, connection: apsw.Connection, state: At) -> Copy:
        """Patch the newest copy, or read one anew when that is not less work.

        Of threads that recall while others write, some come with an older snapshot than the one
        before them. They get a copy of their own: if it took the newest one's place, each of them
        would have it read anew.
        """
        newest = self._copy
        if newest is not None and newest.at == state:
            return newest
        changed = None if newest is None else self._changed(connection, newest, state)
        if newest is None or changed is None:
            self._trail.clear()
            # The vectors of a file that was restored, or of an older one, may have other numbers.
            if newest is not None and not states.goes_on(connection, newest.at):
                self._shelf = Shelf(-1, whole=True)
            self._copy = read(connection, state)
            return self._copy
        copy = patched(connection, newest, changed, state)
        if state.seq > newest.at.seq:
            self._trail.append((newest.at, changed))
            self._copy = copy
        return copy

    def _changed(self, connection: apsw.Connection, newest: Copy, state: At) -> Ints | None:
        """Return the memories that may differ between the newest copy and a state.

        None where that cannot be told, or reading all is no more work.
        """
        labels = len(newest.facts.labels)
        if newest.at.epoch != state.epoch or labels > 4 * len(newest.facts) + _STALE:
            return None
        parts, earlier = [np.empty(0, np.int64)], list(self._trail)
        base = newest.at
        while base.seq > state.seq:
            if not earlier:
                return None
            base, since = earlier.pop()
            parts.append(since)
        if not states.goes_on(connection, base):  # a file that was restored
            return None
        journal = numbers(
            connection,
            """select distinct row as number from change
               where kind = 'memory' and operation > ? limit ?""",
            (base.seq, _RELOAD + 1),
        )
        changed = distinct(np.concatenate([*parts, journal]))
        return changed if len(changed) <= _RELOAD else None

    def held(self, view: HeldView, embeddings: Ints) -> tuple[Matrix, Vector]:
        """Return vectors and what each must be multiplied by.

        A late snapshot may be of a file that was restored, whose vectors have the numbers of those
        that it lost: it looks them up.
        """
        connection, copy = view.connection, view.copy
        if view.late:
            return read_vectors(connection, embeddings), np.ones(len(embeddings), np.float32)
        with self._lock:
            whole = len(copy) <= WHOLE
            present, most = (self._shelf.epoch, self._shelf.whole), WHOLE if whole else HOLD
            if present != (copy.at.epoch, whole) or self._shelf.count > 2 * most:
                self._shelf = Shelf(copy.at.epoch, whole=whole)
            if not self._shelf.count:
                self._shelf.add(connection, copy.embedding)
            return self._shelf.of(connection, embeddings)


@dataclass(frozen=True)
class HeldView:
    """The memories of one snapshot, held in RAM; `late` if a newer one was there before it."""

    connection: apsw.Connection
    copy: Copy
    resident: Resident
    late: bool = False
    _masks: dict[Filter, Mask] = field(default_factory=dict)

    @property
    def at(self) -> At:
        """Return the state of the file that the snapshot shows."""
        return self.copy.at

    def near(self, vector: Vector, where: Filter, depth: int) -> Windows:
        """Return eligible windows among which the nearest `depth` are, as far as can be told."""
        copy, mask = self.copy, self._mask(where)
        inside = copy.inside(mask)
        some, held, whole = int(np.count_nonzero(inside)), len(copy) <= HOLD, len(copy) <= WHOLE
        wide = max(to_score(some), 2 * depth) if held else to_score(some, depth)
        few = whole and np.count_nonzero(mask) <= EXACT  # of long texts, as a cold search has it
        if some <= max(EXACT, wide) or few or len(vector) < SHORT:
            at = np.flatnonzero(inside)
        else:
            at = copy.near(vectors.sketch(vector), inside, wide, depth)
        spare = 3 * depth if whole else depth  # what is whole is exact in one step
        if held and len(at) > spare:
            rows, scale = self.resident.held(self, copy.embedding[at])
            at = at[_nearest(copy.pk[at], products(rows, vector) * scale, depth)]
        if copy.single:
            return Windows(copy.pk[at], copy.embedding[at])
        return self.windows(copy.pk[at])

    def few(self, where: Filter, most: int) -> Ints | None:
        """Return the eligible memories in order, None if they are more than so many."""
        mask = self._mask(where)
        return self.copy.facts.pk[mask] if np.count_nonzero(mask) <= most else None

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
                    "select memory as number from tag where name = ?",
                    (where.tag,),
                )
            known = all_facts.mask(self.copy.facts, where, collection, tagged)
            self._masks[where] = known
        return known

    def windows(self, pks: Ints) -> Windows:
        """Return all windows of some memories."""
        copy, wanted = self.copy, distinct(pks)
        first = np.searchsorted(copy.pk, wanted, "left")
        number = np.searchsorted(copy.pk, wanted, "right") - first
        at = np.repeat(first - np.cumsum(number) + number, number) + np.arange(number.sum())
        return Windows(copy.pk[at], copy.embedding[at])

    def vectors(self, embeddings: Ints) -> Matrix:
        """Return stored vectors by their numbers, from RAM where they are held as they are."""
        if len(self.copy) > WHOLE:
            return read_vectors(self.connection, embeddings)
        return self.resident.held(self, embeddings)[0]

    def facts(self, pks: Ints) -> Facts:
        """Return what ranking asks of memories, given in order."""
        return self.copy.facts.take(np.searchsorted(self.copy.facts.pk, pks))


def _nearest(pk: Ints, product: Vector, depth: int) -> Ints:
    """Return the place of a window of each of the `depth` memories that have the nearest ones, and
    of all that are as near as the last of them. Windows come in the order of their memories.
    """
    first = np.flatnonzero(np.concatenate(([True], pk[1:] != pk[:-1])))
    best = np.maximum.reduceat(product, first)
    if len(first) > depth:
        first = first[best >= np.partition(best, -depth)[-depth]]
    return first
