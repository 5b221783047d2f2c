"""`journal`: the operations of the whole store, and what each changed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from houkai import params
from houkai.cli import options, session

app = typer.Typer(
    name="journal",
    help="Look at the record of every change.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

Number = Annotated[
    int, typer.Option("--number", "-n", metavar="N", help="How many operations to show.")
]


class JournalOptions(options.WhoAndWhen, total=False):
    """Which operations to show."""

    op: params.OperationName
    until: params.Until


@app.command("tail")
@options.takes(JournalOptions)
def tail(
    ctx: typer.Context, number: Number = 20, format: options.Output = "auto", **more: Any
) -> None:
    """Show the last operations, the newest last."""
    only = options.given(more)
    with session.opened(ctx) as store:
        if "memory_id" in only:
            only["memory_id"] = store.find_id(only["memory_id"], forgotten=True)
        entries = store.journal(number, **only)
    session.show_entries(entries[::-1], format)


@app.command("show")
def show(ctx: typer.Context, operation: options.Operation, format: options.Output = "auto") -> None:
    """Show what one operation changed, field by field."""
    with session.opened(ctx) as store:
        entries = store.operation(operation)
    session.show_changes(entries, format)
