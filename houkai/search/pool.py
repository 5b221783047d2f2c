"""Gather the candidates of both channels, with everything that ranking needs, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search import dense
from houkai.search.dense import Near
from houkai.search.sketches import Ints, Windows

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pool:
    """Candidates as parallel arrays, ordered by number.

    `cosine` is NaN where a memory has no vector, `bm25` 0 where no word matches. Times are epoch
    seconds; `accessed_at` falls back to `created_at`. Past versions have negative numbers.
    """

    pk: Ints
    cosine: Floats
    bm25: Floats
    importance: Floats
    polarity: Floats
    created_at: Floats
    accessed_at: Floats

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.pk)

    def keep(self, mask: NDArray[np.bool_]) -> Pool:
        """Return the candidates that a mask lets through."""
        return Pool(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))


def gather(
    connection: apsw.Connection,
    near: Near,
    worded: Mapping[int, float],
    vector: NDArray[np.float32] | None,
    windows: Callable[[Ints], Windows],
) -> Pool:
    """Unite the channels; candidates found by words alone get their true cosine."""
    by_words = np.fromiter(worded, np.int64, len(worded))
    pks = np.union1d(near.pk, by_words)
    cosine = np.full(len(pks), np.nan)
    cosine[np.searchsorted(pks, near.pk)] = near.cosine
    if vector is not None:
        rest = dense.score(connection, windows(np.setdiff1d(by_words, near.pk)), vector)
        cosine[np.searchsorted(pks, rest.pk)] = rest.cosine
    bm25 = np.zeros(len(pks))
    bm25[np.searchsorted(pks, by_words)] = np.fromiter(worded.values(), np.float64, len(worded))
    replaced = _columns(connection, "past", -pks[pks < 0])
    live = _columns(connection, "memory", pks[pks > 0])
    return Pool(pks, cosine, bm25, *np.concatenate([replaced, live]).T)


def _columns(connection: apsw.Connection, table: str, pks: Ints) -> Floats:
    """Return the columns of memories or past versions, in the order of their numbers."""
    if not len(pks):
        return np.empty((0, 4))
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select m.importance, m.polarity, m.created_at, coalesce(t.last_at, m.created_at)
            from carray(?) a cross join {table} m on m.pk = a.value
            left join touch t on t.id = m.id""",
        (apsw.carray(np.ascontiguousarray(pks)),),
    ).fetchall()
    return np.fromiter(chain.from_iterable(rows), np.float64, 4 * len(rows)).reshape(-1, 4)
