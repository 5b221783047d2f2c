"""Links and what is drawn from them."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Runner, only


@pytest.fixture
def chain(cli: Runner, filled: list[str]) -> list[str]:
    """Link the first memory to the second, and that to the third."""
    assert cli("link", filled[0][:8], filled[1], "-r", "causes").code == 0
    assert cli("link", filled[1], filled[2], "--rel", "derived_from").code == 0
    return filled


def test_link_says_whether_it_is_new(cli: Runner, filled: list[str]) -> None:
    """A link that is made twice must neither double nor look like a fresh one."""
    ends = (filled[0][:8], filled[1][:8])
    assert cli("link", *ends).out == f"Linked {ends[0]} -related-> {ends[1]}\n"
    assert cli("link", *ends).out == f"Already linked: {ends[0]} -related-> {ends[1]}\n"
    assert cli("link", ends[0], ends[0]).code == 1
    assert cli("link", ends[0], "nobody").code == 3
    assert cli("link", *ends, "-r", "loves").code == 2


def test_unlink_takes_one_relation_or_all(cli: Runner, chain: list[str]) -> None:
    """Removing one relation must leave the others between the same two."""
    cli("link", *chain[:2], "-r", "fixes")
    assert cli("unlink", *chain[:2], "-r", "fixes").out == "Removed 1 link.\n"
    assert cli("unlink", *chain[:2]).out == "Removed 1 link.\n"
    assert cli("unlink", *chain[:2]).out == "Removed 0 links.\n"


def test_neighbors_follow_what_is_asked(cli: Runner, chain: list[str]) -> None:
    """Direction, depth and relation must reach the walk, and the relation the reader."""

    def ids(*flags: str) -> list[tuple[str, str]]:
        lines = cli("neighbors", chain[1], "-f", "jsonl", *flags).lines
        return [(record["id"], record["rel"]) for record in map(json.loads, lines)]

    assert ids("-d", "out") == [(chain[2], "derived_from")]
    assert ids("-d", "in") == [(chain[0], "causes")]
    assert ids("-r", "causes") == [(chain[0], "causes")]
    assert ids("-n", "0") == []
    assert len(cli("neighbors", chain[0], "-d", "out", "-D", "2", "-f", "jsonl").lines) == 2
    assert cli("neighbors", chain[3], "-f", "json").out == "[]\n"


def test_graph_in_every_format(cli: Runner, chain: list[str]) -> None:
    """Each format is read by another program, and must name both ends and the relation."""
    tree = cli("graph", chain[0][:8], "-D", "2")
    assert tree.lines[0].startswith(chain[0][:8])
    assert tree.lines[2].startswith(f"    `-- derived_from -> {chain[2][:8]}")
    assert cli("graph", chain[0], "-f", "dot").out.startswith("digraph houkai {")
    assert "n0 -->|causes| n1" in cli("graph", chain[0], "-f", "mermaid").out
    drawn = json.loads(cli("graph", chain[0], chain[3], "-f", "json").out)
    assert {node["id"] for node in drawn["nodes"]} == {chain[0], chain[1], chain[3]}
    assert cli("graph", "nobody").code == 3


def test_path_goes_either_way_and_says_when_there_is_none(cli: Runner, chain: list[str]) -> None:
    """A script must be able to tell a chain from none by the exit code."""
    steps = [json.loads(line) for line in cli("path", chain[2], chain[0], "-f", "jsonl").lines]
    assert [(step["id"], step["rel"]) for step in steps] == [
        (chain[2], ""),
        (chain[1], "derived_from"),
        (chain[0], "causes"),
    ]
    assert cli("path", chain[2], chain[0], "--max-depth", "1").code == 1
    assert cli("path", chain[0], chain[3]).code == 1
    assert only(cli("path", chain[0], chain[0], "-f", "jsonl"))["id"] == chain[0]
