"""Both channels as of an earlier moment: live memories that have not changed since, and versions
that have been replaced.

Past versions get negative numbers, so that one pool holds both. The lexical scores of both are
recomputed with the word statistics of that moment; only the average length is today's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import apsw
import numpy as np

from houkai.search import bm25, chunks, dense, lexical
from houkai.search.arrays import Floats, Ints, Mask, bound
from houkai.search.blend import idf
from houkai.search.dense import Near
from houkai.search.query import Query, one_term
from houkai.search.sketches import SHORT, Probe, View, Windows, as_windows, closest, to_score
from houkai.storage import vectors
from houkai.storage.eligible import Filter, condition
from houkai.storage.rows import split_link_key

_TEXTS: Final = "m.text, m.words, m.names, m.dates"


def search(view: View, probe: Probe, where: Filter, at_least: int = 0) -> Near:
    """Return what was known then and is nearest, with exact cosines, best first."""
    live = dense.search(view, probe, where, at_least)
    sql, values = condition(where, past=True)
    rows: list[tuple[Any, ...]] = view.connection.execute(
        f"""select -m.pk, e.pk, e.sketch from past m
            join embedding e on e.text_hash = m.text_hash
            where e.model = (select value from meta where key = 'model') and {sql}""",
        values,
    ).fetchall()
    depth = max(dense.DEPTH, at_least)
    limit, windows = to_score(len(rows), depth), as_windows([row[:2] for row in rows])
    if len(rows) > limit and len(probe.vector) >= SHORT:
        sketch = vectors.sketch(probe.vector)
        signs = chunks.stacked([row[2] for row in rows], len(sketch))
        distance = chunks.differing(signs, sketch)
        near = closest(distance, windows.pk, limit, depth, len(rows))
        windows = Windows(windows.pk[near], windows.embedding[near])
    replaced = dense.score(view, windows, probe)
    both = Near(*(np.concatenate(pair) for pair in zip(live, replaced, strict=True)))
    return dense.best(both, depth)


def scored(view: View, probe: Probe | None, pks: Ints) -> Near:
    """Return the exact cosines of live memories and past versions, given by number."""
    if probe is None or not len(pks):
        return dense.NONE
    return dense.score(view, windows(view, pks), probe)


def one_hop(view: View, start: Sequence[int], where: Filter, most: int) -> list[tuple[int, int]]:
    """Return up to `most` pairs of a memory and an eligible one that a link tied it to then."""
    connection = view.connection
    links: list[tuple[Any, ...]] = connection.execute(
        """with s(pk, id) as (
             select value, coalesce((select id from memory where pk = value),
                                    (select id from past where pk = -value)) from json_each(:start))
           select s.pk, c.key, s.id from s cross join change c on c.kind = 'link'
             and c.key > s.id || '|' and c.key < s.id || '}'
           where c.operation <= :known and c.until > :known and c.after is not null
           union
           select s.pk, c.key, s.id from s cross join change c on c.counterpart = s.id
           where c.kind = 'link' and c.operation <= :known and c.until > :known
             and c.after is not null
           limit :most""",
        {"start": json.dumps(list(start)), "known": where.known_by, "most": most},
    ).fetchall()
    found = []
    for pk, key, id in links:
        src, _, dst = split_link_key(key)
        found += [(pk, other) for other in _numbers(connection, dst if src == id else src, where)]
    return found


def _numbers(connection: apsw.Connection, id: str, where: Filter) -> list[int]:
    """Return the number of the version of a memory that was known then, if it is eligible."""
    live, values = condition(where, each=True)
    then, more = condition(where, past=True)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select m.pk from memory m where m.id = :id and {live}
            union all select -m.pk from past m where m.id = :id and {then}""",
        {**values, **more, "id": id},
    ).fetchall()
    return [pk for (pk,) in rows]


def windows(view: View, pks: Ints) -> Windows:
    """Return all windows of live memories and past versions."""
    live = view.windows(pks[pks > 0])
    rows = (
        view.connection.execute(
            """select -p.pk, e.pk from carray(?) a cross join past p on p.pk = a.value
           cross join embedding e on e.text_hash = p.text_hash
             and e.model = (select value from meta where key = 'model')""",
            (bound(-pks[pks < 0]),),
        ).fetchall()
        if (pks < 0).any()
        else []
    )
    return Windows(*(np.concatenate(pair) for pair in zip(live, as_windows(rows), strict=True)))


class Lexicon:
    """The words of what was known then, and their statistics, for one question."""

    def __init__(self, view: View, query: Query, where: Filter) -> None:
        self._view, self._query, self._where = view, query, where
        self._connection = connection = view.connection
        self._tokenize = bm25.tokenizer(connection)
        self._phrases = [bm25.phrase(term.phrase, self._tokenize) for term in query.terms]
        self._read: dict[int, bm25.Columns] = {}

    @cached_property
    def _frequencies(self) -> tuple[int, list[int]]:
        return _frequencies(self._connection, self._query, self._where)

    def search(self, limit: int, at_least: int = 0) -> dict[int, float]:
        """Return the BM25 score of what was known then by number."""
        if not self._query.terms:
            return {}
        asked = (self._query, self._where)
        live = lexical.Lexicon(self._view, *asked).search(limit, at_least)
        found = [*live, *(-pk for pk in _replaced(self._connection, *asked, limit))]
        total, holding = self._frequencies
        statistics = [bm25.idf(total, number) for number in holding]
        average = bm25.average_length(self._connection)
        scores = {
            pk: bm25.score(columns, self._phrases, statistics, average, lexical.COLUMN_WEIGHTS)
            for pk, columns in self._documents(found).items()
        }
        return {pk: value for pk, value in scores.items() if value > 0}

    def held(self, pks: Ints) -> tuple[Mask, Floats]:
        """Return which terms each candidate held then, and each term's weight at that moment."""
        documents = self._documents(pks.tolist())
        present = np.zeros((len(pks), len(self._phrases)), bool)
        for row, pk in enumerate(pks.tolist()):
            present[row] = bm25.holding(documents[pk][:-1], self._phrases)
        total, holding = self._frequencies
        return present, idf(total, np.array(holding, np.float64))

    def _documents(self, pks: list[int]) -> dict[int, bm25.Columns]:
        """Return the tokens of each column by number."""
        fresh = [pk for pk in pks if pk not in self._read]
        for table, sign in (("memory", 1), ("past", -1)):
            wanted = np.array([sign * pk for pk in fresh if sign * pk > 0], np.int64)
            if not len(wanted):
                continue
            for pk, *columns in self._connection.execute(
                f"""select m.pk, {_TEXTS} from carray(?) a
                    cross join {table} m on m.pk = a.value""",
                (bound(wanted),),
            ):
                tokens = [self._tokenize(column) if column else [] for column in columns]
                self._read[sign * pk] = (*tokens, ["scope"])
        return {pk: self._read[pk] for pk in pks}


def _replaced(connection: apsw.Connection, query: Query, where: Filter, limit: int) -> list[int]:
    sql, values = condition(where, past=True)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select f.rowid from past_fts f cross join past m on m.pk = f.rowid
            where past_fts match :match and {sql} order by bm25(past_fts) limit :limit""",
        {**values, "match": query.match(None), "limit": limit},
    ).fetchall()
    return [pk for (pk,) in rows]


def _frequencies(connection: apsw.Connection, query: Query, where: Filter) -> tuple[int, list[int]]:
    """Return how many memories were known then, and how many of them held each term."""
    known = {"known": where.known_by}
    live, replaced = "m.operation <= :known", "m.operation <= :known and m.until > :known"
    total: int = connection.execute(
        f"""select (select count(*) from memory m where {live})
              + (select count(*) from past m where {replaced})""",
        known,
    ).get
    holding = [
        connection.execute(
            f"""select
                  (select count(*) from memory_fts f cross join memory m on m.pk = f.rowid
                   where memory_fts match :term and {live})
                + (select count(*) from past_fts f cross join past m on m.pk = f.rowid
                   where past_fts match :term and {replaced})""",
            {**known, "term": one_term(term)},
        ).get
        for term in query.terms
    ]
    return total, holding
