"""The operations, one module per noun; each takes a store first."""

from houkai.ops import (
    conflicts,
    difference,
    evaluate,
    health,
    history,
    links,
    listing,
    memories,
    packing,
    recall,
    removal,
    retention,
    superseding,
    undoing,
)

__all__ = [
    "conflicts",
    "difference",
    "evaluate",
    "health",
    "history",
    "links",
    "listing",
    "memories",
    "packing",
    "recall",
    "removal",
    "retention",
    "superseding",
    "undoing",
]
