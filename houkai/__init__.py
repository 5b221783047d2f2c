"""Long-term memory for AI agents in one SQLite file."""

from __future__ import annotations

import importlib
import typing

if typing.TYPE_CHECKING:
    from houkai.aio import AsyncMemoryStore
    from houkai.errors import (
        BadArchive,
        Busy,
        ConflictError,
        Corrupt,
        Diverged,
        ExtraMissing,
        Foreign,
        Full,
        HoukaiError,
        InputError,
        ModelMismatch,
        ModelMissing,
        NotFound,
        NotReady,
        ReadOnly,
        SchemaTooNew,
        StorageError,
    )
    from houkai.hits import Answer, ExplainedHit, Hit
    from houkai.model import (
        Conflict,
        Difference,
        Edge,
        ExpandSpec,
        Graph,
        HybridWeights,
        JournalEntry,
        Link,
        Memory,
        Neighbor,
        Step,
        TagCount,
        TagRename,
        TrashEntry,
        UndoPreview,
        Version,
    )
    from houkai.ops.drafts import RememberItem
    from houkai.ops.evaluate import EvalCase, EvalResult
    from houkai.ops.reembed import Reembedded
    from houkai.packing import CompressedGroup, PackedMemory, PackResult
    from houkai.store import MemoryStore
    from houkai.vocabulary import (
        CONFLICT_POLICIES,
        DIRECTIONS,
        FUSIONS,
        IMPORT_POLICIES,
        LINK_RELS,
        MEMORY_TYPES,
        RECALL_MODES,
        TRUST_LEVELS,
    )

__version__ = "0.1.0"

__all__ = [
    "CONFLICT_POLICIES",
    "DIRECTIONS",
    "FUSIONS",
    "IMPORT_POLICIES",
    "LINK_RELS",
    "MEMORY_TYPES",
    "RECALL_MODES",
    "TRUST_LEVELS",
    "Answer",
    "AsyncMemoryStore",
    "BadArchive",
    "Busy",
    "CompressedGroup",
    "Conflict",
    "ConflictError",
    "Corrupt",
    "Difference",
    "Diverged",
    "Edge",
    "EvalCase",
    "EvalResult",
    "ExpandSpec",
    "ExplainedHit",
    "ExtraMissing",
    "Foreign",
    "Full",
    "Graph",
    "Hit",
    "HoukaiError",
    "HybridWeights",
    "InputError",
    "JournalEntry",
    "Link",
    "Memory",
    "MemoryStore",
    "ModelMismatch",
    "ModelMissing",
    "Neighbor",
    "NotFound",
    "NotReady",
    "PackResult",
    "PackedMemory",
    "ReadOnly",
    "Reembedded",
    "RememberItem",
    "SchemaTooNew",
    "Step",
    "StorageError",
    "TagCount",
    "TagRename",
    "TrashEntry",
    "UndoPreview",
    "Version",
]


_HOMES: typing.Final = (
    "houkai.errors",
    "houkai.vocabulary",
    "houkai.model",
    "houkai.hits",
    "houkai.store",
    "houkai.packing",
    "houkai.ops.drafts",
    "houkai.ops.evaluate",
    "houkai.ops.reembed",
    "houkai.aio",
)


def __getattr__(name: str) -> typing.Any:
    """Import a public name when it is first asked for: `houkai --help` needs none of them."""
    if name in __all__:
        for home in _HOMES:
            module = importlib.import_module(home)
            if hasattr(module, name):
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what is imported late too."""
    return sorted({*globals(), *__all__})
