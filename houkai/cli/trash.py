"""`trash`: memories that are put aside, and may come back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

import typer

from houkai import clock, params, render
from houkai.cli import options, session
from houkai.errors import InputError, NotFound

if TYPE_CHECKING:
    from houkai.model import TrashEntry
    from houkai.store import MemoryStore

app = typer.Typer(
    name="trash",
    help="Put memories aside, bring them back, or drop them for good.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

Maybe = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        show_default=False,
        help=options.sentence(params.MemoryId) + " Everything in the trash when left out.",
    ),
]

VIEW: Final = render.View(
    fields={
        "id": lambda r: r["memory_id"],
        "deleted_at": lambda r: str(int(r["deleted_at"])),
        "actor": lambda r: r["actor"],
        "type": lambda r: r["memory"]["type"],
        "tags": lambda r: ",".join(r["memory"]["tags"]),
        "text": lambda r: r["memory"]["text"],
    },
    columns={
        "id": lambda r: render.short(r["memory_id"]),
        "age": lambda r: clock.ago(r["deleted_at"]),
        "actor": lambda r: r["actor"],
        "type": lambda r: r["memory"]["type"],
        "tags": lambda r: ", ".join(r["memory"]["tags"]),
        "text": lambda r: render.excerpt(r["memory"]["text"]),
    },
)


class PurgeOptions(TypedDict, total=False):
    """What to drop."""

    older_than_days: params.Days


@app.command("put")
def put(ctx: typer.Context, ids: options.Ids) -> None:
    """Put memories into the trash, from where they can be restored.

    Several are one operation: one undo brings all of them back.
    """
    with session.opened(ctx) as store:
        found = list(dict.fromkeys(map(store.find_id, ids)))
        gone = store.trash_many(found)
        for id in gone:
            session.say(f"Put {render.short(id)} into the trash.")
        missed = [id for id in found if id not in gone]
        if missed:
            raise NotFound(f"{missed[0]} was forgotten by somebody else meanwhile.")


@app.command("list")
def list_(ctx: typer.Context, format: options.Output = "auto") -> None:
    """List what is in the trash, oldest first."""
    with session.opened(ctx) as store:
        found = store.trash_list()
    session.show_records([asdict(one) for one in found], VIEW, format, "The trash is empty.")


@app.command("restore")
def restore(ctx: typer.Context, ids: options.Ids) -> None:
    """Bring memories back from the trash with their links.

    Several are one operation: one undo puts all of them back into the trash.
    """
    with session.opened(ctx) as store:
        entries = {(entry := _find(store, id)).memory_id: entry for id in ids}
        back = store.trash_restore_many(list(entries))
        for id in back:
            session.say(f"Restored {_line(entries[id])}")
        missed = [id for id in entries if id not in back]
        if missed:
            raise InputError(f"{missed[0]} was restored already, or its id is in use.")


@app.command("purge")
@options.takes(PurgeOptions)
def purge(ctx: typer.Context, id: Maybe = None, yes: options.Yes = False, **more: Any) -> None:
    """Drop memories in the trash for good: one, the older ones, or all.

    This cannot be undone: what the memories said goes from the journal too.
    """
    given = options.given(more)
    if id is not None and given:
        raise typer.BadParameter("Name a memory, or choose by --older-than, not both.")
    with session.opened(ctx) as store:
        entry = _find(store, id) if id is not None else None
        whole = entry.memory_id if entry else None
        about = [_line(entry)] if entry else []
        what = _what(whole, given.get("older_than_days"))
        session.confirm(f"Drop {what} for good?", yes=yes, about=about)
        number = store.trash_purge(whole, **given)
    session.say(f"Dropped {number} {'memory' if number == 1 else 'memories'} for good.")


def _what(id: str | None, days: float | None) -> str:
    if id is not None:
        return "this memory"
    if days is None:
        return "everything in the trash"
    return f"what has been in the trash for {days:g} {'day' if days == 1 else 'days'}"


def _find(store: MemoryStore, start: str) -> TrashEntry:
    """Return what is in the trash under an id that begins so. Raises NotFound, InputError."""
    kept = store.trash_list()
    found = [one for one in kept if one.memory_id == start.strip()]
    found = found or [one for one in kept if one.memory_id.startswith(start.strip())]
    if not found:
        raise NotFound(f"Nothing in the trash has the id {start!r}.")
    if len(found) > 1:
        raise InputError(
            f"Several memories in the trash have ids that begin with {start!r}.",
            hint="Give more characters.",
        )
    return found[0]


def _line(entry: TrashEntry) -> str:
    return f"{render.short(entry.memory_id)} {render.excerpt(entry.memory['text'], 80)}"
