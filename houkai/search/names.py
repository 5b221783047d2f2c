"""The entity channel: memories that carry a name of which the question says a word.

A tag, an entity or an author is met exactly, by its beginning, or by the beginning of a later word
of it. A match is worth one by the number of memories that carry it, so a name that few carry counts
and one that many carry does not [the entity stream of ai-memory].
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

import apsw
import numpy as np

from houkai.search.arrays import Ints, numbers
from houkai.search.lexical import scope_of
from houkai.search.query import Query
from houkai.search.sketches import View
from houkai.stopwords import STOP_WORDS
from houkai.storage.eligible import Filter, condition

SHORTEST: Final = 3
"""Letters of a word that may begin a name."""
WORDS: Final = 12
"""Words of a question that are looked up."""
COMMON: Final = 100
"""Eligible memories from which on a name says nothing about any of them."""
REACH: Final = 1_000
FILTERED_REACH: Final = 10_000
"""Memories from which on a name says nothing of those either that are left of them, without and
with a filter.
"""


def carrying(view: View, query: Query, where: Filter) -> dict[int, float]:
    """Return what the names of eligible memories are worth, by number: 0 to 1."""
    worth: defaultdict[int, float] = defaultdict(float)
    scope = scope_of(view.connection, where)
    inside = "" if scope is None else f"scope : scope{scope} AND "
    words = [w for w in sorted(query.words) if len(w) >= SHORTEST and w not in STOP_WORDS]
    if not words:
        return {}
    asked = [f'"{word}"*' for word in words[:WORDS]]
    any_of = f"{inside}names : ({' OR '.join(asked)})"
    if where.known_by is None and not len(_matches(view.connection, any_of, 1)):
        return {}  # which is the rule, and one look tells it
    for word in asked:
        found = _carriers(view, f"{inside}names : {word}", where)
        for pk in found if len(found) <= COMMON else ():
            worth[pk] += 1 / len(found)
    return {pk: min(1.0, value) for pk, value in worth.items()}


def _carriers(view: View, match: str, where: Filter) -> list[int]:
    """Return the eligible memories that match; none where there are too many to tell apart."""
    reach = FILTERED_REACH if where.narrow() else REACH
    found = _matches(view.connection, match, reach + 1)
    if len(found) > reach:
        return []
    live: list[int] = view.eligible(np.sort(found), where).tolist()
    return live if where.known_by is None else live + _past_carriers(view.connection, match, where)


def _matches(connection: apsw.Connection, match: str, limit: int) -> Ints:
    return numbers(
        connection,
        "select rowid as number from memory_fts where memory_fts match ? limit ?",
        (match, limit),
    )


def _past_carriers(connection: apsw.Connection, match: str, where: Filter) -> list[int]:
    """Return the eligible past versions that match, up to one more than are too many."""
    sql, values = condition(where, past=True)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""select m.pk from past_fts f cross join past m on m.pk = f.rowid
            where past_fts match :match and {sql} limit :limit""",
        {**values, "match": match, "limit": COMMON + 1},
    ).fetchall()
    return [-pk for (pk,) in rows]
