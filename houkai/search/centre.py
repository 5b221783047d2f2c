"""The mean of a collection's vectors, from which a memory's own part stands out.

A memory that is like all others is like every question; the blend takes that share off. The mean
of up to 2,048 memories spread over the collection stands for all.
"""

from __future__ import annotations

from typing import Any, Final

import apsw
import numpy as np

from houkai.search.sketches import Vector, as_windows, read_vectors
from houkai.storage.eligible import ANY_COLLECTION, Filter

SAMPLE: Final = 1_024
_INSIDE: Final = ":any or m.collection = (select pk from collection where name = :name)"


class Centres:
    """The means of an open file's collections, each kept until something is written."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[int, int], Vector | None]] = {}

    def of(self, connection: apsw.Connection, where: Filter) -> Vector | None:
        """Return the mean of what a collection holds in this snapshot, or held then."""
        if where.known_by is not None:
            return centre(connection, where)
        state: tuple[int, int] = connection.execute(
            """select (select coalesce(max(seq), 0) from operation),
                      (select value from meta where key = 'vector_epoch')"""
        ).get
        kept = self._kept.get(where.collection)
        if kept is None or kept[0] != state:
            kept = (state, centre(connection, where))
            self._kept[where.collection] = kept
        return kept[1]


def centre(connection: apsw.Connection, where: Filter) -> Vector | None:
    """Return the mean vector of what a collection holds, or held then; None below two memories."""
    size: int = connection.execute("select count(*) from embedding").get
    step = 1
    while size // step > 2 * SAMPLE:
        step *= 2
    bound = {
        "any": where.collection == ANY_COLLECTION,
        "name": where.collection,
        "step": step,
        "known": where.known_by,
    }
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select m.pk, e.pk from memory m join embedding e on e.text_hash = m.text_hash
              and e.model = (select value from meta where key = 'model') and e.window = 0
            where m.pk % :step = 0 and ({_INSIDE})
              and (:known is null or m.operation <= :known)
            union all
            select -m.pk, e.pk from past m join embedding e on e.text_hash = m.text_hash
              and e.model = (select value from meta where key = 'model') and e.window = 0
            where m.pk % :step = 0 and ({_INSIDE})
              and m.operation <= :known and m.until > :known""",
        bound,
    ).fetchall()
    if len(rows) < 2:
        return None
    embedding = as_windows(rows).embedding
    numbers, times = np.unique(embedding, return_counts=True)
    total = times.astype(np.float32) @ read_vectors(connection, numbers)
    return (total / len(rows)).astype(np.float32)
