"""`link`, `unlink`, `neighbors`, `graph` and `path`: how memories hang together."""

from __future__ import annotations

import sys
from typing import Annotated, Any, TypedDict

import typer

from houkai import params, render
from houkai.cli import options, session
from houkai.vocabulary import GraphFormat

app = typer.Typer()

Source = Annotated[str, typer.Argument(metavar="FROM", help=options.sentence(params.MemoryId))]
Target = Annotated[str, typer.Argument(metavar="TO", help=options.sentence(params.MemoryId))]
Drawn = Annotated[
    GraphFormat,
    typer.Option(
        "--format",
        "-f",
        metavar="ascii|dot|mermaid|json",
        help="ascii: a tree; dot: for Graphviz; json: whole memories.",
        show_default=False,
    ),
]


class LinkOptions(TypedDict, total=False):
    """Of what kind a link is."""

    rel: params.Rel


class UnlinkOptions(TypedDict, total=False):
    """Which links to remove."""

    rel: params.RelFilter


class NeighborOptions(TypedDict, total=False):
    """Which links to follow, and how far."""

    rel: params.RelFilter
    direction: params.Heading
    depth: params.Depth
    limit: params.Limit


class GraphOptions(TypedDict, total=False):
    """How far to follow links."""

    depth: params.Depth


class PathOptions(TypedDict, total=False):
    """How long a chain may be."""

    max_depth: params.Depth


@app.command("link")
@options.takes(LinkOptions)
def link(ctx: typer.Context, source: Source, target: Target, **more: Any) -> None:
    """Link one memory to another."""
    given = options.given(more)
    with session.opened(ctx) as store:
        ends = (store.find_id(source), store.find_id(target))
        is_new = store.link(*ends, **given)
    first, second = map(render.short, ends)
    verb = "Linked" if is_new else "Already linked:"
    session.say(f"{verb} {first} -{given.get('rel', 'related')}-> {second}")


@app.command("unlink")
@options.takes(UnlinkOptions)
def unlink(ctx: typer.Context, source: Source, target: Target, **more: Any) -> None:
    """Remove the links from one memory to another."""
    with session.opened(ctx) as store:
        number = store.unlink(store.find_id(source), store.find_id(target), **options.given(more))
    session.say(f"Removed {number} {'link' if number == 1 else 'links'}.")


@app.command("neighbors")
@options.takes(NeighborOptions)
def neighbors(
    ctx: typer.Context, id: options.Id, format: options.Output = "auto", **more: Any
) -> None:
    """Show the memories linked to one, nearest first.

    Hidden ones are shown too. One that several relations reach comes once for each.
    """
    with session.opened(ctx) as store:
        found = store.neighbors(store.find_id(id), **options.given(more))
    rels = [{"rel": rel} for _, rel in found]
    session.show_memories([one.memory for one in found], format, rels, keys=("rel",))


@app.command("graph")
@options.takes(GraphOptions)
def graph(ctx: typer.Context, ids: options.Ids, format: Drawn = "ascii", **more: Any) -> None:
    """Draw the memories that some lead to along their links."""
    from houkai import graph as drawing

    with session.opened(ctx) as store:
        roots = [store.find_id(id) for id in ids]
        found = store.subgraph(roots, **options.given(more))
    if format == "json":
        session.show_json(found.to_dict())
    else:
        session.say(drawing.draw(found, format, roots))


@app.command("path")
@options.takes(PathOptions)
def path(
    ctx: typer.Context,
    source: Source,
    target: Target,
    format: options.Output = "auto",
    **more: Any,
) -> None:
    """Show a shortest chain of links between two memories.

    Links are followed whichever way they point. Ends with code 1 when there is no chain.
    """
    with session.opened(ctx) as store:
        ends = (store.find_id(source), store.find_id(target))
        found = [(store.get(id), rel) for id, rel in store.find_path(*ends, **options.given(more))]
    steps = [(memory, rel) for memory, rel in found if memory is not None]
    if not steps:
        print("No chain of links joins the two.", file=sys.stderr)
        raise typer.Exit(1)
    rels = [{"rel": rel} for _, rel in steps]
    session.show_memories([memory for memory, _ in steps], format, rels, keys=("rel",))
