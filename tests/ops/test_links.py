"""Links: what joins two memories, and what is found along them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from houkai import InputError, Link, MemoryStore, NotFound, limits
from houkai.model import Edge, Graph
from houkai.storage import walks
from houkai.vocabulary import LINK_RELS

Linker = Callable[..., list[str]]


@pytest.fixture
def linked(store: MemoryStore) -> Linker:
    """Return a function that stores memories and links them as (source, target, relation)."""

    def make(names: str, *edges: tuple[str, str, str]) -> list[str]:
        ids = {name: store.remember(f"memory {name}").id for name in names}
        for src, dst, rel in edges:
            store.link(ids[src], ids[dst], rel)  # type: ignore[arg-type]
        return list(ids.values())

    return make


def reached(store: MemoryStore, id: str, **how: object) -> list[tuple[str, str]]:
    """Return the last word of each neighbor's text, and its relation."""
    return [(m.text[-1], rel) for m, rel in store.neighbors(id, **how)]  # type: ignore[arg-type]


def test_link_is_kept_once(store: MemoryStore, linked: Linker) -> None:
    """An agent that links twice would see its memory double."""
    a, b = linked("ab")
    assert store.link(a, b) is True
    before = store.journal()
    assert store.link(a, b) is False
    assert store.get(a).links == [Link(b, "related")]  # type: ignore[union-attr]
    assert store.journal() == before


@pytest.mark.parametrize("rel", LINK_RELS)
def test_every_relation_links(store: MemoryStore, linked: Linker, rel: str) -> None:
    """A relation that a document promises and the store refuses is a broken promise."""
    a, b = linked("ab")
    store.link(a, b, rel)  # type: ignore[arg-type]
    assert store.get(a).links == [Link(b, rel)]  # type: ignore[union-attr, arg-type]


def test_link_refuses_what_no_walk_could_follow(store: MemoryStore, linked: Linker) -> None:
    """A dangling or misspelt link is stored and never found again."""
    (a,) = linked("a")
    before = store.journal()
    with pytest.raises(NotFound, match="nowhere"):
        store.link(a, "nowhere")
    with pytest.raises(NotFound):
        store.link("nowhere", a)
    with pytest.raises(InputError, match="itself"):
        store.link(a, a)
    with pytest.raises(InputError, match="rel must be one of"):
        store.link(a, a, "likes")  # type: ignore[arg-type]
    assert store.journal() == before


def test_links_stay_inside_a_collection(store: MemoryStore, linked: Linker) -> None:
    """A link across collections would leak one project's memories into another's walks."""
    (a,) = linked("a")
    view = store.as_actor("other")
    view.collection = "other"
    b = view.remember("elsewhere").id
    with pytest.raises(NotFound):
        store.link(a, b)
    assert view.neighbors(a) == []
    assert view.unlink(a, b) == 0


def test_unlink_takes_one_relation_or_all(store: MemoryStore, linked: Linker) -> None:
    """Removing one of several parallel links must leave the others."""
    a, b = linked("ab", ("a", "b", "related"), ("a", "b", "causes"), ("b", "a", "fixes"))
    assert store.unlink(a, b, "causes") == 1
    assert reached(store, a, direction="out") == [("b", "related")]
    assert store.unlink(a, b, "causes") == 0
    store.link(a, b, "causes")
    assert store.unlink(a, b) == 2
    assert reached(store, a) == [("b", "fixes")]
    assert store.unlink("nowhere", b) == 0


def test_unlink_of_several_is_undone_whole(store: MemoryStore, linked: Linker) -> None:
    """An undo that restores one of two links loses the other for good."""
    a, _ = linked("ab", ("a", "b", "related"), ("a", "b", "causes"))
    before = store.get(a)
    store.unlink(a, _)
    store.undo_last()
    assert store.get(a) == before


def test_neighbors_by_direction_and_relation(store: MemoryStore, linked: Linker) -> None:
    """A walk against the arrow answers another question than one along it."""
    a, *_ = linked("abc", ("a", "b", "causes"), ("c", "a", "fixes"))
    assert sorted(reached(store, a)) == [("b", "causes"), ("c", "fixes")]
    assert reached(store, a, direction="out") == [("b", "causes")]
    assert reached(store, a, direction="in") == [("c", "fixes")]
    assert reached(store, a, rel="fixes") == [("c", "fixes")]
    assert reached(store, a, rel="related") == []
    assert reached(store, "nowhere") == []


def test_each_node_comes_at_its_first_hop(store: MemoryStore, linked: Linker) -> None:
    """A node met again on a longer way would be told twice, or the walk never end."""
    a, *_ = linked(
        "abcd",
        ("a", "b", "related"),
        ("a", "b", "causes"),
        ("b", "c", "refines"),
        ("a", "c", "fixes"),
        ("c", "d", "related"),
        ("d", "a", "related"),
    )
    found = reached(store, a, direction="out", depth=3)
    assert sorted(found[:3]) == [("b", "causes"), ("b", "related"), ("c", "fixes")]
    assert found[3:] == [("d", "related")]
    assert reached(store, a, depth=0) == []


def test_neighbors_are_limited_nearest_first(store: MemoryStore, linked: Linker) -> None:
    """Whoever asks for a few must get the nearest, not the first that were stored."""
    a, *_ = linked("abc", ("b", "c", "related"), ("a", "b", "causes"))
    assert reached(store, a, depth=2, limit=1) == [("b", "causes")]
    assert reached(store, a, depth=2, limit=0) == []


def test_a_few_neighbors_are_the_first_of_all(store: MemoryStore, linked: Linker) -> None:
    """A walk that ends early must not end so early that a nearer memory is missed."""
    ties = [("a", "b"), ("a", "c"), ("c", "d"), ("b", "d"), ("d", "e"), ("b", "f")]
    a, *_ = linked("abcdef", *[(one, other, "related") for one, other in ties])
    everything = reached(store, a, depth=4)
    assert len(everything) == 5
    for limit in range(7):
        assert reached(store, a, depth=4, limit=limit) == everything[:limit]
    with store.read() as connection:
        assert len(walks.reach(connection, [1], 4, enough=2).hops) == 3


def test_hidden_memories_are_neighbors(store: MemoryStore, linked: Linker) -> None:
    """What a memory replaced is found by its link, and nowhere else."""
    a, b = linked("ab")
    store.supersede(a, b)
    assert reached(store, b) == [("a", "supersedes")]


@pytest.mark.parametrize("walk", ["neighbors", "subgraph", "find_path"])
@pytest.mark.parametrize("depth", [-1, limits.GRAPH_DEPTH + 1, 1.5, True, "2"])
def test_depth_is_limited(store: MemoryStore, linked: Linker, walk: str, depth: object) -> None:
    """An unlimited walk reads the whole file for one careless call."""
    (a,) = linked("a")
    call: dict[str, Callable[[], object]] = {
        "neighbors": lambda: store.neighbors(a, depth=depth),  # type: ignore[arg-type]
        "subgraph": lambda: store.subgraph([a], depth=depth),  # type: ignore[arg-type]
        "find_path": lambda: store.find_path(a, a, max_depth=depth),  # type: ignore[arg-type]
    }
    with pytest.raises(InputError, match=r"depth must be .*6"):
        call[walk]()


def test_subgraph_expands_a_diamond(store: MemoryStore, linked: Linker) -> None:
    """A node first met at the limit on one way and earlier on another must be walked through."""
    a, b, c, d = linked(
        "abcd",
        ("a", "b", "related"),
        ("b", "c", "related"),
        ("a", "c", "related"),
        ("c", "d", "causes"),
    )
    graph = store.subgraph([a], depth=2)
    assert set(graph.nodes) == {a, b, c, d}
    assert Edge(c, d, "causes") in graph.edges
    assert not graph.truncated


def test_subgraph_goes_out_only_and_skips_the_unknown(store: MemoryStore, linked: Linker) -> None:
    """Links into a node are other memories' statements; an id that is gone is no reason to fail."""
    a, b, c = linked("abc", ("a", "b", "related"), ("c", "a", "related"), ("b", "c", "related"))
    assert store.subgraph([a, "nowhere"], depth=1) == Graph(
        {a: store.get(a), b: store.get(b)},  # type: ignore[dict-item]
        [Edge(a, b, "related")],
    )
    assert store.subgraph([a, c], depth=0).edges == []
    with pytest.raises(InputError):
        store.subgraph(a)  # type: ignore[arg-type]


def test_a_path_is_shortest_and_undirected(store: MemoryStore, linked: Linker) -> None:
    """How two memories relate does not depend on which way their author drew the arrows."""
    a, b, c, d, e = linked(
        "abcde",
        ("a", "b", "related"),
        ("c", "b", "causes"),
        ("c", "d", "fixes"),
        ("a", "e", "related"),
        ("e", "d", "refines"),
    )
    assert store.find_path(a, d) == [(a, ""), (e, "related"), (d, "refines")]
    assert store.find_path(b, d) == [(b, ""), (c, "causes"), (d, "fixes")]
    assert store.find_path(a, a) == [(a, "")]
    assert store.find_path(a, d, max_depth=1) == []
    assert store.find_path(a, "nowhere") == []


def test_no_path_between_islands(store: MemoryStore, linked: Linker) -> None:
    """A search that never meets its goal must end."""
    a, _b, c = linked("abc", ("a", "b", "related"))
    assert store.find_path(a, c) == []


def _adjacent(edges: list[tuple[int, int]], both: bool) -> dict[int, set[int]]:
    near: dict[int, set[int]] = {}
    for src, dst in edges:
        near.setdefault(src, set()).add(dst)
        if both:
            near.setdefault(dst, set()).add(src)
    return near


def _distances(near: dict[int, set[int]], start: int) -> dict[int, int]:
    found, frontier = {start: 0}, [start]
    while frontier:
        at = frontier.pop(0)
        for other in near.get(at, ()):
            if other not in found:
                found[other] = found[at] + 1
                frontier.append(other)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_walks_agree_with_plain_python(store: MemoryStore, linked: Linker, seed: int) -> None:
    """A wrong join shows only in graphs with hubs, circles and parallel links."""
    chance = random.Random(seed)
    names = "abcdefghijklmnopqrstuvwxyz"
    pairs = [
        (chance.randrange(26), min(chance.randrange(26), chance.randrange(26))) for _ in range(45)
    ]
    pairs = [(src, dst) for src, dst in pairs if src != dst]
    ids = linked(names, *[(names[a], names[b], chance.choice(LINK_RELS)) for a, b in pairs])
    near = _adjacent(pairs, both=True)
    for start in range(0, 26, 5):
        distance = _distances(near, start)
        for depth in (1, 2, 3):
            wanted = {ids[at] for at, hops in distance.items() if 0 < hops <= depth}
            assert {m.id for m, _ in store.neighbors(ids[start], depth=depth)} == wanted
        for goal in range(26):
            path = store.find_path(ids[start], ids[goal])
            hops = distance.get(goal, 99)
            assert len(path) == (hops + 1 if hops <= 6 else 0)
            steps = [ids.index(step.id) for step in path]
            assert all(b in near[a] for a, b in itertools.pairwise(steps))


def test_walks_stop_at_the_limit_of_nodes(
    store: MemoryStore, linked: Linker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hub with a million links must not be read whole, nor be cut off in silence."""
    a, *others = linked("abcdef", *[("a", name, "related") for name in "bcdef"])
    limited = walks.reach.__defaults__, walks.shortest.__defaults__
    monkeypatch.setattr(walks.reach, "__defaults__", ("both", (), 4, math.inf))
    monkeypatch.setattr(walks.shortest, "__defaults__", (4,))
    with pytest.warns(UserWarning, match="cut off"):
        assert len(store.neighbors(a)) == 3
    with pytest.warns(UserWarning, match="cut off"):
        graph = store.subgraph([a])
    assert graph.truncated
    assert len(graph.nodes) == 4
    assert {edge.dst for edge in graph.edges} <= set(graph.nodes)
    with pytest.warns(UserWarning, match="cut off"):
        assert store.find_path(others[0], store.remember("island").id) == []
    assert limited[1] == (limits.GRAPH_NODES,)
