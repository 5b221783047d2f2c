"""The lexical channel: BM25 by FTS5 over the eligible memories."""

from __future__ import annotations

from typing import Final

import apsw

from houkai.search.query import Query
from houkai.storage.eligible import ANY_COLLECTION, Filter, condition
from houkai.storage.rows import collection_pk

DEPTH: Final = 400
"""Memories taken from the channel; further down BM25 tells nothing apart."""
COLUMN_WEIGHTS: Final = (1.0, 1.0, 1.0, 0.2, 0.0)
"""Weights of text, words, names, dates, scope in BM25."""


def search(
    connection: apsw.Connection, query: Query, where: Filter, limit: int = DEPTH
) -> dict[int, float]:
    """Return the BM25 score, above zero, of the best eligible memories by number."""
    match = query.match(_scope(connection, where))
    if match is None:
        return {}
    sql, values = condition(where)
    weights = ", ".join(map(str, COLUMN_WEIGHTS))
    rows = connection.execute(
        f"""select f.rowid, bm25(memory_fts, {weights}) from memory_fts f
            join memory m on m.pk = f.rowid
            where memory_fts match :match and {sql}
            order by bm25(memory_fts, {weights}) limit :limit""",
        {**values, "match": match, "limit": limit},
    )
    return {pk: -score for pk, score in rows}


def _scope(connection: apsw.Connection, where: Filter) -> int | None:
    """Return the collection to search in the index itself, when the file holds several."""
    if where.collection == ANY_COLLECTION:
        return None
    several = connection.execute("select count(*) > 1 from (select 1 from collection limit 2)").get
    return collection_pk(connection, where.collection) if several else None
