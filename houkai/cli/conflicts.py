"""`conflicts`, `supersede` and `restore`: find what disagrees, and let the right one stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypedDict

import typer

from houkai import params, render
from houkai.cli import options, session
from houkai.errors import InputError
from houkai.model import Conflict, Memory

if TYPE_CHECKING:
    from houkai.store import MemoryStore

app = typer.Typer()

One = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="ID", show_default=False, help="Only conflicts of the memory with this id."
    ),
]
Resolve = Annotated[
    bool, typer.Option("--resolve", help="Go through them one by one and ask what to do.")
]
Old = Annotated[str, typer.Argument(metavar="OLD", help=options.sentence(params.MemoryId))]
New = Annotated[str, typer.Argument(metavar="NEW", help=options.sentence(params.MemoryId))]

QUESTION: Final = (
    "[k]eep both, [s]upersede the older, [S] the newer, [d]elete the older, [D] the newer, "
    "[q]uit, Enter to skip: "
)
VIEW: Final = render.View(
    fields={
        "kind": lambda r: r["kind"],
        "reason": lambda r: r["reason"],
        "similarity": lambda r: f"{r['similarity']:g}",
        "a": lambda r: r["a"]["id"],
        "b": lambda r: r["b"]["id"],
        "a_text": lambda r: r["a"]["text"],
        "b_text": lambda r: r["b"]["text"],
    },
    columns={
        "kind": lambda r: r["kind"],
        "reason": lambda r: r["reason"],
        "sim": lambda r: f"{r['similarity']:.3f}",
        "memories": lambda r: "\n".join(
            f"{render.short(m['id'])} {render.excerpt(m['text'])}" for m in (r["a"], r["b"])
        ),
    },
)


class ConflictOptions(TypedDict, total=False):
    """Which conflicts to look for."""

    threshold: params.ConflictThreshold
    deep: params.Deep
    limit: params.Limit


@app.command("conflicts")
@options.takes(ConflictOptions)
def conflicts(
    ctx: typer.Context,
    id: One = None,
    resolve: Resolve = False,
    format: options.Output = "auto",
    **more: Any,
) -> None:
    """Find memories that contradict or repeat each other.

    Contradictions come first. A negation is told by English words alone.
    """
    if resolve and not session.can_ask():
        raise InputError("--resolve asks about each conflict, and there is no terminal.")
    with session.opened(ctx) as store:
        found = store.find_conflicts(store.find_id(id) if id else None, **options.given(more))
        if resolve and found:
            _go_through(store, found)
            return
    records = [_record(conflict) for conflict in found]
    session.show_records(records, VIEW, format, "No conflicts found.")


def _record(one: Conflict) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "reason": one.reason,
        "similarity": one.similarity,
        "a": one.a.to_dict(),
        "b": one.b.to_dict(),
    }


def _go_through(store: MemoryStore, found: list[Conflict]) -> None:
    for number, conflict in enumerate(found, 1):
        older, newer = sorted((conflict.a, conflict.b), key=lambda memory: memory.created_at)
        if not (_stands(store, older) and _stands(store, newer)):
            continue
        heading = f"{conflict.kind} ({conflict.reason}, {conflict.similarity:.3f})"
        session.say(
            f"{number}/{len(found)} {heading}\n  older {_line(older)}\n  newer {_line(newer)}"
        )
        if not _settled(store, conflict, older, newer):
            return


def _stands(store: MemoryStore, memory: Memory) -> bool:
    """Say whether a memory is as shown: an answer before may have taken or hidden it."""
    now = store.get(memory.id)
    return now is not None and now.superseded_by is None and now.text == memory.text


def _settled(store: MemoryStore, conflict: Conflict, older: Memory, newer: Memory) -> bool:
    """Ask about one conflict until the answer is understood; say whether to go on."""
    while True:
        line = session.ask(QUESTION)
        match line.strip():
            case "q":
                return False
            case "":
                return line != ""
            case "k":
                _keep(store, conflict)
            case "s" | "S" as answer:
                old, new = (older, newer) if answer == "s" else (newer, older)
                store.supersede(old.id, new.id)
                session.say(f"Superseded {render.short(old.id)} by {render.short(new.id)}")
            case "d" | "D" as answer:
                gone = older if answer == "d" else newer
                store.forget(gone.id)
                session.say(f"Forgot {_line(gone)}")
            case _:
                continue
        return True


def _keep(store: MemoryStore, conflict: Conflict) -> None:
    """Let both stand: a link that says they contradict each other goes."""
    a, b = conflict.a.id, conflict.b.id
    if conflict.reason == "link":
        store.unlink(a, b, "contradicts")
        store.unlink(b, a, "contradicts")
    session.say("Kept both.")


def _line(memory: Memory) -> str:
    return f"{render.short(memory.id)} {render.excerpt(memory.text, 80)}"


@app.command("supersede")
def supersede(ctx: typer.Context, old: Old, new: New) -> None:
    """Replace a memory by a newer one; the old one is hidden."""
    with session.opened(ctx) as store:
        ids = (store.find_id(old), store.find_id(new))
        store.supersede(*ids)
    session.say("Superseded {} by {}".format(*map(render.short, ids)))


@app.command("restore")
def restore(ctx: typer.Context, id: options.Id) -> None:
    """Show a superseded memory again."""
    with session.opened(ctx) as store:
        whole = store.find_id(id)
        was_hidden = store.restore(whole)
    short = render.short(whole)
    session.say(f"Restored {short}" if was_hidden else f"{short} was not superseded.")
