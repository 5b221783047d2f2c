"""Gather the candidates of both channels, with everything that ranking needs, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search import dense

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pool:
    """Candidates as parallel arrays; the order means nothing.

    `cosine` is NaN where a memory has no vector, `bm25` 0 where no word matches. Times are epoch
    seconds; `accessed_at` falls back to `created_at`.
    """

    pk: NDArray[np.int64]
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
    near: Mapping[int, float],
    worded: Mapping[int, float],
    vector: NDArray[np.float32] | None,
) -> Pool:
    """Unite the channels; candidates found by words alone get their true cosine."""
    cosine = dict(near)
    if vector is not None:
        cosine |= dense.cosines(connection, [pk for pk in worded if pk not in near], vector)
    pks = np.fromiter(dict.fromkeys((*near, *worded)), np.int64)
    rows = (
        connection.execute(
            """select m.pk, m.importance, m.polarity, m.created_at,
                 coalesce(t.last_at, m.created_at)
           from memory m left join touch t on t.id = m.id
           where m.pk in (select value from carray(?))""",
            (apsw.carray(pks),),
        ).fetchall()
        if len(pks)
        else []
    )
    columns = np.array(rows, np.float64).reshape(len(rows), 5).T
    order = columns[0].astype(np.int64)
    return Pool(
        pk=order,
        cosine=np.array([cosine.get(pk, np.nan) for pk in order.tolist()], np.float64),
        bm25=np.array([worded.get(pk, 0.0) for pk in order.tolist()], np.float64),
        importance=columns[1],
        polarity=columns[2],
        created_at=columns[3],
        accessed_at=columns[4],
    )
