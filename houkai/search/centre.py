"""The mean of a collection's vectors, from which a memory's own part stands out.

A memory that is like all others is like every question; the blend takes that share off. The mean
of up to 2,048 memories spread over the file stands for all.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from houkai.search.arrays import Ints, Vector, distinct
from houkai.search.sketches import View, Windows, as_windows
from houkai.search.state import At, goes_on
from houkai.storage.eligible import ANY_COLLECTION, Filter

SAMPLE: Final = 1_024
_INSIDE: Final = ":any or m.collection = (select pk from collection where name = :name)"


class _Kept(NamedTuple):
    at: At
    sample: Ints
    mean: Vector | None

    def is_of(self, view: View, sample: Ints) -> bool:
        """Say whether the sample is the same, and so are the vectors that its numbers stand for."""
        return (
            self.at.epoch == view.at.epoch
            and np.array_equal(self.sample, sample)
            and goes_on(view.connection, self.at)
        )


class Centres:
    """The means of an open file's collections, each kept until its sample changes."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}

    def of(self, view: View, where: Filter) -> Vector | None:
        """Return the mean of what a collection holds in this snapshot, or held then.

        None below two memories.
        """
        sample = _sample(view, where)
        if where.known_by is not None:
            return _mean(view, np.concatenate([sample, _past_sample(view, where)]))
        kept = self._kept.get(where.collection)
        if kept is None or not kept.is_of(view, sample):
            kept = _Kept(view.at, sample, _mean(view, sample))
            self._kept[where.collection] = kept
        return kept.mean


def _mean(view: View, sample: Ints) -> Vector | None:
    if len(sample) < 2:
        return None
    numbers = distinct(sample)
    times = np.bincount(np.searchsorted(numbers, sample), minlength=len(numbers))
    total = times.astype(np.float32) @ view.vectors(numbers)
    return (total / len(sample)).astype(np.float32)


def _sample(view: View, where: Filter) -> Ints:
    """Return the first vectors of memories spread over the file that a collection holds."""
    everything = Filter(
        where.collection,
        where.now,
        include_superseded=True,
        include_expired=True,
        include_retired=True,
        known_by=where.known_by,
    )
    last: int = view.connection.execute("select coalesce(max(pk), 0) from memory").get
    step = _step(last)
    spread = view.eligible(np.arange(step, last + 1, step, dtype=np.int64), everything)
    return _first(view.windows(spread))


def _past_sample(view: View, where: Filter) -> Ints:
    last: int = view.connection.execute("select coalesce(max(pk), 0) from past").get
    bound = {
        "any": where.collection == ANY_COLLECTION,
        "name": where.collection,
        "step": _step(last),
        "known": where.known_by,
    }
    rows: list[tuple[Any, ...]] = view.connection.execute(
        f"""select m.pk, e.pk from past m join embedding e on e.text_hash = m.text_hash
              and e.model = (select value from meta where key = 'model')
            where m.pk % :step = 0 and ({_INSIDE})
              and m.operation <= :known and m.until > :known""",
        bound,
    ).fetchall()
    return _first(as_windows(rows))


def _step(last: int) -> int:
    """Return the power of two that leaves up to twice SAMPLE of the numbers up to the last."""
    step = 1
    while last // step > 2 * SAMPLE:
        step *= 2
    return step


def _first(windows: Windows) -> Ints:
    """Return the embedding of each memory's first window."""
    order = np.lexsort((windows.embedding, windows.pk))
    pk, embedding = windows.pk[order], windows.embedding[order]
    fresh = np.ones(len(pk), bool)
    fresh[1:] = pk[1:] != pk[:-1]
    return embedding[fresh]
