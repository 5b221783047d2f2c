"""Link memories to each other, and find what is linked."""

from __future__ import annotations

import math
from typing import Any

from houkai import params
from houkai.errors import InputError
from houkai.handle import Store
from houkai.limits import GRAPH_NODES
from houkai.model import Edge, Graph, Neighbor, Step
from houkai.notes import note
from houkai.ops.listing import present
from houkai.rules import clean
from houkai.storage import memories, walks
from houkai.storage.journal import Tx
from houkai.storage.rows import link_key


def link(
    store: Store, src_id: params.MemoryId, dst_id: params.MemoryId, rel: params.Rel = "related"
) -> bool:
    """Link one memory to another, and say whether the link is new.

    Two memories may be linked by several relations. To replace one memory by another call
    supersede, which also hides the old one. Raises NotFound, InputError.
    """
    values = clean(link, {"src_id": src_id, "dst_id": dst_id, "rel": rel})
    src, dst = values["src_id"], values["dst_id"]
    if src == dst:
        raise InputError("src_id and dst_id must differ: a memory cannot be linked to itself.")

    def work(tx: Tx) -> bool:
        for id in (src, dst):
            present(store, tx, id)
        key = link_key(src, values["rel"], dst)
        return tx.get("link", key) is None and tx.put("link", key, {"created_at": tx.at})

    return store.write("link", work)


def unlink(
    store: Store,
    src_id: params.MemoryId,
    dst_id: params.MemoryId,
    rel: params.RelFilter = None,
) -> int:
    """Remove the links from one memory to another, and return how many there were.

    A superseded memory stays hidden; restore shows it again. Raises InputError.
    """
    values = clean(unlink, {"src_id": src_id, "dst_id": dst_id, "rel": rel})
    src, dst = values["src_id"], values["dst_id"]

    def work(tx: Tx) -> int:
        ends = memories.numbers(tx.connection, (src, dst), store.collection)
        rows: list[tuple[Any, ...]] = tx.connection.execute(
            "select rel from link where src = ? and dst = ?", (ends.get(src), ends.get(dst))
        ).fetchall()
        found = [found for (found,) in rows if values["rel"] in (None, found)]
        return sum(tx.put("link", link_key(src, one, dst), None) for one in found)

    return store.write("unlink", work)


def neighbors(
    store: Store,
    memory_id: params.MemoryId,
    *,
    rel: params.RelFilter = None,
    direction: params.Heading = "both",
    depth: params.Depth = 1,
    limit: params.Limit = None,
) -> list[Neighbor]:
    """Return the memories linked to one, nearest first, each with the relation that reached it.

    One that several relations reach at once comes once for each. Hidden ones are included, and an
    unknown id has no neighbors. Raises InputError.
    """
    given = {name: value for name, value in locals().items() if name != "store"}
    values = clean(neighbors, given)
    rels = () if values["rel"] is None else (values["rel"],)
    with store.read() as connection:
        start = memories.numbers(connection, [values["memory_id"]], store.collection).values()
        most = math.inf if values["limit"] is None else values["limit"]
        reach = walks.reach(
            connection, start, values["depth"], values["direction"], rels, enough=most
        )
        arrivals = reach.arrivals[: values["limit"]]
        found = memories.by_pks(
            connection, list(dict.fromkeys(pk for pk, _ in arrivals)), store.touches
        )
    _tell(reach.truncated, "The neighbors are")
    return [Neighbor(found[pk], rel) for pk, rel in arrivals]


def subgraph(store: Store, memory_ids: params.MemoryIds, *, depth: params.Depth = 1) -> Graph:
    """Return the memories that some lead to along outgoing links, with the links on the way.

    Unknown ids are left out. Raises InputError.
    """
    values = clean(subgraph, {"memory_ids": memory_ids, "depth": depth})
    with store.read() as connection:
        starts = memories.numbers(connection, values["memory_ids"], store.collection)
        reach = walks.reach(connection, starts.values(), values["depth"], "out")
        passed = [pk for pk, hop in reach.hops.items() if hop < values["depth"]]
        edges = list(walks.links_at(connection, passed, "out"))
        found = memories.by_pks(connection, list(reach.hops), store.touches)
    _tell(reach.truncated, "The graph is")
    return Graph(
        {found[pk].id: found[pk] for pk in reach.hops},
        [Edge(found[src].id, found[dst].id, rel) for src, dst, rel in edges if dst in found],
        reach.truncated,
    )


def find_path(
    store: Store,
    from_id: params.MemoryId,
    to_id: params.MemoryId,
    *,
    max_depth: params.Depth = 6,
) -> list[Step]:
    """Return a shortest chain of links between two memories, whichever way the links point.

    The first step is `from_id` itself, with the relation "". Empty when no chain of at most
    `max_depth` links joins them. Raises InputError.
    """
    values = clean(find_path, {"from_id": from_id, "to_id": to_id, "max_depth": max_depth})
    ends = (values["from_id"], values["to_id"])
    with store.read() as connection:
        known = memories.numbers(connection, ends, store.collection)
        if len(known) < len(set(ends)):
            return []
        start, goal = (known[id] for id in ends)
        trail = walks.shortest(connection, start, goal, values["max_depth"])
        ids = memories.ids(connection, [pk for pk, _ in trail.steps])
    _tell(trail.truncated, "The search for a path was")
    return [Step(ids[pk], rel) for pk, rel in trail.steps]


def _tell(truncated: bool, what: str) -> None:
    if truncated:
        note(f"{what} cut off at {GRAPH_NODES:,} memories, the limit of a graph.")
