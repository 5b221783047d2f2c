"""Draw a graph of memories as text: an ASCII tree, DOT, Mermaid, or JSON.

Pure functions. What a memory says is never trusted: line breaks, terminal controls and the signs
that a format gives a meaning to come out as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from houkai.model import Edge, Graph
from houkai.vocabulary import GraphFormat

LABEL_CHARS: Final = 60
SHORT_ID: Final = 8


def draw(graph: Graph, format: GraphFormat = "ascii", roots: Iterable[str] = ()) -> str:
    """Return a graph in one of the formats; a tree begins at `roots`, where there are any."""
    if format == "ascii":
        return tree(graph, roots)
    return _FORMATS[format](graph)


def label(text: str, limit: int = LABEL_CHARS) -> str:
    """Return a text as one line without control characters, cut to `limit` with "..."."""
    line = " ".join(text.split())
    line = "".join(sign if sign.isprintable() else "?" for sign in line)
    return line if len(line) <= limit else line[: limit - 3].rstrip() + "..."


def tree(graph: Graph, roots: Iterable[str] = ()) -> str:
    """Return the graph as a tree of outgoing links; what was shown before is only named again."""
    below: dict[str, list[Edge]] = {id: [] for id in graph.nodes}
    for edge in graph.edges:
        below[edge.src].append(edge)
    shown: set[str] = set()
    lines: list[str] = []
    for top in _tops(graph, roots):
        if top not in shown:
            lines += _branch(graph, below, top, shown)
    if graph.truncated:
        lines.append("(cut off at the limit of memories)")
    return "\n".join(lines)


def _tops(graph: Graph, roots: Iterable[str]) -> Iterator[str]:
    """Yield where trees may begin: the roots, what nothing leads to, then whatever is left."""
    yield from (id for id in roots if id in graph.nodes)
    led_to = {edge.dst for edge in graph.edges}
    yield from (id for id in graph.nodes if id not in led_to)
    yield from graph.nodes


def _branch(graph: Graph, below: dict[str, list[Edge]], top: str, shown: set[str]) -> Iterator[str]:
    waiting: list[tuple[str, str, str]] = [(top, "", "")]  # id, what stands before it, its indent
    while waiting:
        id, lead, indent = waiting.pop()
        again = id in shown
        shown.add(id)
        name = f"{id[:SHORT_ID]} {label(graph.nodes[id].text)}"
        yield f"{lead}{name} (above)" if again else f"{lead}{name}"
        edges = [] if again else below[id]
        for number, edge in reversed(list(enumerate(edges, 1))):
            last = number == len(edges)
            branch = f"{indent}{'`' if last else '|'}-- {edge.rel} -> "
            waiting.append((edge.dst, branch, indent + ("    " if last else "|   ")))


def dot(graph: Graph) -> str:
    """Return the graph in the language of Graphviz."""
    lines = ["digraph houkai {", "  rankdir=LR;", "  node [shape=box];"]
    for id, memory in graph.nodes.items():
        lines.append(f'  "{_dot(id)}" [label="{id[:SHORT_ID]}\\n{_dot(label(memory.text))}"];')
    lines += [
        f'  "{_dot(edge.src)}" -> "{_dot(edge.dst)}" [label="{_dot(edge.rel)}"];'
        for edge in graph.edges
    ]
    return "\n".join([*lines, "}"])


def _dot(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def mermaid(graph: Graph) -> str:
    """Return the graph as a Mermaid flow chart."""
    names = {id: f"n{number}" for number, id in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for id, memory in graph.nodes.items():
        lines.append(f'  {names[id]}["{id[:SHORT_ID]} {_mermaid(label(memory.text))}"]')
    lines += [f"  {names[edge.src]} -->|{edge.rel}| {names[edge.dst]}" for edge in graph.edges]
    return "\n".join(lines)


def _mermaid(text: str) -> str:
    return "".join(f"#{ord(sign)};" if sign in '"#&<>`\\' else sign for sign in text)


def as_json(graph: Graph) -> str:
    """Return the graph as JSON: whole memories, and links by whole ids."""
    return json.dumps(graph.to_dict(), ensure_ascii=False, indent=2)


_FORMATS: Final[dict[GraphFormat, Callable[[Graph], str]]] = {
    "ascii": tree,
    "dot": dot,
    "mermaid": mermaid,
    "json": as_json,
}
