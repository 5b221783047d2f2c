"""Which pairs of memories may conflict: those near in meaning, and in deep mode near in words too.

All are eligible on both sides, and of one type. A pair is the numbers of its memories, the
smaller first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any, Final

import apsw
import numpy as np

from houkai.search import blend, dense, lexical, pairs, past, pool
from houkai.search import query as queries
from houkai.search.sketches import Probe, View
from houkai.storage.eligible import Filter, condition

Pairs = dict[tuple[int, int], float]
DEEP_HITS: Final = 10
"""Best hits of a hybrid search that deep mode looks at for each memory."""
DEPTH: Final = 100
"""Candidates of each channel that such a search ranks."""


def pair(one: int, other: int) -> tuple[int, int]:
    """Return two numbers as a pair."""
    return (one, other) if one < other else (other, one)


def near(view: View, where: Filter, threshold: float, subject: int | None, most: int) -> Pairs:
    """Return pairs at least that similar with their similarities, of one memory or of all.

    Of more than `most` pairs the most similar are returned.
    """
    if subject is not None:
        return _near_one(view, where, threshold, subject)
    found = [
        one
        for shelf in pairs.shelves(view.connection, where)
        for one in pairs.similar(shelf, threshold, most)
    ]
    found.sort(key=lambda one: -one.similarity)
    return {(one.a, one.b): one.similarity for one in found[:most]}


def _near_one(view: View, where: Filter, threshold: float, subject: int) -> Pairs:
    mine = pairs.windows_of(view.connection, [subject]).get(subject)
    if mine is None:
        return {}
    alike = replace(where, type=_one(view.connection, subject)[0])
    found = pairs.around(view, mine, alike, threshold)
    return {pair(subject, pk): value for pk, value in found.items() if pk != subject}


def worded(view: View, where: Filter, subject: int | None) -> set[tuple[int, int]]:
    """Return the pairs of each memory and its best hits in a hybrid search for its own text."""
    sql, values = condition(where)
    subjects: list[tuple[Any, ...]] = (
        view.connection.execute(f"select m.pk from memory m where {sql}", values).fetchall()
        if subject is None
        else [(subject,)]
    )
    return {pair(pk, hit) for (pk,) in subjects for hit in _hits(view, where, pk) if hit != pk}


def _hits(view: View, where: Filter, pk: int) -> list[int]:
    type, text = _one(view.connection, pk)
    alike, asked = replace(where, type=type), queries.understand(text)
    mine = pairs.windows_of(view.connection, [pk]).get(pk)
    probe = None if mine is None else Probe(mine[0])
    close = dense.NONE if probe is None else dense.search(view, probe, alike)
    words = lexical.Lexicon(view, asked, alike)
    found = pool.gather(
        view,
        asked,
        dense.best(close, DEPTH),
        words.search(DEPTH),
        (),
        partial(past.scored, view, probe),
    )
    evidence = blend.Evidence(*words.held(found.pk))
    score = blend.blend(asked, found, evidence).total()
    best = np.lexsort((-found.pk, -score))[: DEEP_HITS + 1]
    return [int(hit) for hit in found.pk[best]]


def similarities(connection: apsw.Connection, wanted: Collection[tuple[int, int]]) -> Pairs:
    """Return the similarity of each pair, 0 where one of the two has no vector."""
    windows = pairs.windows_of(connection, sorted({pk for one in wanted for pk in one}))
    return {
        (a, b): pairs.similarity(windows[a], windows[b]) if a in windows and b in windows else 0.0
        for a, b in wanted
    }


def _one(connection: apsw.Connection, pk: int) -> tuple[Any, ...]:
    row: tuple[Any, ...] = connection.execute(
        "select type, text from memory where pk = ?", (pk,)
    ).get
    return row
