"""The table of operations: what machine doors offer, and what each call may do to a memory file.

A new operation is a function in its noun's module, a method of `MemoryStore` and a row here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from houkai.ops import (
    conflicts,
    curation,
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
    tags,
    trash,
    undoing,
)

Effect = Literal["read", "write", "destroy"]


@dataclass(frozen=True)
class Operation:
    """One operation: the function, its HTTP route, and what a caller may expect of it.

    `effect` is "destroy" where memories are taken away, even though undo brings them back.
    `idempotent`: a repeated write changes nothing more. `core`: offered to agents by default,
    whose context every further tool costs. `alias` is its name on wires where that differs.
    """

    run: Callable[..., Any]
    http: str
    effect: Effect = "read"
    idempotent: bool = False
    core: bool = False
    alias: str | None = None

    @property
    def name(self) -> str:
        """Return its name on wires."""
        return self.alias or self.run.__name__


OPERATIONS: Final = (
    Operation(memories.remember, "POST /memories", "write", core=True),
    Operation(memories.remember_many, "POST /memories/batch", "write", core=True),
    Operation(recall.recall, "GET /recall", core=True),
    Operation(packing.recall_pack, "POST /recall_pack", core=True),
    Operation(packing.auto_context_pack, "POST /auto_context", core=True, alias="auto_context"),
    Operation(listing.get, "GET /memories/{memory_id}", core=True),
    Operation(memories.edit, "PATCH /memories/{memory_id}", "write", True, core=True),
    Operation(
        removal.forget, "DELETE /memories/{memory_id}", "destroy", idempotent=True, core=True
    ),
    Operation(links.link, "POST /links", "write", True, core=True),
    Operation(links.neighbors, "GET /memories/{memory_id}/neighbors", core=True),
    Operation(superseding.supersede, "POST /supersede", "write", True, core=True),
    Operation(conflicts.find_conflicts, "POST /conflicts", core=True),
    Operation(history.history, "GET /memories/{memory_id}/history", core=True),
    Operation(undoing.undo, "POST /undo", "write", core=True),
    Operation(listing.list_recent, "GET /memories", core=True),
    Operation(health.stats, "GET /stats", core=True),
    Operation(links.unlink, "POST /unlink", "destroy", True),
    Operation(links.subgraph, "POST /subgraph"),
    Operation(links.find_path, "POST /find_path"),
    Operation(superseding.restore, "POST /restore", "write", True),
    Operation(curation.merge, "POST /merge", "destroy"),
    Operation(curation.versions, "GET /memories/{memory_id}/versions"),
    Operation(tags.list_tags, "GET /tags"),
    Operation(tags.rename_tag, "POST /tags/rename", "write", True),
    Operation(tags.merge_tags, "POST /tags/merge", "write", True),
    Operation(tags.delete_tag, "DELETE /tags/{tag}", "write", True),
    Operation(trash.trash, "POST /trash", "destroy", True),
    Operation(trash.trash_many, "POST /trash/batch", "destroy", True),
    Operation(trash.trash_list, "GET /trash"),
    Operation(trash.trash_restore, "POST /trash/restore", "write", True),
    Operation(trash.trash_restore_many, "POST /trash/restore/batch", "write", True),
    Operation(trash.trash_purge, "POST /trash/purge", "destroy", True),
    Operation(evaluate.eval_recall, "POST /eval_recall"),
    Operation(undoing.undo_since, "POST /undo_since", "write", True),
    Operation(undoing.preview_undo, "POST /undo/preview"),
    Operation(undoing.redo, "POST /redo", "write"),
    Operation(history.journal, "GET /journal", alias="journal_tail"),
    Operation(history.operation, "GET /operations/{ref}"),
    Operation(history.state_at, "GET /state_at"),
    Operation(history.get_at, "GET /memories/{memory_id}/at"),
    Operation(difference.diff, "GET /diff"),
    Operation(retention.verify_journal, "GET /journal/verify"),
    Operation(retention.prune_journal, "POST /journal/prune", "destroy", True),
    Operation(removal.forget_many, "POST /forget", "destroy", True),
    Operation(removal.nuke, "POST /nuke", "destroy", True),
)
