"""Drawings of a graph: whole, and safe whatever a memory says."""

from __future__ import annotations

import itertools
import json
import re

import pytest

from houkai.graph import draw, label
from houkai.model import Edge, Graph, Memory
from houkai.vocabulary import GRAPH_FORMATS

HOSTILE = 'say "hi" \\ <b>&amp;`x`</b> #1]\n\x1b[31mred\u202e\ud7ff'


def graph_of(texts: dict[str, str], *edges: tuple[str, str, str]) -> Graph:
    """Return a graph of memories whose ids are doubled letters."""
    return Graph(
        {f"{id * 8}-rest": Memory(f"{id * 8}-rest", text) for id, text in texts.items()},
        [Edge(f"{src * 8}-rest", f"{dst * 8}-rest", rel) for src, dst, rel in edges],  # type: ignore[arg-type]
    )


def test_tree_shows_each_branch_once() -> None:
    """A circle would be drawn for ever, a diamond twice."""
    graph = graph_of(
        {"a": "top", "b": "left", "c": "right", "d": "end"},
        ("a", "b", "causes"),
        ("a", "c", "related"),
        ("b", "d", "fixes"),
        ("c", "d", "fixes"),
        ("d", "a", "related"),
    )
    assert draw(graph, roots=["aaaaaaaa-rest"]).splitlines() == [
        "aaaaaaaa top",
        "|-- causes -> bbbbbbbb left",
        "|   `-- fixes -> dddddddd end",
        "|       `-- related -> aaaaaaaa top (above)",
        "`-- related -> cccccccc right",
        "    `-- fixes -> dddddddd end (above)",
    ]


def test_tree_leaves_nothing_out() -> None:
    """A memory that no root leads to is part of the graph all the same."""
    graph = graph_of(
        {"a": "circle", "b": "circle too", "c": "alone", "d": "start"},
        ("a", "b", "related"),
        ("b", "a", "related"),
        ("d", "a", "related"),
    )
    drawn = draw(graph)
    assert {line.split(" ")[0] for line in drawn.splitlines() if line[0].isalpha()} == {
        "cccccccc",
        "dddddddd",
    }
    assert drawn.count("circle too") == 1
    assert draw(graph, roots=["bbbbbbbb-rest", "unknown"]).startswith("bbbbbbbb")


def test_tree_of_a_long_chain_needs_no_recursion() -> None:
    """A chain longer than Python's stack would crash the drawing."""
    ids = [f"{n:08d}" for n in range(3_000)]
    edges = [Edge(a, b, "related") for a, b in itertools.pairwise(ids)]
    drawn = draw(Graph({id: Memory(id, "x") for id in ids}, edges))
    assert len(drawn.splitlines()) == 3_000


def test_a_cut_is_told() -> None:
    """Half a graph must not pass for the whole."""
    assert "cut off" in draw(Graph({"a": Memory("a", "x")}, [], truncated=True))


def test_labels_are_one_clean_line() -> None:
    """A terminal would obey a colour code, and a line break would tear the drawing."""
    assert label("a\n b\tc") == "a b c"
    assert label("a\x1b[2Jb\u202ec\x00") == "a?[2Jb?c?"
    assert label("x" * 100) == "x" * 57 + "..."


@pytest.mark.parametrize("format", GRAPH_FORMATS)
def test_hostile_text_stays_text(format: str) -> None:
    """Text of a memory must not become syntax of a drawing or a command to a terminal."""
    graph = graph_of({"a": HOSTILE, "b": "end"}, ("a", "b", "causes"))
    drawn = draw(graph, format)  # type: ignore[arg-type]
    if format != "json":
        assert all(sign.isprintable() or sign == "\n" for sign in drawn)
    if format == "json":
        assert json.loads(drawn)["nodes"][0]["text"] == HOSTILE
    elif format == "dot":
        node = next(line for line in drawn.splitlines() if "hi" in line)
        assert re.fullmatch(r'  "(?:[^"\\]|\\.)*" \[label="(?:[^"\\]|\\.)*"\];', node)
        assert '"aaaaaaaa-rest" -> "bbbbbbbb-rest" [label="causes"];' in drawn
    elif format == "mermaid":
        node = next(line for line in drawn.splitlines() if "hi" in line)
        inside = re.fullmatch(r'  n0\["(.*)"\]', node)
        assert inside is not None
        assert not set(inside[1]) & set('"<>`&\\')
        assert "n0 -->|causes| n1" in drawn


def test_json_joins_by_whole_ids() -> None:
    """Short ids in edges could not be joined with the nodes."""
    plain = json.loads(draw(graph_of({"a": "x", "b": "y"}, ("a", "b", "fixes")), "json"))
    assert plain["edges"] == [{"src": "aaaaaaaa-rest", "dst": "bbbbbbbb-rest", "rel": "fixes"}]
    assert [node["id"] for node in plain["nodes"]] == ["aaaaaaaa-rest", "bbbbbbbb-rest"]
    assert plain["truncated"] is False
