"""What merging, versions, tags and the trash answer."""

from collections.abc import Sequence
from typing import TypedDict

from houkai.doors.shapes.memories import Whole
from houkai.doors.shapes.picking import Given, pick
from houkai.model import Memory, TagCount, TagRename, TrashEntry, Version

EXCERPT = 200
"""Signs of a text that a listing of the trash shows."""


class Merged(Whole):
    """The memory that took in another, with all its fields."""

    ok: bool
    id: str


class Said(TypedDict):
    """What a memory said until a moment."""

    ts: float
    text: str
    tags: list[str]
    importance: float
    source: str | None
    type: str
    trust: str
    operation: int


class Counted(TypedDict):
    """A tag and how many memories carry it."""

    tag: str
    count: int


class Retagged(TypedDict):
    """How many memories a change of tags touched."""

    ok: bool
    changed: int
    tag: str


class Trashed(TypedDict):
    """Whether there was something to put into the trash."""

    trashed: bool
    id: str


class TrashedMany(TypedDict):
    """Which memories were there and are in the trash."""

    ids: list[str]
    trashed: int


class Waste(TypedDict):
    """A memory in the trash; the beginning of its text."""

    memory_id: str
    deleted_at: float
    actor: str
    text: str
    trust: str


class Untrashed(Whole):
    """A memory back from the trash, or `restored` false and the id alone."""

    restored: bool
    id: str


class UntrashedMany(TypedDict):
    """Which memories were in the trash and are back."""

    ids: list[str]
    restored: int


class Purged(TypedDict):
    """How many memories were dropped for good."""

    purged: int


def merge(memory: Memory, _given: Given) -> Merged:
    """Show the merged memory."""
    return pick(Merged, memory, ok=True)


def versions(found: Sequence[Version], _given: Given) -> list[Said]:
    """Show versions, oldest first."""
    return [pick(Said, one) for one in found]


def list_tags(counts: Sequence[TagCount], _given: Given) -> list[Counted]:
    """Show tags, most used first."""
    return [{"tag": one.tag, "count": one.memories} for one in counts]


def retag(done: TagRename, _given: Given) -> Retagged:
    """Show how far a change of tags went."""
    return {"ok": True, "changed": done.changed, "tag": done.tag}


def trash(done: bool, given: Given) -> Trashed:
    """Show whether there was something to put aside."""
    return {"trashed": done, "id": given["memory_id"]}


def trash_many(ids: list[str], _given: Given) -> TrashedMany:
    """Show which were put aside."""
    return {"ids": ids, "trashed": len(ids)}


def trash_list(entries: Sequence[TrashEntry], _given: Given) -> list[Waste]:
    """Show the trash, oldest first."""
    return [
        {
            "memory_id": one.memory_id,
            "deleted_at": one.deleted_at,
            "actor": one.actor,
            "text": one.memory["text"][:EXCERPT],
            "trust": one.memory["trust"],
        }
        for one in entries
    ]


def trash_restore(memory: Memory | None, given: Given) -> Untrashed:
    """Show what came back."""
    if memory is None:
        return {"restored": False, "id": given["memory_id"]}
    return pick(Untrashed, memory, restored=True)


def trash_restore_many(ids: list[str], _given: Given) -> UntrashedMany:
    """Show which came back."""
    return {"ids": ids, "restored": len(ids)}


def trash_purge(purged: int, _given: Given) -> Purged:
    """Show how many are gone."""
    return {"purged": purged}
