"""The operations, one module per noun; each takes a store first."""

from houkai.ops import (
    evaluate,
    health,
    history,
    links,
    listing,
    memories,
    packing,
    recall,
    removal,
    undoing,
)

__all__ = [
    "evaluate",
    "health",
    "history",
    "links",
    "listing",
    "memories",
    "packing",
    "recall",
    "removal",
    "undoing",
]
