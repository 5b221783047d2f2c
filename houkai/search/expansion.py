"""Walk from the hits along their links, by the same filter that chose the hits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import apsw
import numpy as np

from houkai.model import ExpandSpec
from houkai.search.arrays import bound, distinct
from houkai.search.sketches import View
from houkai.storage.eligible import Filter, condition
from houkai.vocabulary import LINK_RELS

TRIED: Final = 5
"""Links that are looked at for each that is wanted, since filters keep some of them out."""


@dataclass(frozen=True)
class Neighbour:
    """A memory reached along links: its number, the last relation, the hops, its score."""

    pk: int
    rel: str
    hop: int
    score: float


def walk(
    connection: apsw.Connection, start: Sequence[int], spec: ExpandSpec, where: Filter
) -> list[Neighbour]:
    """Return the neighbours breadth first: hop h scores score * decay ** (h - 1).

    A memory that the filter keeps out is not walked through.
    """
    found: list[Neighbour] = []
    seen, frontier = set(start), list(start)
    for hop in range(1, spec.depth + 1):
        reached = []
        for pk, rel in _step(connection, frontier, spec, where):
            if pk not in seen and len(found) < spec.cap:
                seen.add(pk)
                reached.append(pk)
                found.append(Neighbour(pk, rel, hop, spec.score * spec.decay ** (hop - 1)))
        if not reached or len(found) >= spec.cap:
            break
        frontier = reached
    return found


def passed_over(
    connection: apsw.Connection, start: Sequence[int], spec: ExpandSpec, where: Filter
) -> list[str]:
    """Name the relations that lead on from memories but are not among those that are followed."""
    others = replace(spec, rels=tuple(rel for rel in LINK_RELS if rel not in spec.rels))
    return sorted({rel for pk, rel in _step(connection, start, others, where) if pk not in start})


def _step(
    connection: apsw.Connection, frontier: Sequence[int], spec: ExpandSpec, where: Filter
) -> list[tuple[Any, ...]]:
    sql, values = condition(where)
    return connection.execute(
        f"""select m.pk, l.rel from json_each(:frontier) f
            cross join link l on l.src = f.value
            cross join memory m on m.pk = l.dst
            where l.rel in (select value from json_each(:rels)) and {sql}
            order by f.key, l.created_at, l.rel""",
        {**values, "frontier": json.dumps(list(frontier)), "rels": json.dumps(spec.rels)},
    ).fetchall()


def one_hop(view: View, start: Sequence[int], where: Filter, most: int) -> list[tuple[int, int]]:
    """Return up to `most` pairs of a memory and an eligible one that a link ties it to now."""
    pairs: list[tuple[int, int]] = view.connection.execute(  # type: ignore[assignment]
        """select l.src, l.dst from carray(?1) s cross join link l on l.src = s.value
           union all
           select l.dst, l.src from carray(?1) s cross join link l on l.dst = s.value limit ?2""",
        (bound(np.array(start, np.int64)), TRIED * most),
    ).fetchall()
    others = distinct(np.array([other for _, other in pairs], np.int64))
    kept = set(view.eligible(others, where).tolist())
    return [(one, other) for one, other in dict.fromkeys(pairs) if other in kept][:most]


def links_within(connection: apsw.Connection, pks: Sequence[int]) -> list[tuple[int, int]]:
    """Return the links between memories of a set, as pairs of positions in it."""
    place = {pk: position for position, pk in enumerate(pks)}
    rows: list[tuple[Any, ...]] = connection.execute(
        """select l.src, l.dst from json_each(?1) a cross join link l on l.src = a.value""",
        (json.dumps([pk for pk in pks if pk > 0]),),
    ).fetchall()
    return [(place[src], place[dst]) for src, dst in rows if dst in place]
