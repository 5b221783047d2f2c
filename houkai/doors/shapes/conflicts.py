"""What the operations on conflicts and superseding answer."""

from collections.abc import Sequence
from typing import TypedDict

from houkai.doors.forms import Shown
from houkai.doors.shapes.links import EXCERPT
from houkai.doors.shapes.picking import Given
from houkai.model import Conflict, Memory


class Side(TypedDict):
    """One of two conflicting memories; the beginning of its text."""

    id: str
    text: str
    type: str
    trust: str


class Clash(TypedDict):
    """Two memories that contradict or repeat each other, the older one first."""

    kind: str
    reason: str
    similarity: float
    a: Side
    b: Side


class Superseded(TypedDict):
    """Which memory now replaces which."""

    ok: bool
    old_id: str
    new_id: str


class Restored(TypedDict):
    """Whether a memory was superseded, and by which."""

    restored: bool
    id: str
    was_superseded_by: str | None


def find_conflicts(found: Sequence[Conflict], _given: Given) -> list[Clash]:
    """Show conflicts, contradictions first."""
    return [
        {
            "kind": one.kind,
            "reason": one.reason,
            "similarity": one.similarity,
            "a": _side(one.a),
            "b": _side(one.b),
        }
        for one in found
    ]


def _side(memory: Memory) -> Side:
    return {
        "id": memory.id,
        "text": memory.text[:EXCERPT],
        "type": memory.type,
        "trust": memory.trust,
    }


def supersede(_done: None, given: Given) -> Superseded:
    """Show what was asked for, which is done."""
    return {"ok": True, "old_id": given["old_id"], "new_id": given["new_id"]}


def restore(shown: Shown, given: Given) -> Restored:
    """Show whether there was something to restore."""
    return {
        "restored": shown.restored,
        "id": given["memory_id"],
        "was_superseded_by": shown.superseder if shown.restored else None,
    }
