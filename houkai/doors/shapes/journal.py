"""What the operations on the past answer."""

from collections.abc import Sequence
from typing import Any, TypedDict

from houkai.doors.forms import Past, Reversal
from houkai.doors.shapes.picking import Given, pick
from houkai.model import JournalEntry, Memory


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
    )


def state_at(past: Past[list[Memory]], _given: Given) -> State:
    """Show all memories of a moment."""
    known = [pick(Known, memory) for memory in past.known]
    return {"ts": past.ts, "count": len(known), "memories": known}


def get_at(past: Past[Memory], _given: Given) -> KnownAt:
    """Show one memory of a moment."""
    return pick(KnownAt, past.known, ok=True, ts=past.ts)
