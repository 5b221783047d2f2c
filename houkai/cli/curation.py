"""`merge` and `versions`: fold memories together, and read what they said before."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Final, TypedDict

import typer

from houkai import clock, params, render
from houkai.cli import options, session

app = typer.Typer()

Target = Annotated[str, typer.Argument(metavar="TARGET", help=options.sentence(params.MemoryId))]
Other = Annotated[str, typer.Argument(metavar="OTHER", help=options.sentence(params.MemoryId))]

VIEW: Final = render.View(
    fields={
        "operation": lambda r: str(r["operation"]),
        "until": lambda r: str(int(r["ts"])),
        "type": lambda r: r["type"],
        "importance": lambda r: f"{r['importance']:g}",
        "tags": lambda r: ",".join(r["tags"]),
        "text": lambda r: r["text"],
    },
    columns={
        "operation": lambda r: str(r["operation"]),
        "until": lambda r: clock.ago(r["ts"]),
        "type": lambda r: r["type"],
        "imp": lambda r: f"{r['importance']:.2f}",
        "tags": lambda r: ", ".join(r["tags"]),
        "text": lambda r: render.excerpt(r["text"]),
    },
)


class MergeOptions(TypedDict, total=False):
    """How two texts are joined."""

    separator: params.Separator


@app.command("merge")
@options.takes(MergeOptions)
def merge(
    ctx: typer.Context,
    target: Target,
    other: Other,
    yes: options.Yes = False,
    format: options.Output = "auto",
    **more: Any,
) -> None:
    """Fold one memory into another, which keeps its id.

    Texts, tags and links of OTHER go to TARGET, and OTHER is deleted; undo takes both apart.
    """
    from houkai.ops.curation import check_pair  # opening a store loads it anyway

    with session.opened(ctx) as store:
        ids = (store.find_id(target), store.find_id(other))
        check_pair(*ids)
        found = [memory for memory in map(store.get, ids) if memory is not None]
        lines = [f"{render.short(m.id)} {render.excerpt(m.text, 80)}" for m in found]
        session.confirm("Fold the second into the first?", yes=yes, about=lines)
        memory = store.merge(*ids, **options.given(more))
    session.show_memory(memory, format, memory.id)


@app.command("versions")
def versions(ctx: typer.Context, id: options.Id, format: options.Output = "auto") -> None:
    """Show what a memory said before each change of it."""
    with session.opened(ctx) as store:
        found = store.versions(store.find_id(id, forgotten=True))
    session.show_records([asdict(one) for one in found], VIEW, format, "It never changed.")
