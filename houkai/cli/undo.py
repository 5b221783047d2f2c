"""`undo` and `redo`: put things back as they were, as often as it takes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from houkai import render
from houkai.cli import options, session
from houkai.model import JournalEntry

if TYPE_CHECKING:
    from houkai.store import MemoryStore

app = typer.Typer()

Last = Annotated[bool, typer.Option("--last", help="Undo the last operation, as no argument does.")]
Maybe = Annotated[
    str | None,
    typer.Argument(
        metavar="ID|NUMBER",
        show_default=False,
        help="An operation as `houkai journal tail` names it; the last one when left out.",
    ),
]


@app.command("undo")
@options.takes(options.WhoAndWhen)
def undo(
    ctx: typer.Context,
    operation: Maybe = None,
    last: Last = False,
    format: options.Output = "auto",
    **more: Any,
) -> None:
    """Undo the last operation, a named one, or all since a moment.

    Repeated, it steps further back; `redo` steps forward. --memory and --actor choose the last
    operation of that memory or actor; with --since everything of theirs since then is undone.
    """
    only = options.given(more)
    if operation is not None and (last or only):
        raise typer.BadParameter("Name an operation, or choose it by options, not both.")
    with session.opened(ctx) as store:
        if "memory_id" in only:
            only["memory_id"] = store.find_id(only["memory_id"], forgotten=True)
        entries = _undone(store, operation, only)
        _tell(store, entries, "Undid", format)
    if not entries:
        print("Nothing is left to undo.", file=sys.stderr)
        raise typer.Exit(1)


def _undone(store: MemoryStore, operation: str | None, only: dict[str, Any]) -> list[JournalEntry]:
    if operation is not None:
        return [store.undo(operation)]
    if "since" in only:
        return store.undo_since(**only)
    entry = store.undo_last(**only)
    return [] if entry is None else [entry]


@app.command("redo")
def redo(ctx: typer.Context, operation: Maybe = None, format: options.Output = "auto") -> None:
    """Bring back what an undo took away."""
    with session.opened(ctx) as store:
        entry = store.redo(operation)
        _tell(store, [] if entry is None else [entry], "Redid", format)
    if entry is None:
        print("Nothing is left to redo.", file=sys.stderr)
        raise typer.Exit(1)


def _tell(
    store: MemoryStore, entries: list[JournalEntry], verb: str, format: render.Format
) -> None:
    """Print what was put back: a line each for people, else the entries of the undo."""
    if format != "auto":
        session.show_entries(entries, format)
        return
    for entry in entries:
        session.say(f"{verb} {_about(store, entry)}")


def _about(store: MemoryStore, entry: JournalEntry) -> str:
    """Say which operation an undo or redo is about in the end, past the undos between."""
    rows = store.operation(entry.operation)
    while rows[0].undoes is not None:
        rows = store.operation(rows[0].undoes)
    if len(rows) == entry.changes == 1:
        return f"{rows[0].operation}: {render.about(render.entry_record(rows[0]))}"
    return f"{rows[0].operation}: {rows[0].op}, {entry.changes} rows"
