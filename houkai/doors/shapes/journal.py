"""What the operations on the past answer."""

from collections.abc import Sequence
from typing import Any, TypedDict, cast

from houkai.doors.forms import Past, Reversal
from houkai.doors.shapes.picking import Given, pick
from houkai.model import Difference, JournalEntry, Memory, UndoPreview


class Step(TypedDict):
    """One operation of the journal."""

    ts: float
    op: str
    actor: str
    id: str
    summary: str
    meta: dict[str, Any]
    operation: int
    changes: int
    undone_by: int | None
    session: str | None


class Change(TypedDict):
    """One changed row, with its images before and after."""

    ts: float
    op: str
    actor: str
    id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    meta: dict[str, Any]
    summary: str
    operation: int
    undone_by: int | None


class Undone(TypedDict):
    """What was undone, or redone; `operation` is the undo itself, to redo it by."""

    ok: bool
    op: str
    id: str
    ts: float
    actor: str
    error: None
    operation: int
    undoes: int | None
    session: str | None
    summary: str


class Known(TypedDict):
    """What a past state shows of a memory."""

    id: str
    text: str
    type: str
    tags: list[str]
    importance: float
    created_at: float
    trust: str


class State(TypedDict):
    """All memories as they were known at a moment."""

    ts: float
    count: int
    memories: list[Known]


class KnownAt(Known):
    """One memory as it was known at a moment."""

    ok: bool
    ts: float
    superseded_by: str | None
    expires_at: float | None


class Reverted(TypedDict):
    """Which undos took back everything since a moment."""

    ok: bool
    operations: list[int]


class Changed(TypedDict):
    """What became of one row between two moments."""

    kind: str
    id: str
    change: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Previewed(TypedDict):
    """What an undo would change, or why it would be refused."""

    ok: bool
    operations: list[Step]
    changes: list[Changed]
    refusal: str | None
    rows: list[str]
    hint: str | None


class Verified(TypedDict):
    """Whether the chain of hashes holds, and where it first does not."""

    ok: bool
    broken_at: int | None


class Pruned(TypedDict):
    """What a pruning dropped, and from when on history is exact."""

    before: int
    images: int
    operations: int
    vectors: int
    exact_from: float | None
    dry_run: bool


def history(entries: Sequence[JournalEntry], _given: Given) -> list[Change]:
    """Show changes in the order of the entries."""
    return [pick(Change, entry, summary=entry.summary) for entry in entries]


def journal_tail(entries: Sequence[JournalEntry], _given: Given) -> list[Step]:
    """Show operations without their images."""
    return [pick(Step, entry, summary=entry.summary) for entry in entries]


def undo(reversal: Reversal, _given: Given) -> Undone:
    """Show the operation that was put back, and the number that redoes it."""
    return pick(
        Undone,
        reversal.undone,
        ok=True,
        error=None,
        operation=reversal.entry.operation,
        undoes=reversal.entry.undoes,
        summary=reversal.undone.summary,
    )


def state_at(past: Past[list[Memory]], _given: Given) -> State:
    """Show all memories of a moment."""
    known = [pick(Known, memory) for memory in past.known]
    return {"ts": past.ts, "count": len(known), "memories": known}


def get_at(past: Past[Memory], _given: Given) -> KnownAt:
    """Show one memory of a moment."""
    return pick(KnownAt, past.known, ok=True, ts=past.ts)


def undo_since(entries: Sequence[JournalEntry], _given: Given) -> Reverted:
    """Show the numbers of the undos, by any of which all can be redone."""
    return {"ok": True, "operations": [entry.operation for entry in entries]}


def preview_undo(preview: UndoPreview, given: Given) -> Previewed:
    """Show what would change, and whether it may."""
    return pick(
        Previewed,
        preview,
        ok=preview.refusal is None,
        operations=journal_tail(preview.operations, given),
        changes=diff(preview.changes, given),
    )


def diff(found: Sequence[Difference], _given: Given) -> list[Changed]:
    """Show what was added, removed or changed."""
    return [pick(Changed, one, change=one.change) for one in found]


def verify_journal(broken_at: int | None, _given: Given) -> Verified:
    """Show whether the chain holds."""
    return {"ok": broken_at is None, "broken_at": broken_at}


def prune_journal(told: dict[str, Any], _given: Given) -> Pruned:
    """Show what was dropped, without the hashes that prove it."""
    return cast("Pruned", {name: told[name] for name in Pruned.__annotations__})
