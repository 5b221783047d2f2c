"""Gather the candidates of both channels, with everything that ranking needs, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai import text
from houkai.search.dense import Near
from houkai.search.query import Query
from houkai.search.sketches import Ints, distinct

Floats = NDArray[np.float64]
ROLES: Final = frozenset({"assistant", "ai", "bot", "model", "system", "tool"})
"""Authors that are no person: what they said is worth a little less than what people said."""


@dataclass(frozen=True)
class Pool:
    """Candidates as parallel arrays, ordered by number.

    `cosine` is NaN where a memory has no vector, `common` its likeness to the mean of its
    collection, `bm25` 0 where no word matches. Times are epoch
    seconds; `accessed_at` falls back to `created_at`. `source` is equal where memories share one,
    unique and negative where there is none. Past versions have negative numbers.
    """

    pk: Ints
    cosine: Floats
    common: Floats
    bm25: Floats
    importance: Floats
    polarity: Floats
    created_at: Floats
    accessed_at: Floats
    length: Floats
    position: Ints
    source: Ints
    machine: Floats
    named: Floats

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.pk)

    def keep(self, mask: NDArray[np.bool_]) -> Pool:
        """Return the candidates that a mask lets through."""
        return Pool(*(getattr(self, name)[mask] for name in self.__dataclass_fields__))


def gather(
    connection: apsw.Connection,
    query: Query,
    near: Near,
    worded: Mapping[int, float],
    others: Iterable[int],
    score: Callable[[Ints], Near],
) -> Pool:
    """Unite the channels; what is not found by meaning gets its true cosine by `score`."""
    by_words = np.fromiter(worded, np.int64, len(worded))
    more = np.concatenate([by_words, np.array([*others], np.int64)])
    pks = distinct(np.concatenate([near.pk, more]))
    cosine, common = np.full(len(pks), np.nan), np.zeros(len(pks))
    for found in (near, score(distinct(more[~np.isin(more, near.pk)]))):
        at = np.searchsorted(pks, found.pk)
        cosine[at], common[at] = found.cosine, found.common
    bm25 = np.zeros(len(pks))
    bm25[np.searchsorted(pks, by_words)] = np.fromiter(worded.values(), np.float64, len(worded))
    rows = _columns(connection, "past", -pks[pks < 0]) + _columns(
        connection, "memory", pks[pks > 0]
    )
    return Pool(pks, cosine, common, bm25, *_arrays(rows, query))


def _columns(connection: apsw.Connection, table: str, pks: Ints) -> list[tuple[Any, ...]]:
    """Return the columns of memories or past versions, in the order of their numbers."""
    if not len(pks):
        return []
    return connection.execute(
        f"""select m.importance, m.polarity, m.created_at, coalesce(t.last_at, m.created_at),
              length(m.text), m.position, m.collection, m.source, m.author
            from carray(?) a cross join {table} m on m.pk = a.value
            left join touch t on t.id = m.id""",
        (apsw.carray(np.ascontiguousarray(pks)),),
    ).fetchall()


def _arrays(rows: list[tuple[Any, ...]], query: Query) -> tuple[NDArray[Any], ...]:
    """Return importance, polarity, created_at, accessed_at, length, position, source, machine and
    named as arrays.
    """
    count = len(rows)
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) or [()] * 9
    numbers = [np.fromiter(column, np.float64, count) for column in columns[:5]]
    position = np.fromiter((place or 0 for place in columns[5]), np.int64, count)
    codes: dict[tuple[int, str], int] = {}
    source = np.fromiter(
        (
            -1 - at if name is None else codes.setdefault((collection, name), len(codes))
            for at, (collection, name) in enumerate(zip(columns[6], columns[7], strict=True))
        ),
        np.int64,
        count,
    )
    authors: dict[str | None, tuple[float, float]] = {
        author: _voice(author, query.words) for author in set(columns[8])
    }
    voices = np.array([authors[author] for author in columns[8]], np.float64).reshape(count, 2)
    return (*numbers, position, source, voices[:, 0], voices[:, 1])


def _voice(author: str | None, words: frozenset[str]) -> tuple[float, float]:
    """Say whether an author is a machine, and whether the question names them."""
    if not author:
        return 0.0, 0.0
    folded = text.fold(author)
    if folded in ROLES:
        return 1.0, 0.0
    return 0.0, float(folded != "user" and not words.isdisjoint(text.words_of(author)))
