"""The records that houkai takes and gives: plain, frozen, the same on every door."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any, NamedTuple

from houkai.limits import GRAPH_DEPTH, GRAPH_NODES
from houkai.rules import AsWords, Between, Doc
from houkai.vocabulary import (
    LINK_RELS,
    ConflictKind,
    ConflictReason,
    MemoryType,
    Polarity,
    RecencyBasis,
    Relation,
    Trust,
)

_Weight = Annotated[float, Between(-1_000, 1_000)]
_Amount = Annotated[float, Between(0, 1_000)]


@dataclass(frozen=True)
class Link:
    """A typed edge to another memory."""

    to: str
    rel: Relation


@dataclass(frozen=True)
class Memory:
    """One memory. Times are epoch seconds in UTC; absent is None."""

    id: str
    text: str
    type: MemoryType = "semantic"
    tags: list[str] = field(default_factory=list)
    importance: float = 0.5
    created_at: float = 0.0
    last_accessed: float | None = None
    access_count: int = 0
    source: str | None = None
    links: list[Link] = field(default_factory=list)
    superseded_by: str | None = None
    superseded_at: float | None = None
    polarity: Polarity = 0
    expires_at: float | None = None
    pinned: bool = False
    trust: Trust = "trusted"
    content_hash: str = ""
    valid_from: float | None = None
    valid_until: float | None = None
    author: str | None = None
    position: int | None = None
    entities: list[str] = field(default_factory=list)
    collection: str = "default"

    def to_dict(self) -> dict[str, Any]:
        """Return every field as plain JSON types; links as {"to", "rel"}."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["tags"], plain["entities"] = list(self.tags), list(self.entities)
        plain["links"] = [{"to": link.to, "rel": link.rel} for link in self.links]
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Memory:
        """Build a memory from such a dict; unknown keys are ignored, missing ones defaulted."""
        known = {f.name for f in fields(cls)}
        values = {key: value for key, value in plain.items() if key in known}
        values["links"] = [Link(link["to"], link["rel"]) for link in plain.get("links") or []]
        for name in ("superseded_by", "superseded_at", "expires_at", "valid_from", "valid_until"):
            values[name] = plain.get(name) or None
        return cls(**values)


class Neighbor(NamedTuple):
    """A memory reached along links, and the relation of the link that reached it."""

    memory: Memory
    rel: Relation


class Edge(NamedTuple):
    """A link seen from outside: both ends and the relation."""

    src: str
    dst: str
    rel: Relation


class Step(NamedTuple):
    """A memory on a path, and the relation that led to it; "" at the start."""

    id: str
    rel: str


@dataclass(frozen=True)
class Graph:
    """Memories by id and the links between them; `truncated` when a limit cut it short."""

    nodes: dict[str, Memory] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    truncated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the graph as plain JSON types."""
        return {
            "nodes": [memory.to_dict() for memory in self.nodes.values()],
            "edges": [edge._asdict() for edge in self.edges],
            "truncated": self.truncated,
        }


@dataclass(frozen=True)
class Conflict:
    """Two live memories that say the same or contradict each other; `a` is the older one.

    Where one memory was asked about, `a` is that one. `similarity` is their cosine, rounded to 4
    digits. A contradiction's reason is polarity_diff, negation_diff, custom_fn, or link: somebody
    linked them as contradicting.
    """

    a: Memory
    b: Memory
    similarity: float
    kind: ConflictKind
    reason: ConflictReason


@dataclass(frozen=True)
class Version:
    """What a memory said before a change; `ts` is when it was replaced, by which operation."""

    ts: float
    text: str
    tags: list[str]
    importance: float
    source: str | None
    type: MemoryType
    trust: Trust
    operation: int


class TagCount(NamedTuple):
    """A tag, and how many memories carry it."""

    tag: str
    memories: int


@dataclass(frozen=True)
class TagRename:
    """How many memories a change of tags touched, and the tag they now share."""

    changed: int
    tag: str


@dataclass(frozen=True)
class TrashEntry:
    """A memory in the trash: its fields as they were, when and by whom it was put there."""

    memory_id: str
    deleted_at: float
    actor: str
    memory: dict[str, Any]
    collection: str = "default"


@dataclass(frozen=True)
class HybridWeights:
    """Weights of the seed's fusions; the four core ones must sum to more than zero."""

    cosine: _Weight = 0.55
    lexical: _Weight = 0.20
    recency: _Weight = 0.15
    importance: _Weight = 0.10
    decay_rate: _Amount = 0.10
    polarity_weight: _Weight = 0.05
    graph: _Amount = 0.0
    recency_basis: RecencyBasis = "created"


@dataclass(frozen=True)
class ExpandSpec:
    """How recall walks from its hits along links."""

    rels: Annotated[
        tuple[Relation, ...],
        Doc("Also bring what hits link to by these; refines and example_of alone if not said."),
        AsWords(LINK_RELS),
    ] = ("refines", "example_of")
    depth: Annotated[
        int,
        Doc("How many links to go from a hit, the way they point."),
        Between(0, GRAPH_DEPTH, whole=True),
    ] = 1
    cap: Annotated[
        int, Doc("How many linked memories to add at most."), Between(0, GRAPH_NODES, whole=True)
    ] = 5
    score: Annotated[
        float,
        Doc("Score of a linked memory; ranked among the hits, its share of the best one's."),
        Between(0, 1_000),
    ] = 0.70
    decay: Annotated[float, Doc("Factor for each further link."), Between(0, 1_000)] = 1.0
    rerank: Annotated[bool, Doc("Rank linked memories among the hits, not behind them.")] = False


@dataclass(frozen=True)
class JournalEntry:
    """One change of one row, or one whole operation, as the journal keeps it.

    `before` and `after` are images of the row; None where it was not there.
    """

    ts: float
    op: str
    actor: str
    id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    meta: dict[str, Any]
    scope: str | None
    operation: int
    operation_id: str
    kind: str = "memory"
    changes: int = 1
    undoes: int | None = None
    undone_by: int | None = None
    session: str | None = None

    @property
    def summary(self) -> str:
        """Return what happened in a few words."""
        if self.op in ("undo", "redo") and self.undoes is not None:
            return f"{self.op} of operation {self.undoes}"
        if self.changes != 1:
            return f"{self.op} {self.changes} rows"
        if self.kind == "link":
            return f"{self.op} {self.id[:8]} -{self.meta.get('rel')}-> {self._target()[:8]}"
        changed = ", ".join(self.changed_fields()) if self.before and self.after else ""
        return f"{self.op} {self.id[:8]}" + (f": {changed}" if changed else "")

    def _target(self) -> str:
        return str(self.meta.get("dst_id", ""))

    def changed_fields(self) -> list[str]:
        """Name the fields in which before and after differ."""
        before, after = self.before or {}, self.after or {}
        names = dict.fromkeys([*before, *after])
        return [name for name in names if before.get(name) != after.get(name)]


@dataclass(frozen=True)
class Difference:
    """What became of one row between two moments; None where it was not there."""

    kind: str
    id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def change(self) -> str:
        """Say in one word what happened."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True)
class UndoPreview:
    """What an undo would take back, newest first, and what that would make of each row.

    Where it would be refused, `refusal` says why, `hint` what to do, and `rows` names what stands
    in the way.
    """

    operations: list[JournalEntry] = field(default_factory=list)
    changes: list[Difference] = field(default_factory=list)
    refusal: str | None = None
    rows: list[str] = field(default_factory=list)
    hint: str | None = None
