"""Gather the candidates of both channels, with everything that ranking needs, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai import text
from houkai.search.arrays import Floats, Ints, bound, distinct, held
from houkai.search.dense import Near
from houkai.search.facts import NOBODY, Facts, of
from houkai.search.query import Query
from houkai.search.sketches import View

ROLES: Final = frozenset({"assistant", "ai", "bot", "model", "system", "tool"})
"""Authors that are no person: what they said is worth a little less than what people said."""


@dataclass(frozen=True)
class Pool:
    """Candidates as parallel arrays, ordered by number.

    `cosine` is NaN where a memory has no vector, `common` its likeness to the mean of its
    collection, `bm25` 0 where no word matches. Times are epoch
    seconds; `accessed_at` is `created_at` unless ranking goes by access. `source` is equal where
    memories share one, unique and negative where there is none. Past versions have negative
    numbers.
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
    view: View,
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
    for found in (near, score(distinct(more[~held(more, np.sort(near.pk))]))):
        at = np.searchsorted(pks, found.pk)
        cosine[at], common[at] = found.cosine, found.common
    bm25 = np.zeros(len(pks))
    bm25[np.searchsorted(pks, by_words)] = np.fromiter(worded.values(), np.float64, len(worded))
    return _told(_facts(view, pks), query, pks, cosine, common, bm25)


def _facts(view: View, pks: Ints) -> Facts:
    """Return the facts of past versions and memories, in the order of their numbers."""
    live = view.facts(pks[pks > 0])
    gone = pks[pks < 0]
    return of(view.connection, live.labels, "past", -gone).joined(live) if len(gone) else live


def _told(
    facts: Facts, query: Query, pks: Ints, cosine: Floats, common: Floats, bm25: Floats
) -> Pool:
    machine, named = _voices(facts, query)
    return Pool(
        pk=pks,
        cosine=cosine,
        common=common,
        bm25=bm25,
        importance=facts.importance,
        polarity=facts.polarity,
        created_at=facts.created_at,
        accessed_at=facts.created_at,
        length=facts.length.astype(np.float64),
        position=facts.position,
        source=_sources(facts),
        machine=machine,
        named=named,
    )


def _sources(facts: Facts) -> Ints:
    """Return small numbers, the same for memories of one source in one collection."""
    source, collection = facts.source.astype(np.int64), facts.collection
    joint = source * (int(collection.max(initial=0)) + 1) + collection
    small = np.searchsorted(distinct(joint), joint)
    return np.where(facts.source == NOBODY, -1 - np.arange(len(facts)), small)


def _voices(facts: Facts, query: Query) -> tuple[Floats, Floats]:
    """Return which authors are machines, and which the question names."""
    codes = distinct(facts.author)
    voices = [_voice(facts.labels.texts[code], query.words) for code in codes.tolist()]
    told = np.array(voices, np.float64).reshape(len(codes), 2)
    at = np.searchsorted(codes, facts.author)
    return told[at, 0], told[at, 1]


def accessed(connection: apsw.Connection, found: Pool) -> Floats:
    """Return when candidates were last recalled, or when they were created."""
    since = found.created_at.copy()
    rows: list[tuple[int, float]] = connection.execute(  # type: ignore[assignment]
        """select m.pk, t.last_at from carray(?1) a cross join memory m on m.pk = a.value
           cross join touch t on t.id = m.id
           union all
           select -m.pk, t.last_at from carray(?2) a cross join past m on m.pk = a.value
           cross join touch t on t.id = m.id""",
        (bound(found.pk[found.pk > 0]), bound(-found.pk[found.pk < 0])),
    ).fetchall()
    for pk, at in rows:
        since[np.searchsorted(found.pk, pk)] = at
    return since


def _voice(author: str | None, words: frozenset[str]) -> tuple[float, float]:
    """Say whether an author is a machine, and whether the question names them."""
    if not author:
        return 0.0, 0.0
    folded = text.fold(author)
    if folded in ROLES:
        return 1.0, 0.0
    return 0.0, float(folded != "user" and not words.isdisjoint(text.words_of(author)))
