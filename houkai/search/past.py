"""Both channels as of an earlier moment: live memories that have not changed since, and versions
that have been replaced.

Past versions get negative numbers, so that one pool holds both. The lexical scores of both are
recomputed with the word statistics of that moment; only the average length is today's.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search import bm25, dense, lexical
from houkai.search.blend import idf
from houkai.search.dense import Near
from houkai.search.query import Query, one_term
from houkai.search.sketches import Ints, Probe, Sketches, Windows, as_windows, to_score
from houkai.storage import vectors
from houkai.storage.eligible import Filter, condition
from houkai.storage.rows import split_link_key

_TEXTS: Final = "{t}.text, {t}.words, {t}.names, {t}.dates"


def search(
    connection: apsw.Connection,
    probe: Probe,
    where: Filter,
    sketches: Sketches,
    at_least: int = 0,
) -> Near:
    """Return what was known then and is nearest, with exact cosines, best first."""
    live = dense.search(connection, probe, where, sketches, at_least)
    sql, values = condition(where, past=True)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select -m.pk, e.pk, e.sketch from past m
            join embedding e on e.text_hash = m.text_hash
            where e.model = (select value from meta where key = 'model') and {sql}""",
        values,
    ).fetchall()
    depth = max(dense.DEPTH, at_least)
    limit = to_score(len(rows), depth)
    if len(rows) > limit and len(probe.vector) >= dense.SHORT:
        bits = np.frombuffer(b"".join([row[2] for row in rows]), np.uint8).reshape(len(rows), -1)
        differ = bits ^ np.frombuffer(vectors.sketch(probe.vector), np.uint8)
        distance = np.bitwise_count(differ).sum(axis=1, dtype=np.int32)
        rows = [rows[i] for i in np.argpartition(distance, limit)[:limit].tolist()]
    replaced = dense.score(connection, as_windows([row[:2] for row in rows]), probe, sketches)
    both = Near(*(np.concatenate(pair) for pair in zip(live, replaced, strict=True)))
    return dense.best(both, depth)


def scored(connection: apsw.Connection, probe: Probe | None, sketches: Sketches, pks: Ints) -> Near:
    """Return the exact cosines of live memories and past versions, given by number."""
    if probe is None or not len(pks):
        return dense.NONE
    return dense.score(connection, windows(connection, sketches, pks), probe, sketches)


def one_hop(
    connection: apsw.Connection, start: Sequence[int], where: Filter, most: int
) -> list[tuple[int, int]]:
    """Return up to `most` pairs of a memory and an eligible one that a link tied it to then."""
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


def windows(connection: apsw.Connection, sketches: Sketches, pks: Ints) -> Windows:
    """Return all windows of live memories and past versions."""
    live = sketches.windows(connection, pks[pks > 0])
    rows = (
        connection.execute(
            """select -p.pk, e.pk from carray(?) a cross join past p on p.pk = a.value
           cross join embedding e on e.text_hash = p.text_hash
             and e.model = (select value from meta where key = 'model')""",
            (apsw.carray(np.ascontiguousarray(-pks[pks < 0])),),
        ).fetchall()
        if (pks < 0).any()
        else []
    )
    return Windows(*(np.concatenate(pair) for pair in zip(live, as_windows(rows), strict=True)))


def worded(
    connection: apsw.Connection, query: Query, where: Filter, limit: int, at_least: int = 0
) -> dict[int, float]:
    """Return the BM25 score of what was known then by number."""
    if not query.terms:
        return {}
    found = list(lexical.search(connection, query, where, limit, at_least))
    replaced = _replaced(connection, query, where, limit)
    tokenize = bm25.tokenizer(connection)
    phrases = [bm25.phrase(term.phrase, tokenize) for term in query.terms]
    documents = _documents(connection, found, replaced)
    total, holding = _frequencies(connection, query, where)
    statistics = [bm25.idf(total, number) for number in holding]
    average = bm25.average_length(connection)
    scores = {
        pk: bm25.score(
            [tokenize(column or "") for column in columns],
            phrases,
            statistics,
            average,
            lexical.COLUMN_WEIGHTS,
        )
        for pk, columns in documents.items()
    }
    return {pk: value for pk, value in scores.items() if value > 0}


def terms_held(
    connection: apsw.Connection, query: Query, pks: Ints, where: Filter
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which terms each candidate held then, and each term's weight at that moment."""
    tokenize = bm25.tokenizer(connection)
    phrases = [bm25.phrase(term.phrase, tokenize) for term in query.terms]
    documents = _documents(connection, pks[pks > 0].tolist(), (-pks[pks < 0]).tolist())
    present = np.zeros((len(pks), len(phrases)), bool)
    for row, pk in enumerate(pks.tolist()):
        columns = [tokenize(column or "") for column in documents[pk][:-1]]
        present[row] = [any(bm25.occurrences(c, p) for c in columns) for p in phrases]
    total, holding = _frequencies(connection, query, where)
    return present, idf(total, np.array(holding, np.float64))


def _replaced(connection: apsw.Connection, query: Query, where: Filter, limit: int) -> list[int]:
    sql, values = condition(where, past=True)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select f.rowid from past_fts f join past m on m.pk = f.rowid
            where past_fts match :match and {sql} order by bm25(past_fts) limit :limit""",
        {**values, "match": query.match(None), "limit": limit},
    ).fetchall()
    return [pk for (pk,) in rows]


def _documents(
    connection: apsw.Connection, live: list[int], replaced: list[int]
) -> dict[int, tuple[str | None, ...]]:
    found: dict[int, tuple[str | None, ...]] = {}
    for table, pks, sign in (("memory", live, 1), ("past", replaced, -1)):
        if pks:
            rows: list[tuple[Any, ...]] = connection.execute(
                f"""select {_TEXTS.format(t="m")}, m.pk from carray(?) a
                    cross join {table} m on m.pk = a.value""",
                (apsw.carray(np.array(pks, np.int64)),),
            ).fetchall()
            found |= {sign * row[-1]: (*row[:-1], "scope") for row in rows}
    return found


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
                  (select count(*) from memory_fts f join memory m on m.pk = f.rowid
                   where memory_fts match :term and {live})
                + (select count(*) from past_fts f join past m on m.pk = f.rowid
                   where past_fts match :term and {replaced})""",
            {**known, "term": one_term(term)},
        ).get
        for term in query.terms
    ]
    return total, holding
