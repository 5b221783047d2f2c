"""The memories of a snapshot as the file holds them: nothing to load, so right for one recall."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import apsw
import numpy as np

from houkai.search import chunks
from houkai.search import facts as all_facts
from houkai.search import state as states
from houkai.search.arrays import Ints, Matrix, Vector, bound, distinct, held, numbers
from houkai.search.facts import Facts, Labels
from houkai.search.sketches import (
    EXACT,
    SHORT,
    Windows,
    as_windows,
    closest,
    read_vectors,
    to_score,
)
from houkai.search.state import At
from houkai.storage import vectors
from houkai.storage.eligible import ANY_COLLECTION, Filter, condition
from houkai.storage.rows import collection_pk
from houkai.storage.vectors import WINDOWS

ENOUGH: Final = 150
"""Eligible memories with which a filtered search is content, if no more are asked for."""


class InFile:
    """A file that is asked, not held."""

    def at(self, connection: apsw.Connection) -> FileView:
        """Return the memories as the connection's snapshot has them."""
        return FileView(connection)


@dataclass(frozen=True)
class FileView:
    """The memories of one snapshot, looked up one by one; sqlite-vec tells which are near."""

    connection: apsw.Connection
    _labels: Labels = field(default_factory=Labels)

    @property
    def at(self) -> At:
        """Return the state of the file that the snapshot shows."""
        return states.at(self.connection)

    def near(self, vector: Vector, where: Filter, depth: int) -> Windows:
        """Return eligible windows among which the nearest `depth` are, as far as can be told.

        When a filter lets few of the nearest through, the circle widens, as long as that is less
        work than to score all; all are returned if they are few.
        """
        few = self.few(where, EXACT)
        if few is not None:
            return self.windows(few)
        if len(vector) < SHORT:
            return self.windows(self._listed(where, None))
        scope = None
        if where.collection != ANY_COLLECTION:
            scope = collection_pk(self.connection, where.collection) or 0
        sketch = vectors.sketch(vector)
        known = chunks.read(self.connection, len(sketch), scope)
        distance = chunks.differing(known.signs, sketch)
        size, least = len(known.key), min(depth, ENOUGH)
        reach = to_score(size, depth)
        while True:
            owner = known.key[closest(distance, known.key, reach, 0, size)] // WINDOWS
            near = self.eligible(distinct(owner), where)
            some = int(np.count_nonzero(held(owner, near)))
            share = max(some, 1) / max(1, len(owner))
            enough = to_score(math.ceil(share * size), least)
            if (some >= enough and len(near) >= least) or reach >= size:
                return self.windows(near)
            reach = max(2 * reach, math.ceil(1.2 * enough / share))
            if reach > share * size:
                return self.windows(self._listed(where, None))

    def few(self, where: Filter, most: int) -> Ints | None:
        """Return the eligible memories in order, None if they are more than so many."""
        found = self._listed(where, most + 1)
        return found if len(found) <= most else None

    def _listed(self, where: Filter, limit: int | None) -> Ints:
        sql, values = condition(where)
        most = -1 if limit is None else limit
        found = numbers(
            self.connection,
            f"select m.pk as number from memory m where {sql} limit :limit",
            {**values, "limit": most},
        )
        return np.sort(found)

    def eligible(self, pks: Ints, where: Filter) -> Ints:
        """Return which of some numbers, given in order, are those of eligible memories."""
        if not len(pks):
            return pks
        sql, values = condition(where, each=True)
        return numbers(
            self.connection,
            f"""select m.pk as number from carray(:pks) a
                cross join memory m on m.pk = a.value where {sql}""",
            {**values, "pks": bound(pks)},
        )

    def windows(self, pks: Ints) -> Windows:
        """Return all windows of some memories."""
        if not len(pks):
            return as_windows([])
        return as_windows(
            self.connection.execute(
                """select m.pk, e.pk from carray(?) a cross join memory m on m.pk = a.value
                   cross join embedding e on e.text_hash = m.text_hash
                     and e.model = (select value from meta where key = 'model')""",
                (bound(pks),),
            ).fetchall()
        )

    def vectors(self, embeddings: Ints) -> Matrix:
        """Return stored vectors by their numbers, in that order."""
        return read_vectors(self.connection, embeddings)

    def facts(self, pks: Ints) -> Facts:
        """Return what ranking asks of memories, given in order."""
        return all_facts.of(self.connection, self._labels, "memory", pks)
