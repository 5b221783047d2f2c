"""A copy in RAM of what recall asks of memories, kept current by the journal's sequence number.

Derived from the file and thrown away at will. The vectors of a file that is not very large are
held too, so that scoring reads nothing.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Final

import apsw
import numpy as np

from houkai.search import facts as all_facts
from houkai.search.arrays import (
    Ints,
    Mask,
    Matrix,
    Vector,
    distinct,
    held,
    numbers,
    products,
)
from houkai.search.copies import Copy, renewed
from houkai.search.facts import Facts, Labels
from houkai.search.shelf import Shelf
from houkai.search.sketches import EXACT, SHORT, Windows, read_vectors, to_score
from houkai.storage import vectors
from houkai.storage.eligible import ANY_COLLECTION, Filter
from houkai.storage.rows import collection_pk

HOLD: Final = 200_000
"""Windows of a file up to which their vectors are held as well, in a byte a dimension."""
WHOLE: Final = 20_000
"""Windows of a file up to which they are held as they are, so that nothing is read to score."""


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
                self._copy = renewed(connection, self._labels, self._copy, state)
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
