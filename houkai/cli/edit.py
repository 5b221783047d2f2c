"""`edit`, `tag` and `bump`: change a memory and keep its id, links and history."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from houkai import render
from houkai.cli import document, options, session
from houkai.cli.remember import spoken
from houkai.errors import InputError
from houkai.model import Memory

app = typer.Typer()

NewText = Annotated[
    str | None,
    typer.Option(
        "--text", metavar="TEXT", show_default=False, help='The new text; "-" reads standard input.'
    ),
]
Add = Annotated[
    list[str] | None,
    typer.Option("--add", "-a", metavar="TAG", help="A tag to add. May be repeated."),
]
Remove = Annotated[
    list[str] | None,
    typer.Option("--remove", "-r", metavar="TAG", help="A tag to take off. May be repeated."),
]
Delta = Annotated[
    str, typer.Argument(metavar="+X|-X|=X", help="How much more, how much less, or how much.")
]


@app.command("edit")
@options.takes(options.EditOptions)
def edit(
    ctx: typer.Context,
    id: options.Id,
    text: NewText = None,
    format: options.Output = "auto",
    **more: Any,
) -> None:
    """Change fields of a memory, with flags or in your editor.

    Without flags the memory opens in $VISUAL or $EDITOR. Tags and entities given replace those it
    had; `houkai tag` adds. A name given as "" clears the field, a time given as 0 too.
    """
    changes = options.given(more)
    for name in ("tags", "entities"):
        if name in changes:
            changes[name] = [one for one in changes[name] if one]
    if text is not None:
        changes["text"] = spoken(text)
    old = _get(ctx, id)
    _apply(ctx, old, changes or document.revise(old), format)


@app.command("tag")
def tag(
    ctx: typer.Context,
    id: options.Id,
    add: Add = None,
    remove: Remove = None,
    format: options.Output = "auto",
) -> None:
    """Add tags to a memory, or take them off."""
    if not add and not remove:
        raise typer.BadParameter("Give --add or --remove.")
    old = _get(ctx, id)
    kept = [name for name in old.tags if name not in (remove or [])]
    _apply(ctx, old, {"tags": [*kept, *(add or [])]}, format)


@app.command("bump", context_settings={"ignore_unknown_options": True})
def bump(ctx: typer.Context, id: options.Id, delta: Delta, format: options.Output = "auto") -> None:
    """Raise or lower the importance of a memory.

    houkai bump 3f2a +0.2; -0.1 lowers it, =0.9 sets it.
    """
    match = re.fullmatch(r"([+\-=])(\d*\.?\d+)", delta)
    if match is None:
        raise InputError(f"The change must be +X, -X or =X with a number X, got {delta!r}.")
    old = _get(ctx, id)
    value = float(match[2])
    if match[1] != "=":
        moved = old.importance + (value if match[1] == "+" else -value)
        value = round(min(1.0, max(0.0, moved)), 6)
    _apply(ctx, old, {"importance": value}, format)


def _get(ctx: typer.Context, id: str) -> Memory:
    with session.opened(ctx) as store:
        memory = store.get(store.find_id(id))
    assert memory is not None, "an id that was found has its memory"
    return memory


def _apply(ctx: typer.Context, old: Memory, changes: dict[str, Any], format: render.Format) -> None:
    """Write the changes and say which fields they were."""
    with session.opened(ctx) as store:
        new = store.edit(old.id, **changes) if changes else old
    before, after = old.to_dict(), new.to_dict()
    names = [
        name for name in after if before[name] != after[name] and name not in document.FOLLOWING
    ]
    what = "; ".join(f"{name}: {_value(after[name])}" for name in names)
    session.show_memory(new, format, f"{render.short(new.id)} {what or 'is as it was'}")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "(none)"
    return "(none)" if value is None else render.excerpt(str(value), 80)
