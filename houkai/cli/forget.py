"""`forget` and `nuke`: take memories out, after a question; undo brings them back."""

from __future__ import annotations

import typer

from houkai import render
from houkai.cli import options, session
from houkai.errors import NotFound

app = typer.Typer()


@app.command("forget")
def forget(ctx: typer.Context, ids: options.Ids, yes: options.Yes = False) -> None:
    """Delete memories with their links; undo brings them back.

    Several are one operation: one undo brings all of them back.
    """
    with session.opened(ctx) as store:
        found = [store.get(whole) for whole in dict.fromkeys(map(store.find_id, ids))]
        memories = [memory for memory in found if memory is not None]
        lines = [f"{render.short(m.id)} {render.excerpt(m.text, 80)}" for m in memories]
        what = "this memory" if len(lines) == 1 else f"these {len(lines)} memories"
        session.confirm(f"Forget {what}?", yes=yes, about=lines)
        gone = store.forget_many([memory.id for memory in memories])
        for memory, line in zip(memories, lines, strict=True):
            if memory.id in gone:
                session.say(f"Forgot {line}")
        missed = [memory.id for memory in memories if memory.id not in gone]
        if missed:
            raise NotFound(f"{missed[0]} was forgotten by somebody else meanwhile.")


@app.command("nuke")
def nuke(ctx: typer.Context, yes: options.Yes = False) -> None:
    """Delete every memory of the collection; undo brings them back."""
    with session.opened(ctx) as store:
        number = store.count()
        if not number:
            session.say(f"The collection {store.collection} is empty.")
            return
        what = "the only memory" if number == 1 else f"all {number} memories"
        session.confirm(f"Forget {what} of the collection {store.collection!r}?", yes=yes)
        gone = store.nuke()
        told = "1 memory" if gone == 1 else f"{gone} memories"
        session.say(f"Forgot {told}. To bring back: houkai undo")
