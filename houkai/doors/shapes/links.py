"""What the operations on links answer."""

from collections.abc import Sequence
from typing import Final, TypedDict, cast

from houkai.doors.forms import Passed
from houkai.doors.shapes.memories import Whole
from houkai.doors.shapes.picking import Given, pick
from houkai.model import Graph, Neighbor

EXCERPT: Final = 120
"""Signs of a text that a listing of something else shows."""


class Linked(TypedDict):
    """A link that now is there."""

    ok: bool
    src_id: str
    dst_id: str
    rel: str


class Unlinked(TypedDict):
    """How many links were removed."""

    removed: int


class Near(TypedDict):
    """A linked memory, and the relation that reached it."""

    id: str
    text: str
    type: str
    tags: list[str]
    importance: float
    rel: str
    trust: str


class Arrow(TypedDict):
    """A link seen from outside."""

    src: str
    dst: str
    rel: str


class Stop(TypedDict):
    """A memory on a path, and the relation that led to it."""

    id: str
    rel: str
    text: str
    trust: str


class Path(TypedDict):
    """A chain of links between two memories."""

    found: bool
    length: int
    path: list[Stop]


class Node(Whole):
    """A memory of a graph with all its fields."""

    id: str


class Network(TypedDict):
    """Memories and the links between them."""

    nodes: list[Node]
    edges: list[Arrow]
    truncated: bool


def link(_new: bool, given: Given) -> Linked:
    """Show the link, new or not."""
    return {
        "ok": True,
        "src_id": given["src_id"],
        "dst_id": given["dst_id"],
        "rel": given["rel"],
    }


def unlink(removed: int, _given: Given) -> Unlinked:
    """Show how many links were removed."""
    return {"removed": removed}


def neighbors(found: Sequence[Neighbor], _given: Given) -> list[Near]:
    """Show linked memories, nearest first."""
    return [pick(Near, one.memory, rel=one.rel) for one in found]


def subgraph(graph: Graph, _given: Given) -> Network:
    """Show a graph."""
    return cast("Network", graph.to_dict())


def find_path(trail: Sequence[Passed], _given: Given) -> Path:
    """Show a path with the beginning of each text."""
    stops: list[Stop] = [
        {"id": one.id, "rel": one.rel, "text": memory.text[:EXCERPT], "trust": memory.trust}
        for one, memory in trail
    ]
    return {"found": bool(stops), "length": max(0, len(stops) - 1), "path": stops}
