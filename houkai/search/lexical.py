"""The lexical channel: BM25 by FTS5 over the eligible memories."""

from __future__ import annotations

import json
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search import bm25
from houkai.search.blend import idf
from houkai.search.query import Query, Term, one_term
from houkai.search.sketches import Ints
from houkai.storage.eligible import ANY_COLLECTION, Filter, condition
from houkai.storage.rows import collection_pk

DEPTH: Final = 400
"""Memories taken from the channel; further down BM25 tells nothing apart."""
COLUMN_WEIGHTS: Final = (1.0, 1.0, 1.0, 1.0, 0.0)
"""Weights of text, words, names, dates, scope in BM25."""
_WEIGHTS: Final = ", ".join(map(str, COLUMN_WEIGHTS))


class Lexicon:
    """The words of what is known now, for one question."""

    def __init__(self, connection: apsw.Connection, query: Query, where: Filter) -> None:
        self._asked = (connection, query, where)

    def search(self, limit: int) -> dict[int, float]:
        """Return the BM25 score, above zero, of the best eligible memories by number."""
        return search(*self._asked, limit)

    def held(self, pks: Ints) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return which terms each candidate holds, and the weight of each term."""
        connection, query, where = self._asked
        return terms_held(connection, query, pks, where)


def search(
    connection: apsw.Connection, query: Query, where: Filter, limit: int = DEPTH
) -> dict[int, float]:
    """Return the BM25 score, above zero, of the best eligible memories by number."""
    match = query.match(_scope(connection, where))
    if match is None:
        return {}
    # Of the best as of an earlier moment few may be left: they are not looked for first.
    for reach in (2 * limit, -1) if where.known_by is None else (-1,):
        rows, cut = _best(connection, match, where, limit, reach)
        if len(rows) == limit or not cut:
            break
    return {pk: -score for pk, score in rows}


def _best(
    connection: apsw.Connection, match: str, where: Filter, limit: int, reach: int
) -> tuple[list[tuple[Any, ...]], bool]:
    """Filter the `reach` best matches (-1: all); say whether the cut may have cost eligible ones.

    Looking up every match to filter it costs more than ranking it, so the best come first.
    """
    sql, values = condition(where)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select f.rowid, f.score from
              (select rowid, bm25(memory_fts, {_WEIGHTS}) as score
               from memory_fts where memory_fts match :match order by 2 limit :reach) f
            cross join memory m on m.pk = f.rowid where {sql} order by 2 limit :limit""",
        {**values, "match": match, "limit": limit, "reach": reach},
    ).fetchall()
    return rows, reach >= 0


def terms_held(
    connection: apsw.Connection, query: Query, pks: Ints, where: Filter
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which terms each candidate holds, and the weight of each term in the whole index."""
    scope = _scope(connection, where)
    documents = connection.execute("select count(*) from memory").get
    tokenize = bm25.tokenizer(connection)
    frequency = np.array([_frequency(connection, term, tokenize) for term in query.terms])
    present = np.zeros((len(pks), len(query.terms)), bool)
    for column, term in enumerate(query.terms):
        if len(pks) and frequency[column]:
            hits = _holding(connection, one_term(term, scope), pks)
            present[np.searchsorted(pks, hits), column] = True
    return present, idf(documents, frequency.astype(np.float64))


def _frequency(connection: apsw.Connection, term: Term, tokenize: bm25.Tokenize) -> int:
    """Return how many memories of the file hold a term, from the index's own vocabulary."""
    tokens = tokenize(term.text)
    if len(tokens) == 1 and not term.prefix:
        number: int | None = connection.execute(
            "select doc from memory_vocab where term = ?", tokens
        ).get
        return number or 0
    return int(
        connection.execute(
            "select count(*) from memory_fts where memory_fts match ?", (one_term(term),)
        ).get
    )


def _holding(connection: apsw.Connection, match: str, pks: Ints) -> Ints:
    """Return which candidates a term finds; the plus keeps FTS5 from searching once a rowid."""
    hits: str = connection.execute(
        """select json_group_array(f.rowid) from memory_fts f
           where memory_fts match ?2 and +f.rowid in (select value from carray(?1))""",
        (apsw.carray(pks), match),
    ).get
    return np.array(json.loads(hits), np.int64)


def _scope(connection: apsw.Connection, where: Filter) -> int | None:
    """Return the collection to search in the index itself, when the file holds several."""
    if where.collection == ANY_COLLECTION:
        return None
    several = connection.execute("select count(*) > 1 from (select 1 from collection limit 2)").get
    return collection_pk(connection, where.collection) if several else None
