"""`history`: every change that concerns one memory."""

from __future__ import annotations

import typer

from houkai.cli import options, session

app = typer.Typer()


@app.command("history")
def history(ctx: typer.Context, id: options.Id, format: options.Output = "auto") -> None:
    """Show every change of one memory, forgotten or not."""
    with session.opened(ctx) as store:
        entries = store.history(store.find_id(id, forgotten=True))
    session.show_changes(entries, format)
