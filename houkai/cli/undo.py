"""`undo` and `redo`: put things back as they were, as often as it takes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from houkai import params, render
from houkai.cli import differences, options, session
from houkai.errors import Diverged
from houkai.model import JournalEntry

if TYPE_CHECKING:
    from houkai.store import MemoryStore

app = typer.Typer()

Last = Annotated[bool, typer.Option("--last", help="Undo the last operation, as no argument does.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help=options.sentence(params.DryRun))]
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
    dry_run: DryRun = False,
    format: options.Output = "auto",
    **more: Any,
) -> None:
    """Undo the last operation, a named one, or all since a moment.

    Repeated, it steps further back; `redo` steps forward. --memory, --actor and --session choose
    the last operation of theirs; with --since everything of theirs since then is undone, or
    nothing where one operation cannot be.
    """
    only = options.given(more)
    if operation is not None and (last or only):
        raise typer.BadParameter("Name an operation, or choose it by options, not both.")
    with session.opened(ctx) as store:
        if "memory_id" in only:
            only["memory_id"] = store.find_id(only["memory_id"], forgotten=True)
        if dry_run:
            found = _rehearsed(store, operation, only, format)
        else:
            found = _undone(store, operation, only)
            _tell(store, found, "Undid", format)
    if not found:
        print("Nothing is left to undo.", file=sys.stderr)
        raise typer.Exit(1)


def _undone(store: MemoryStore, operation: str | None, only: dict[str, Any]) -> list[JournalEntry]:
    if operation is not None:
        return [store.undo(operation)]
    if "since" in only:
        return store.undo_since(**only)
    entry = store.undo_last(**only)
    return [] if entry is None else [entry]


def _rehearsed(
    store: MemoryStore, operation: str | None, only: dict[str, Any], format: render.Format
) -> list[JournalEntry]:
    """Print what an undo would change. Raises Diverged where it would be refused."""
    preview = store.preview_undo(operation, **only)
    if format == "auto":
        for entry in preview.operations:
            what = render.about(render.entry_record(entry))
            session.say(f"Would undo {entry.operation}: {what}")
    if preview.changes:
        differences.show(preview.changes, format, "")
    if preview.refusal is not None:
        raise Diverged(preview.refusal, preview.rows, hint=preview.hint)
    return preview.operations


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
        what = render.about(render.entry_record(rows[0]))
    else:
        what = f"{rows[0].op}, {entry.changes} rows"
    by = "" if rows[0].actor == session.ACTOR else f" (done by {render.one_line(rows[0].actor)})"
    return f"{rows[0].operation}: {what}{by}"
