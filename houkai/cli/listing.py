"""`list` and `show`: read memories without ranking them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from houkai import options as groups
from houkai import params, render, tables
from houkai.cli import options, session
from houkai.errors import InputError, NotFound
from houkai.rules import EXACT_INTEGER

if TYPE_CHECKING:
    from houkai.store import MemoryStore

app = typer.Typer()

Before = Annotated[
    str | None,
    typer.Option(
        "--before",
        metavar="ID|WHEN",
        show_default=False,
        help=options.sentence(params.Before),
    ),
]
All = Annotated[bool, typer.Option("--all", "-a", help="Show every one, however many.")]


@app.command("list")
@options.takes(groups.FilterOptions)
def list_(
    ctx: typer.Context,
    limit: options.Limit = 20,
    before: Before = None,
    all: All = False,
    format: options.Output = "auto",
    **more: Any,
) -> None:
    """List memories, the newest first."""
    only = options.given(more)
    with session.opened(ctx) as store:
        after = _cursor(store, before) if before else None
        wanted = None if all else _one_more(limit)
        memories = store.list_recent(wanted, before=after, **only)
    page = memories if all else memories[:limit]
    session.show_memories(page, format)
    if len(memories) > len(page) > 0 and tables.resolve(format, sys.stdout) == "rich":
        session.note(f"There is more: add --before {render.short(page[-1].id)}")


def _one_more(limit: int) -> int:
    """Return a limit that tells whether there is more; one to be refused stays as it was typed."""
    return limit + 1 if 0 < limit < EXACT_INTEGER else limit


def _cursor(store: MemoryStore, before: str) -> str:
    """Return the whole id that a cursor begins, or the cursor as a moment."""
    # Eight digits may be a date, but hardly ever begin the id of a memory that is there.
    if len(before) < render.SHORT:
        return before
    try:
        return store.find_id(before)
    except (NotFound, InputError):
        return before


@app.command("show")
def show(ctx: typer.Context, id: options.Id, format: options.Output = "auto") -> None:
    """Show everything about one memory."""
    with session.opened(ctx) as store:
        memory = store.get(store.find_id(id))
    assert memory is not None, "an id that was found has its memory"
    session.show_memory(memory, format, render.memory_text(memory))
