"""The records that tools answer with: AI-Houkai's keys, and houkai's own beside them.

Wherever a memory's text is shown, its trust stands by. Evaluated annotations, without
`from __future__`, keep `NotRequired` visible to the output schemas.
"""

from typing import Any, NotRequired, TypedDict


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


class Recalled(Brief):
    """What a recall shows of a memory."""

    importance: float
    score: float
    explain: NotRequired[dict[str, Any]]


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


class Nuked(TypedDict):
    """How many memories were deleted."""

    ok: bool
    deleted: int


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


class Stats(TypedDict):
    """What the file holds."""

    count: int
    path: str
    collection: str
    by_type: dict[str, int]
    links: int
    operations: int
    collections: int
    bytes: int
    model: str | None
    unembedded: int
