"""The lexical channel: BM25 by FTS5 over the eligible memories."""

from __future__ import annotations

import json
import math
from itertools import islice
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search import bm25
from houkai.search.blend import idf
from houkai.search.query import Query, Term, one_term
from houkai.search.sketches import ENOUGH, Ints, among, distinct
from houkai.storage.eligible import ANY_COLLECTION, Filter
from houkai.storage.rows import collection_pk

DEPTH: Final = 400
"""Memories taken from the channel; further down BM25 tells nothing apart."""
LONG: Final = 2_000
"""Matches of a term beyond which SQLite picks out the candidates among them."""
COLUMN_WEIGHTS: Final = (1.0, 1.0, 1.0, 1.0, 0.0)
"""Weights of text, words, names, dates, scope in BM25."""
_WEIGHTS: Final = ", ".join(map(str, COLUMN_WEIGHTS))


class Lexicon:
    """The words of what is known now, for one question."""

    def __init__(self, connection: apsw.Connection, query: Query, where: Filter) -> None:
        self._asked = (connection, query, where)

    def search(self, limit: int, at_least: int = 0) -> dict[int, float]:
        """Return the BM25 score, above zero, of the best eligible memories by number."""
        return search(*self._asked, limit, at_least)

    def held(self, pks: Ints) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return which terms each candidate holds, and the weight of each term."""
        connection, query, where = self._asked
        return terms_held(connection, query, pks, where)


def search(
    connection: apsw.Connection,
    query: Query,
    where: Filter,
    limit: int = DEPTH,
    at_least: int = 0,
) -> dict[int, float]:
    """Return the BM25 score, above zero, of the best eligible memories by number."""
    match = query.match(scope_of(connection, where))
    if match is None:
        return {}
    reach = 4 * limit if where.narrow() or where.known_by else limit + limit // 4
    enough = min(limit, max(ENOUGH, at_least))
    while True:
        found = _best(connection, match, reach)
        kept = among(connection, distinct(np.fromiter(found, np.int64, len(found))), where)
        if len(kept) >= enough or len(found) < reach:
            break
        reach = max(4 * reach, math.ceil(1.2 * enough * len(found) / max(len(kept), 1)))
    wanted = set(kept.tolist())
    return dict(islice(((pk, value) for pk, value in found.items() if pk in wanted), limit))


def _best(connection: apsw.Connection, match: str, reach: int) -> dict[int, float]:
    """Return the scores of the `reach` best matches, best first, eligible or not.

    Looking up every match to filter it costs more than ranking it.
    """
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select rowid, -bm25(memory_fts, {_WEIGHTS}) as score from memory_fts
            where memory_fts match ? order by 2 desc limit ?""",
        (match, reach),
    ).fetchall()
    return dict(rows)


def terms_held(
    connection: apsw.Connection, query: Query, pks: Ints, where: Filter
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which terms each candidate holds, and the weight of each term in the whole index."""
    documents = bm25.rows_and_tokens(connection)[0]
    scope = scope_of(connection, where)
    frequency = np.zeros(len(query.terms))
    present = np.zeros((len(pks), len(query.terms)), bool)
    for column, term in enumerate(query.terms):
        hits = _hits(connection, term)
        frequency[column] = len(hits)
        if len(hits) > LONG:
            frequency[column] = _frequency(connection, term)
            hits = _picked(connection, one_term(term, scope), pks)
        if len(pks) and len(hits):
            place = np.minimum(np.searchsorted(pks, hits), len(pks) - 1)
            present[place[pks[place] == hits], column] = True
    return present, idf(documents, frequency)


def _hits(connection: apsw.Connection, term: Term) -> Ints:
    """Return up to LONG memories of the file that a term finds, and one more if there are more."""
    found: str = connection.execute(
        """select json_group_array(rowid) from
             (select rowid from memory_fts where memory_fts match ? limit ?)""",
        (one_term(term), LONG + 1),
    ).get
    return np.array(json.loads(found), np.int64)


def _frequency(connection: apsw.Connection, term: Term) -> int:
    """Return how many memories of the file hold a term, from the index's own vocabulary."""
    tokens = bm25.tokenizer(connection)(term.text)
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


def _picked(connection: apsw.Connection, match: str, pks: Ints) -> Ints:
    """Return which candidates a term finds; the plus keeps FTS5 from searching once a rowid."""
    if not len(pks):
        return pks
    hit: str = connection.execute(
        """select json_group_array(f.rowid) from memory_fts f
           where memory_fts match ?2 and +f.rowid in (select value from carray(?1))""",
        (apsw.carray(pks), match),
    ).get
    return np.array(json.loads(hit), np.int64)


def scope_of(connection: apsw.Connection, where: Filter) -> int | None:
    """Return the collection to search in the index itself, when the file holds several."""
    if where.collection == ANY_COLLECTION:
        return None
    several = connection.execute("select count(*) > 1 from (select 1 from collection limit 2)").get
    return collection_pk(connection, where.collection) if several else None
