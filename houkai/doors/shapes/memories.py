"""What the operations on single memories answer."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from houkai.doors.shapes.picking import Given, brief, pick
from houkai.model import Memory
from houkai.ops.memories import Entered


class Remembered(TypedDict):
    """A memory that was stored, or that said the same before."""

    id: str
    stored: bool
    importance: float
    expires_at: float | None
    pinned: bool
    trust: str


class RememberedMany(TypedDict):
    """How many items were new, and the ids of all in order."""

    stored: int
    ids: list[str]


class Brief(TypedDict):
    """What a listing shows of a memory."""

    id: str
    text: str
    type: str
    tags: list[str]
    created_at: float
    superseded_by: str | None
    expires_at: float | None
    trust: str
    pinned: bool
    source: str | None
    author: NotRequired[str]


class Edge(TypedDict):
    """A typed link to another memory."""

    to: str
    rel: str


class Whole(TypedDict, total=False):
    """Every field of a memory."""

    text: str
    type: str
    tags: list[str]
    importance: float
    source: str | None
    polarity: int
    created_at: float
    last_accessed: float | None
    access_count: int
    superseded_by: str | None
    superseded_at: float | None
    expires_at: float | None
    pinned: bool
    trust: str
    content_hash: str
    valid_from: float | None
    valid_until: float | None
    author: str | None
    position: int | None
    entities: list[str]
    links: list[Edge]
    collection: str


class Got(Whole):
    """A memory with all its fields, or `found` false and the id alone."""

    found: bool
    id: str


class Edited(TypedDict):
    """A memory after an edit."""

    ok: bool
    id: str
    text: str
    type: str
    tags: list[str]
    importance: float
    polarity: int
    source: str | None
    expires_at: float | None
    pinned: bool
    trust: str
    content_hash: str
    valid_from: float | None
    valid_until: float | None
    created_at: float
    author: str | None
    position: int | None
    entities: list[str]


class Forgotten(TypedDict):
    """Whether there was something to delete."""

    deleted: bool


class ForgottenMany(TypedDict):
    """Which memories were there and are deleted."""

    ids: list[str]
    deleted: int


class Nuked(TypedDict):
    """How many memories were deleted."""

    ok: bool
    deleted: int


class Stats(TypedDict):
    """What the collection holds (`count`, `by_type`), and what the whole file does (all others)."""

    count: int
    path: str
    collection: str
    by_type: dict[str, int]
    links: int
    operations: int
    collections: int
    collection_names: list[str]
    bytes: int
    model: str | None
    unembedded: int
    reembedding: str | None


def remember(entered: Entered, _given: Given) -> Remembered:
    """Show a memory that was stored or found."""
    return pick(Remembered, entered.memory, stored=entered.new)


def remember_many(entered: Sequence[Entered], _given: Given) -> RememberedMany:
    """Show the ids of the items' memories, and how many are new."""
    return {
        "stored": sum(one.new for one in entered),
        "ids": [one.memory.id for one in entered],
    }


def get(memory: Memory | None, given: Given) -> Got:
    """Show a whole memory, or that there is none."""
    if memory is None:
        return {"found": False, "id": given["memory_id"]}
    return pick(Got, memory, found=True)


def edit(memory: Memory, _given: Given) -> Edited:
    """Show an edited memory."""
    return pick(Edited, memory, ok=True)


def forget(deleted: bool, _given: Given) -> Forgotten:
    """Show whether there was something to delete."""
    return {"deleted": deleted}


def forget_many(ids: list[str], _given: Given) -> ForgottenMany:
    """Show which were deleted."""
    return {"ids": ids, "deleted": len(ids)}


def nuke(deleted: int, _given: Given) -> Nuked:
    """Show how many were deleted."""
    return {"ok": True, "deleted": deleted}


def list_recent(memories: Sequence[Memory], _given: Given) -> list[Brief]:
    """Show memories, newest first."""
    return [brief(Brief, memory) for memory in memories]


def stats(counted: Stats, _given: Given) -> Stats:
    """Show the counts as they are."""
    return counted
