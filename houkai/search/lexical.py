"""The lexical channel: BM25 by FTS5 over the eligible memories."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import islice
from operator import itemgetter
from typing import Any, Final

import apsw
import numpy as np

from houkai.search import bm25
from houkai.search.arrays import Floats, Ints, Mask, bound, distinct, held, numbers
from houkai.search.blend import idf
from houkai.search.query import Query, Term, one_term
from houkai.search.sketches import View
from houkai.storage.eligible import ANY_COLLECTION, Filter
from houkai.storage.rows import collection_pk

DEPTH: Final = 400
"""Memories taken from the channel; further down BM25 tells nothing apart."""
ENOUGH: Final = 150
"""Eligible memories with which a filtered search is content, if no more are asked for."""
SOME: Final = 4_000
SHARE: Final = 0.2
"""Eligible memories, or their share of the file, up to which the others are not scored."""
LONG: Final = 2_000
"""Matches of a term beyond which SQLite picks out the candidates among them."""
GATE: Final = 50_000
"""Matches beyond which only memories are ranked that hold one of a question's rarer words."""
FEWEST: Final = 2
"""Words that are always among the rarer ones."""
COLUMN_WEIGHTS: Final = (1.0, 1.0, 1.0, 1.0, 0.0)
"""Weights of text, words, names, dates, scope in BM25."""
_WEIGHTS: Final = ", ".join(map(str, COLUMN_WEIGHTS))


class Lexicon:
    """The words of what is known now, for one question."""

    def __init__(self, view: View, query: Query, where: Filter) -> None:
        self._view, self._query, self._where = view, query, where

    @cached_property
    def _scope(self) -> int | None:
        return scope_of(self._view.connection, self._where)

    @cached_property
    def _size(self) -> int:
        return bm25.rows_and_tokens(self._view.connection)[0]

    @cached_property
    def _frequencies(self) -> list[int]:
        """Return how many memories of the file hold each term."""
        return [_frequency(self._view.connection, term) for term in self._query.terms]

    def search(self, limit: int = DEPTH, at_least: int = 0) -> dict[int, float]:
        """Return the BM25 score, above zero, of the best eligible memories by number."""
        if not self._query.terms:
            return {}
        where, narrow = self._where, self._where.narrow() or self._where.known_by is not None
        few = self._few() if narrow else None
        if few is not None:
            return self._best(limit, few)
        reach = 4 * limit if narrow else limit + limit // 4
        enough = min(limit, max(ENOUGH, at_least))
        while True:
            found = self._best(reach)
            kept = self._view.eligible(distinct(np.fromiter(found, np.int64, len(found))), where)
            if len(kept) >= enough or len(found) < reach:
                break
            few = self._few()
            if few is not None:
                return self._best(limit, few)
            reach = max(4 * reach, math.ceil(1.2 * enough * len(found) / max(len(kept), 1)))
        if len(kept) < len(found):
            wanted = set(kept.tolist())
            found = {pk: value for pk, value in found.items() if pk in wanted}
        return dict(islice(found.items(), limit))

    def _few(self) -> Ints | None:
        """Return the eligible memories in order where they are so few that only they are scored."""
        return self._view.few(self._where, max(SOME, int(SHARE * self._size)))

    def _best(self, reach: int, among: Ints | None = None) -> dict[int, float]:
        """Return the scores of the `reach` best matches, best first, eligible or not.

        Looking up every match to filter it costs more than ranking it, unless it need only be
        found among a few. The plus keeps FTS5 from searching once a rowid.
        """
        rare = self._rare(reach) if among is None else None
        match = self._query.match(self._scope, rare)
        inside = "" if among is None else "and +rowid in (select value from carray(:among))"
        values = {"match": match, "reach": reach}
        rows: list[tuple[Any, ...]] = self._view.connection.execute(
            f"""select rowid, -bm25(memory_fts, {_WEIGHTS}) as score from memory_fts
                where memory_fts match :match {inside} order by 2 desc limit :reach""",
            values if among is None else {**values, "among": bound(among)},
        ).fetchall()
        return dict(rows) if rare is None else {pk: score / 2 for pk, score in rows}

    def _rare(self, reach: int) -> list[Term] | None:
        """Return the rarest terms with up to GATE matches, None when that makes no difference.

        A scope thins the matches out, so that what is rare in the file may be missing from it.
        """
        if self._size <= GATE or self._scope is not None:
            return None
        terms = sorted(zip(self._frequencies, self._query.terms, strict=True), key=itemgetter(0))
        total, rare = 0, list[Term]()
        for frequency, term in terms:
            total += frequency
            if total > GATE and len(rare) >= FEWEST and total - frequency >= reach:
                return rare
            rare.append(term)
        return None

    def held(self, pks: Ints) -> tuple[Mask, Floats]:
        """Return which terms each candidate holds, and the weight of each term in the file."""
        connection, terms = self._view.connection, self._query.terms
        large = self._size > GATE
        frequency = np.array(self._frequencies if large else [0] * len(terms), np.float64)
        present = np.zeros((len(pks), len(terms)), bool)
        for column, term in enumerate(terms):
            if frequency[column] <= LONG:
                hits = _hits(connection, term)
                if not large:
                    long = len(hits) > LONG
                    frequency[column] = _frequency(connection, term) if long else len(hits)
            if frequency[column] > LONG:
                hits = _picked(connection, one_term(term, self._scope), pks)
            present[:, column] = held(pks, np.sort(hits))
        return present, idf(self._size, frequency)


def _hits(connection: apsw.Connection, term: Term) -> Ints:
    """Return up to LONG memories of the file that a term finds, and one more if there are more."""
    return numbers(
        connection,
        "select rowid as number from memory_fts where memory_fts match ? limit ?",
        (one_term(term), LONG + 1),
    )


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
    return numbers(
        connection,
        """select f.rowid as number from memory_fts f
           where memory_fts match ?2 and +f.rowid in (select value from carray(?1))""",
        (bound(pks), match),
    )


def scope_of(connection: apsw.Connection, where: Filter) -> int | None:
    """Return the collection to search in the index itself, when the file holds several."""
    if where.collection == ANY_COLLECTION:
        return None
    several = connection.execute("select count(*) > 1 from (select 1 from collection limit 2)").get
    return collection_pk(connection, where.collection) if several else None
