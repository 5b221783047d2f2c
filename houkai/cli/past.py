"""`state-at`, `get-at` and `diff`: what the store knew at a moment, and what changed since."""

from __future__ import annotations

from typing import Annotated

import typer

from houkai import params, render
from houkai.cli import differences, options, session
from houkai.errors import NotFound

app = typer.Typer()

When = Annotated[str, typer.Argument(metavar="WHEN", help=options.sentence(params.AsOf))]
From = Annotated[str, typer.Argument(metavar="FROM", help=options.sentence(params.AsOf))]
To = Annotated[str, typer.Argument(metavar="TO", help="The other moment, written likewise.")]


@app.command("state-at")
def state_at(ctx: typer.Context, when: When, format: options.Output = "auto") -> None:
    """List the memories as the store knew them at a moment.

    Oldest first. Superseded and expired ones are among them, forgotten ones are not.
    """
    with session.opened(ctx) as store:
        memories = store.state_at(when)
    session.show_memories(memories, format)


@app.command("get-at")
def get_at(ctx: typer.Context, id: options.Id, when: When, format: options.Output = "auto") -> None:
    """Show one memory as the store knew it at a moment."""
    with session.opened(ctx) as store:
        whole = store.find_id(id, forgotten=True)
        memory = store.get_at(whole, when)
    if memory is None:
        raise NotFound(
            f"{render.short(whole)} was not there at that moment.",
            hint=f"See `houkai history {render.short(whole)}`.",
        )
    session.show_memory(memory, format, render.memory_text(memory))


@app.command("diff")
def diff(ctx: typer.Context, start: From, end: To = "now", format: options.Output = "auto") -> None:
    """Show what changed between two moments.

    What changed and changed back is left out.
    """
    with session.opened(ctx) as store:
        found = store.diff(start, end)
    differences.show(found, format, "Nothing changed between the two.")
