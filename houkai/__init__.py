"""Long-term memory for AI agents in one SQLite file."""

from __future__ import annotations

import typing

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
from houkai.model import ExpandSpec, ExplainedHit, Hit, HybridWeights, JournalEntry, Link, Memory
from houkai.ops.drafts import RememberItem
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

if typing.TYPE_CHECKING:
    from houkai.aio import AsyncMemoryStore

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
    "AsyncMemoryStore",
    "BadArchive",
    "Busy",
    "ConflictError",
    "Corrupt",
    "Diverged",
    "ExpandSpec",
    "ExplainedHit",
    "ExtraMissing",
    "Foreign",
    "Full",
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
    "NotFound",
    "NotReady",
    "ReadOnly",
    "RememberItem",
    "SchemaTooNew",
    "StorageError",
]


def __getattr__(name: str) -> typing.Any:
    """Import `AsyncMemoryStore` when it is asked for; asyncio costs a command 0.1 s."""
    if name == "AsyncMemoryStore":
        from houkai.aio import AsyncMemoryStore

        return AsyncMemoryStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Name what is imported late too."""
    return sorted({*globals(), "AsyncMemoryStore"})
