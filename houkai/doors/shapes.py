"""From results to answers: one pure function for each tool, named as the tool.

The schema of what a function returns is the tool's output schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from houkai.doors.forms import Past, Reversal
from houkai.doors.records import (
    Brief,
    Change,
    Edited,
    Forgotten,
    Got,
    Known,
    KnownAt,
    Nuked,
    Recalled,
    Remembered,
    RememberedMany,
    State,
    Stats,
    Step,
    Undone,
)
from houkai.model import ExplainedHit, Hit, JournalEntry, Memory
from houkai.ops.memories import Entered

Given = Mapping[str, Any]
Shape = TypeVar("Shape")


def remember(entered: Entered, _given: Given) -> Remembered:
    """Show a memory that was stored or found."""
    return _pick(Remembered, entered.memory, stored=entered.new)


def remember_many(entered: Sequence[Entered], _given: Given) -> RememberedMany:
    """Show the ids of the items' memories, and how many are new."""
    return {
        "stored": sum(one.new for one in entered),
        "ids": [one.memory.id for one in entered],
    }


def recall(hits: Sequence[Hit | ExplainedHit], _given: Given) -> list[Recalled]:
    """Show hits, best first."""
    return [_hit(*hit) for hit in hits]


def _hit(memory: Memory, score: float, explain: dict[str, Any] | None = None) -> Recalled:
    more = {} if explain is None else {"explain": explain}
    return _brief(Recalled, memory, score=round(score, 4), **more)


def get(memory: Memory | None, given: Given) -> Got:
    """Show a whole memory, or that there is none."""
    if memory is None:
        return {"found": False, "id": given["memory_id"]}
    return _pick(Got, memory, found=True)


def edit(memory: Memory, _given: Given) -> Edited:
    """Show an edited memory."""
    return _pick(Edited, memory, ok=True)


def forget(deleted: bool, _given: Given) -> Forgotten:
    """Show whether there was something to delete."""
    return {"deleted": deleted}


def nuke(deleted: int, _given: Given) -> Nuked:
    """Show how many were deleted."""
    return {"ok": True, "deleted": deleted}


def list_recent(memories: Sequence[Memory], _given: Given) -> list[Brief]:
    """Show memories, newest first."""
    return [_brief(Brief, memory) for memory in memories]


def history(entries: Sequence[JournalEntry], _given: Given) -> list[Change]:
    """Show changes in the order of the entries."""
    return [_pick(Change, entry, summary=entry.summary) for entry in entries]


operation = history


def journal_tail(entries: Sequence[JournalEntry], _given: Given) -> list[Step]:
    """Show operations without their images."""
    return [_pick(Step, entry, summary=entry.summary) for entry in entries]


def undo(reversal: Reversal, _given: Given) -> Undone:
    """Show the operation that was put back, and the number that redoes it."""
    return _pick(
        Undone,
        reversal.undone,
        ok=True,
        error=None,
        operation=reversal.entry.operation,
        undoes=reversal.entry.undoes,
    )


redo = undo


def state_at(past: Past[list[Memory]], _given: Given) -> State:
    """Show all memories of a moment."""
    known = [_pick(Known, memory) for memory in past.known]
    return {"ts": past.ts, "count": len(known), "memories": known}


def get_at(past: Past[Memory], _given: Given) -> KnownAt:
    """Show one memory of a moment."""
    return _pick(KnownAt, past.known, ok=True, ts=past.ts)


def stats(counted: Stats, _given: Given) -> Stats:
    """Show the counts as they are."""
    return counted


def _brief(shape: type[Shape], memory: Memory, **more: Any) -> Shape:
    picked = cast("dict[str, Any]", _pick(shape, memory, **more))
    if picked["author"] is None:
        del picked["author"]
    return cast("Shape", picked)


def _pick(shape: type[Shape], record: Memory | JournalEntry, **more: Any) -> Shape:
    """Return the fields of a record that a shape has, and what else it holds."""
    values = record.to_dict() if isinstance(record, Memory) else vars(record)
    values = {**values, **more}
    return cast("Shape", {name: values[name] for name in shape.__annotations__ if name in values})


SHAPES: Final[Mapping[str, Callable[[Any, Given], Any]]] = {
    "edit": edit,
    "forget": forget,
    "get": get,
    "get_at": get_at,
    "history": history,
    "journal_tail": journal_tail,
    "list_recent": list_recent,
    "nuke": nuke,
    "operation": operation,
    "recall": recall,
    "redo": redo,
    "remember": remember,
    "remember_many": remember_many,
    "state_at": state_at,
    "stats": stats,
    "undo": undo,
}
