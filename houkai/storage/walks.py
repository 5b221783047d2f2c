"""Walk along links breadth first, one query a hop.

A recursive query is no faster, on wide walks slower by half (benchmarks/graph.py), and can neither
stop at a limit of nodes nor meet another walk half way.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import apsw

from houkai.limits import GRAPH_NODES
from houkai.vocabulary import Direction, Relation

_OUT: Final = "select a.value, l.dst, l.rel from carray(:at) a cross join link l on l.src = a.value"
_IN: Final = "select a.value, l.src, l.rel from carray(:at) a cross join link l on l.dst = a.value"
_ARMS: Final[dict[Direction, tuple[str, ...]]] = {
    "out": (_OUT,),
    "in": (_IN,),
    "both": (_OUT, _IN),
}


class Reach(NamedTuple):
    """Where a walk came: each memory's distance, and every relation that first reached it."""

    hops: dict[int, int]
    arrivals: list[tuple[int, Relation]]
    truncated: bool


class Trail(NamedTuple):
    """A shortest path as (memory, relation that led to it), empty when there is none."""

    steps: list[tuple[int, str]]
    truncated: bool


def links_at(
    connection: apsw.Connection,
    pks: Iterable[int],
    direction: Direction = "both",
    rels: Sequence[Relation] = (),
) -> Iterable[tuple[Any, ...]]:
    """Return (memory, other end, relation) of the links at some memories, of all relations or some.

    A link between two of them comes once for each end that the direction asks about.
    """
    at = array("q", pks)
    if not at:
        return ()
    names = {f"rel{number}": rel for number, rel in enumerate(rels)}
    only = f" and l.rel in ({', '.join(f':{name}' for name in names)})" if rels else ""
    sql = " union all ".join(arm + only for arm in _ARMS[direction])
    return connection.execute(sql, {"at": apsw.carray(at), **names})


def reach(
    connection: apsw.Connection,
    starts: Iterable[int],
    depth: int,
    direction: Direction = "both",
    rels: Sequence[Relation] = (),
    limit: int = GRAPH_NODES,
    enough: float = math.inf,
) -> Reach:
    """Return the memories within `depth` links, nearest first, as far as the limit of nodes.

    No further hop is made once there are `enough` arrivals.
    """
    hops = dict.fromkeys(starts, 0)
    arrivals: dict[tuple[int, Relation], None] = {}
    frontier: Iterable[int] = hops.copy()
    for hop in range(1, depth + 1):
        if len(arrivals) >= enough:
            break
        fresh: dict[int, int] = {}
        for _, pk, rel in links_at(connection, frontier, direction, rels):
            if pk in hops:
                continue
            if pk not in fresh and len(hops) + len(fresh) >= limit:
                return Reach({**hops, **fresh}, list(arrivals), truncated=True)
            fresh[pk] = hop
            arrivals[pk, rel] = None
        hops |= fresh
        frontier = fresh
    return Reach(hops, list(arrivals), truncated=False)


def shortest(
    connection: apsw.Connection, start: int, goal: int, depth: int, limit: int = GRAPH_NODES
) -> Trail:
    """Return a shortest path between two memories, against the arrows or along them.

    Two walks go towards each other, the smaller frontier first, so that a hub on the way is
    opened once.
    """
    if start == goal:
        return Trail([(start, "")], truncated=False)
    came: tuple[_Tree, _Tree] = ({start: (start, "")}, {goal: (goal, "")})
    frontiers = [[start], [goal]]
    for _ in range(depth):
        side = 0 if len(frontiers[0]) <= len(frontiers[1]) else 1
        mine, other = came[side], came[1 - side]
        fresh: list[int] = []
        for at, pk, rel in links_at(connection, frontiers[side]):
            if pk not in mine:
                mine[pk] = (at, rel)
                fresh.append(pk)
        met = [pk for pk in fresh if pk in other]
        if met:
            return Trail(_joined(*came, min(met)), truncated=False)
        if len(came[0]) + len(came[1]) > limit:
            return Trail([], truncated=True)
        frontiers[side] = fresh
    return Trail([], truncated=False)


_Tree = dict[int, tuple[int, str]]
"""Each memory of a walk with the one before it and the relation between them."""


def _joined(ahead: _Tree, behind: _Tree, meeting: int) -> list[tuple[int, str]]:
    steps: list[tuple[int, str]] = []
    at = meeting
    while (came := ahead[at])[0] != at:
        steps.append((at, came[1]))
        at = came[0]
    steps.append((at, ""))
    steps.reverse()
    at = meeting
    while (goes := behind[at])[0] != at:
        at = goes[0]
        steps.append((at, goes[1]))
    return steps
