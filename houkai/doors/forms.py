"""Operations as wires call them, where that differs from the library.

A wire has one `undo` for two methods, says `ts` and `n` as AI-Houkai's tools do, asks for a word
before it deletes everything, and tells what is new. All else is called as the library has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import partial, wraps
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeVar

from houkai import ops, params
from houkai.errors import InputError, NotFound
from houkai.handle import Store
from houkai.model import Conflict, JournalEntry, Memory, Neighbor, Step, UndoPreview
from houkai.notes import tell
from houkai.ops.drafts import RememberItem
from houkai.ops.memories import Entered
from houkai.ops.table import Operation
from houkai.rules import Doc, clean

T = TypeVar("T")
_ITEM: Final = frozenset(field.name for field in fields(RememberItem))
_like: Final = partial(wraps, assigned=("__module__", "__name__", "__annotations__"))
"""Take the parameters of a library function, but neither its docstring nor its result."""


class Reversal(NamedTuple):
    """The entry of an undo or redo, and the entry it put back."""

    entry: JournalEntry
    undone: JournalEntry


class Passed(NamedTuple):
    """A step of a path, and the memory it leads to."""

    step: Step
    memory: Memory


class Shown(NamedTuple):
    """Whether a memory was restored, and what had superseded it."""

    restored: bool
    superseder: str | None


class Past(NamedTuple, Generic[T]):
    """What was known at a moment."""

    ts: float
    known: T


@_like(ops.memories.remember)
def remember(store: Store, **given: Any) -> Entered:
    """Store one memory for later sessions.

    Use it for facts, decisions, preferences, corrections and events that will matter again: one
    of them a memory, in a sentence that says who, what and when without this conversation.
    """
    item = {name: given.pop(name) for name in _ITEM & given.keys()}
    return ops.memories.enter(store, [item], op="remember", **given)[0]


@_like(ops.memories.remember_many)
def remember_many(store: Store, **given: Any) -> list[Entered]:
    """Store many memories at once, undone as one.

    Items are texts or objects with the fields of `remember`; all are checked before one is stored.
    """
    return ops.memories.enter(store, **given)


@_like(ops.memories.edit)
def edit(store: Store, **given: Any) -> Memory:
    """Change fields of a memory in place; what is left out stays as it is.

    An empty text clears source and author, an empty list clears tags and entities, 0 clears a
    time.
    """
    return ops.memories.edit(store, **given)


@_like(ops.links.find_path)
def find_path(store: Store, **given: Any) -> list[Passed]:
    """Find a shortest chain of links between two memories, whichever way the links point."""
    steps = ops.links.find_path(store, **given)
    known = ((step, ops.listing.get(store, step.id)) for step in steps)
    return [Passed(step, memory) for step, memory in known if memory is not None]


def undo(
    store: Store,
    operation: params.OperationRef | None = None,
    memory_id: params.MemoryId | None = None,
    actor: params.Actor = None,
    session: params.Session = None,
) -> Reversal:
    """Undo one operation as a whole: the newest that still stands, whoever did it, or a named one.

    `history` and an error's hint tell numbers. It refuses when a later change would be lost.
    Repeated calls step further back; each undo can itself be undone.
    """
    if operation is None:
        entry = ops.undoing.undo_last(store, memory_id, actor, session)
        reversal = _reversal(store, entry, "Nothing is left to undo.")
        if actor is session is None:
            _tell_whose(store, reversal.undone)
        return reversal
    if memory_id is actor is session is None:
        return _reversal(store, ops.undoing.undo(store, operation), "")
    raise InputError("Give operation alone, or memory_id, actor and session without it.")


def preview_undo(
    store: Store,
    operation: params.OperationRef | None = None,
    memory_id: params.MemoryId | None = None,
    actor: params.Actor = None,
    session: params.Session = None,
    since: params.DoneSince | None = None,
) -> UndoPreview:
    """Show what an undo would change, and why it would be refused, without changing anything.

    It chooses as `undo` does; with `since` it shows what `undo_since` would undo.
    """
    return ops.undoing.preview_undo(
        store, operation, memory_id=memory_id, actor=actor, session=session, since=since
    )


def redo(store: Store, operation: params.OperationRef | None = None) -> Reversal:
    """Redo what an undo took back: the newest undo that still stands, or the one named."""
    return _reversal(store, ops.undoing.redo(store, operation), "Nothing is left to redo.")


def _reversal(store: Store, entry: JournalEntry | None, otherwise: str) -> Reversal:
    if entry is None or entry.undoes is None:
        raise NotFound(otherwise)
    rows = ops.history.operation(store, entry.undoes)
    many = replace(rows[0], id="*", changes=len(rows))
    return Reversal(entry, rows[0] if len(rows) == 1 else many)


def _tell_whose(store: Store, undone: JournalEntry) -> None:
    """Say whose operation an undo took that was not told whose to take, unless the caller's own."""
    if (undone.actor, undone.session) != (store.actor, store.session):
        of = f" in session {undone.session}" if undone.session else ""
        tell(
            f"This undid what {undone.actor} had done{of}, not you: {undone.summary}. "
            f"Undo of operation {undone.undone_by} brings it back."
        )


def state_at(store: Store, ts: params.AsOf) -> Past[list[Memory]]:
    """Return all memories as the store knew them at a moment, oldest first.

    Superseded and expired ones are included, forgotten ones are not.
    """
    moment: float = clean(state_at, {"ts": ts}, at=store.now())["ts"]
    return Past(moment, ops.history.state_at(store, moment))


def get_at(store: Store, memory_id: params.MemoryId, ts: params.AsOf) -> Past[Memory]:
    """Return one memory as the store knew it at a moment."""
    moment: float = clean(get_at, {"ts": ts}, at=store.now())["ts"]
    memory = ops.history.get_at(store, memory_id, moment)
    if memory is None:
        raise NotFound(f"No memory with the id {memory_id!r} was known at that moment.")
    return Past(moment, memory)


def journal_tail(
    store: Store,
    n: params.Limit = 20,
    op: params.OperationName = None,
    actor: params.Actor = None,
    memory_id: params.MemoryId | None = None,
    session: params.Session = None,
    since: params.DoneSince | None = None,
    until: params.DoneUntil = None,
) -> list[JournalEntry]:
    """Return the newest operations first, one entry each, whoever did them."""
    given = {name: value for name, value in locals().items() if name not in ("store", "n")}
    return ops.history.journal(store, n, **given)


def neighbors(
    store: Store,
    memory_id: params.MemoryId,
    rel: params.RelFilter = None,
    direction: params.Heading = "both",
    depth: params.Depth = 1,
    limit: params.Limit = 100,
) -> list[Neighbor]:
    """Return the memories linked to one, nearest first, each with the relation that reached it."""
    return ops.links.neighbors(
        store, memory_id, rel=rel, direction=direction, depth=depth, limit=limit
    )


def find_conflicts(
    store: Store,
    memory_id: params.MemoryId | None = None,
    threshold: params.ConflictThreshold | None = None,
    deep: params.Deep = False,
    limit: params.Limit = 20,
) -> list[Conflict]:
    """Find memories that contradict or repeat each other, contradictions first, older before newer.

    Resolve each: `supersede` the outdated one, `merge` two that say the same, or `edit`. What is
    linked as contradicting is told of until then. Negation is understood in English.
    """
    return ops.conflicts.find_conflicts(
        store, memory_id, threshold=threshold, deep=deep, limit=limit
    )


@_like(ops.superseding.restore)
def restore(store: Store, memory_id: str) -> Shown:
    """Show a superseded memory again, and give a pin back to it that had moved."""
    before = ops.listing.get(store, memory_id)
    restored = ops.superseding.restore(store, memory_id)
    return Shown(restored, before.superseded_by if before else None)


@_like(ops.trash.trash_restore)
def trash_restore(store: Store, memory_id: str) -> Memory | None:
    """Bring a memory back from the trash, with its links as far as both ends live."""
    return ops.trash.trash_restore(store, _trashed(store, memory_id))


@_like(ops.trash.trash_restore_many)
def trash_restore_many(store: Store, memory_ids: list[str]) -> list[str]:
    """Bring memories back from the trash in one operation, so that one undo puts all back there.

    Their links come with them, as far as both ends live then.
    """
    return ops.trash.trash_restore_many(store, [_trashed(store, id) for id in memory_ids])


@_like(ops.trash.trash_purge)
def trash_purge(store: Store, memory_id: str | None = None, **given: Any) -> int:
    """Drop what is in the trash for good: one memory, what is older, or everything.

    This cannot be undone: what the memories said goes from the journal too.
    """
    return ops.trash.trash_purge(store, memory_id and _trashed(store, memory_id), **given)


def _trashed(store: Store, start: str) -> str:
    """Complete the beginning of the id of a memory in the trash, if only one has it."""
    entries = ops.trash.trash_list(store)
    found = [entry.memory_id for entry in entries if entry.memory_id.startswith(start)]
    return found[0] if len(found) == 1 else start


def nuke(
    store: Store,
    confirm: Annotated[
        Literal["DELETE ALL"], Doc("The words DELETE ALL, which show that it is meant.")
    ],
) -> int:
    """Delete every memory of the collection; undo brings them back."""
    del confirm  # required and checked; nothing else depends on it
    return ops.removal.nuke(store)


FORMS: Final[Mapping[str, Callable[..., Any]]] = {
    form.__name__: form
    for form in (
        remember,
        remember_many,
        edit,
        find_path,
        undo,
        preview_undo,
        redo,
        state_at,
        get_at,
        journal_tail,
        neighbors,
        find_conflicts,
        restore,
        trash_restore,
        trash_restore_many,
        trash_purge,
        nuke,
    )
}


def form_of(operation: Operation) -> Callable[..., Any]:
    """Return the function that a wire calls for an operation, whose parameters it shows."""
    return FORMS.get(operation.name, operation.run)
