"""The closed sets of words that parameters accept."""

from __future__ import annotations

from typing import Final, Literal, get_args

MemoryType = Literal["episodic", "semantic", "procedural", "feedback"]
Relation = Literal[
    "related",
    "refines",
    "derived_from",
    "example_of",
    "contradicts",
    "supersedes",
    "causes",
    "fixes",
]
RecallMode = Literal["semantic", "hybrid"]
Fusion = Literal["blend", "weighted", "rrf"]
ConflictPolicy = Literal["ignore", "warn", "supersede", "raise"]
ConflictKind = Literal["contradiction", "duplicate"]
ConflictReason = Literal["link", "polarity_diff", "negation_diff", "custom_fn", "similarity"]
ImportPolicy = Literal["skip", "overwrite", "rename", "error"]
Direction = Literal["out", "in", "both"]
GraphFormat = Literal["ascii", "dot", "mermaid", "json"]
Trust = Literal["trusted", "reported", "untrusted"]
Polarity = Literal[-1, 0, 1]
RecencyBasis = Literal["created", "accessed"]
Durability = Literal["full", "normal"]

MEMORY_TYPES: Final[tuple[MemoryType, ...]] = get_args(MemoryType)
LINK_RELS: Final[tuple[Relation, ...]] = get_args(Relation)
RECALL_MODES: Final[tuple[RecallMode, ...]] = get_args(RecallMode)
FUSIONS: Final[tuple[Fusion, ...]] = get_args(Fusion)
CONFLICT_POLICIES: Final[tuple[ConflictPolicy, ...]] = get_args(ConflictPolicy)
IMPORT_POLICIES: Final[tuple[ImportPolicy, ...]] = get_args(ImportPolicy)
DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)
GRAPH_FORMATS: Final[tuple[GraphFormat, ...]] = get_args(GraphFormat)
TRUST_LEVELS: Final[tuple[Trust, ...]] = get_args(Trust)
"""Best first; a combination takes the worst of its parts."""
