"""The operations, one module per noun; each takes a store first."""

from houkai.ops import (
    difference,
    evaluate,
    health,
    history,
    links,
    listing,
    memories,
    packing,
    recall,
    reembed,
    removal,
    retention,
    undoing,
)

__all__ = [
    "difference",
    "evaluate",
    "health",
    "history",
    "links",
    "listing",
    "memories",
    "packing",
    "recall",
    "reembed",
    "removal",
    "retention",
    "undoing",
]
