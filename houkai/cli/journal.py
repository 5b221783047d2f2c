"""`journal`: the operations of the whole store, and what each changed."""

from __future__ import annotations

import sys
from typing import Annotated, Any, TypedDict

import typer

from houkai import clock, params
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


Apply = Annotated[bool, typer.Option("--apply", help="Do it; else only tell what would happen.")]


class PruneOptions(TypedDict, total=False):
    """What to drop, and what to keep."""

    before: params.PruneBefore
    keep_last: params.KeepLast


class JournalOptions(options.WhoAndWhen, total=False):
    """Which operations to show."""

    op: params.OperationName
    until: params.DoneUntil


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


@app.command("prune")
@options.takes(PruneOptions)
def prune(
    ctx: typer.Context,
    apply: Apply = False,
    as_json: options.AsJson = False,
    **more: Any,
) -> None:
    """Forget old states of the whole file; memories stay as they are.

    Give --before or --keep-last. What is dropped can no longer be undone or looked back to.
    Without --apply nothing is changed.
    """
    with session.opened(ctx) as store:
        told = store.prune_journal(dry_run=not apply, **options.given(more))
    if as_json:
        session.show_json(told)
        return
    verb = "Dropped" if apply else "Would drop"
    session.say(
        f"{verb} {told['images']} old states of rows, {told['operations']} operations and "
        f"{told['vectors']} vectors, up to operation {told['before']}."
    )
    if not apply:
        session.say("Nothing was changed. To do it: add --apply")
    elif told["exact_from"] is not None:
        session.say(f"History is exact from {clock.iso(told['exact_from'])} on.")


@app.command("verify")
def verify(ctx: typer.Context) -> None:
    """Check that nobody changed the journal behind houkai's back.

    Ends with code 1 when an operation does not match its hash.
    """
    with session.opened(ctx) as store:
        broken = store.verify_journal()
    if broken is not None:
        print(f"Operation {broken} does not match what is stored.", file=sys.stderr)
        raise typer.Exit(1)
    session.say("Every operation matches its hash.")
