"""`state-at`, `get-at` and `diff`: what the store knew at a moment, and what changed since."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from houkai import params, render
from houkai.cli import options, session
from houkai.errors import NotFound
from houkai.model import Difference

app = typer.Typer()

When = Annotated[str, typer.Argument(metavar="WHEN", help=options.sentence(params.AsOf))]
From = Annotated[str, typer.Argument(metavar="FROM", help=options.sentence(params.AsOf))]
To = Annotated[str, typer.Argument(metavar="TO", help="The other moment, written likewise.")]

VIEW: Final = render.View(
    fields={
        "change": lambda r: r["change"],
        "kind": lambda r: r["kind"],
        "id": lambda r: r["id"],
        "fields": lambda r: ",".join(_changed(r)),
        "text": lambda r: _text(r),
    },
    columns={
        "change": lambda r: r["change"],
        "kind": lambda r: r["kind"],
        "id": lambda r: _short(r["id"]),
        "what": lambda r: "\n".join(_what(r)),
    },
)


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
    records = [_record(one) for one in found]
    session.show_records(records, VIEW, format, "Nothing changed between the two.")


def _record(one: Difference) -> dict[str, Any]:
    return {
        "change": one.change,
        "kind": one.kind,
        "id": one.id,
        "before": one.before,
        "after": one.after,
    }


def _short(key: str) -> str:
    """Return the key of a row for people; that of a link holds two ids and a relation."""
    first, *rest = key.split("|")
    return "|".join([render.short(first), *rest[:-1], *map(render.short, rest[-1:])])


def _text(record: render.Record) -> str:
    """Return the text of the memory that a row is, or keeps in the trash; "" for a link."""
    image = record["after"] or record["before"]
    return str(image.get("memory", image).get("text", ""))


def _changed(record: render.Record) -> list[str]:
    """Name the fields that differ in a row that was there at both moments."""
    before, after = record["before"], record["after"]
    if before is None or after is None:
        return []
    names = dict.fromkeys([*before, *after])
    return [name for name in names if before.get(name) != after.get(name)]


def _what(record: render.Record) -> Iterator[str]:
    before, after = record["before"], record["after"]
    if before is None or after is None:
        yield render.excerpt(_text(record))
    for name in _changed(record):
        old, new = (render.field_text(name, image.get(name)) for image in (before, after))
        yield f"{name}: {old} -> {new}"
