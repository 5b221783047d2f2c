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
"""Memories from which on a name says nothing about any of them."""


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
        for pk in found if len(found) <= COMMON else ():
            worth[pk] += 1 / len(found)
    return {pk: min(1.0, value) for pk, value in worth.items()}


def _any(connection: apsw.Connection, match: str) -> bool:
    return bool(
        connection.execute(
            "select exists (select 1 from memory_fts where memory_fts match ?)", (match,)
        ).get
    )


def _carriers(connection: apsw.Connection, match: str, where: Filter) -> list[int]:
    """Return up to one more than are too many."""
    found = _matches(connection, match, where, past=False)
    if where.known_by is not None:
        found += [-pk for pk in _matches(connection, match, where, past=True)]
    return found


def _matches(connection: apsw.Connection, match: str, where: Filter, *, past: bool) -> list[int]:
    sql, values = condition(where, past=past, each=True)
    table = "past" if past else "memory"
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select m.pk from (select rowid from {table}_fts where {table}_fts match :match
                              limit :limit) f
            cross join {table} m on m.pk = f.rowid where {sql}""",
        {**values, "match": match, "limit": COMMON + 1},
    ).fetchall()
    return [pk for (pk,) in rows]
