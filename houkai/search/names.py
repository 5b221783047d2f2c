"""The entity channel: memories that carry a name of which the question says a word.

A tag, an entity or an author is met exactly, by its beginning, or by the beginning of a later word
of it. A match is worth one by the number of memories that carry it, so a name that few carry counts
and one that many carry does not [the entity stream of ai-memory].
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import apsw

from houkai.search.lexical import scope_of
from houkai.search.query import Query
from houkai.stopwords import STOP_WORDS
from houkai.storage.eligible import Filter, condition

SHORTEST: Final = 3
"""Letters of a word that may begin a name."""
WORDS: Final = 12
"""Words of a question that are looked up."""
COMMON: Final = 100
"""Eligible memories from which on a name says nothing about any of them."""
REACH: Final = 10_000
"""Memories from which on a name says nothing of those either that a filter leaves of them."""


def carrying(connection: apsw.Connection, query: Query, where: Filter) -> dict[int, float]:
    """Return what the names of eligible memories are worth, by number: 0 to 1."""
    worth: defaultdict[int, float] = defaultdict(float)
    scope = scope_of(connection, where)
    inside = "" if scope is None else f"scope : scope{scope} AND "
    words = [w for w in sorted(query.words) if len(w) >= SHORTEST and w not in STOP_WORDS]
    if not words:
        return {}
    asked = [f'"{word}"*' for word in words[:WORDS]]
    if where.known_by is None and not _any(connection, f"{inside}names : ({' OR '.join(asked)})"):
        return {}  # which is the rule, and one look tells it
    for word in asked:
        found = _carriers(connection, f"{inside}names : {word}", where)
        for pk in found:
            worth[pk] += 1 / len(found)
    return {pk: min(1.0, value) for pk, value in worth.items()}


def _any(connection: apsw.Connection, match: str) -> bool:
    return _goes_beyond(connection, "memory", match, 0)


def _goes_beyond(connection: apsw.Connection, table: str, match: str, count: int) -> bool:
    """Say whether more than a number of memories match, eligible or not."""
    return bool(
        connection.execute(
            f"""select exists
                (select 1 from {table}_fts where {table}_fts match ? limit 1 offset ?)""",
            (match, count),
        ).get
    )


def _carriers(connection: apsw.Connection, match: str, where: Filter) -> list[int]:
    """Return the eligible memories that match; none where there are too many to tell apart."""
    tables = {"memory": 1} if where.known_by is None else {"memory": 1, "past": -1}
    if any(_goes_beyond(connection, table, match, REACH) for table in tables):
        return []
    found = [
        sign * pk
        for table, sign in tables.items()
        for pk in _eligible(connection, match, where, table)
    ]
    return found if len(found) <= COMMON else []


def _eligible(connection: apsw.Connection, match: str, where: Filter, table: str) -> list[int]:
    """Return the eligible ones that match, up to one more than are too many."""
    sql, values = condition(where, past=table == "past", each=True)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select m.pk from {table}_fts f cross join {table} m on m.pk = f.rowid
            where {table}_fts match :match and {sql} limit :limit""",
        {**values, "match": match, "limit": COMMON + 1},
    ).fetchall()
    return [pk for (pk,) in rows]
