"""One run through every operation, as the library and as a tool call it.

`Ref(n)` stands for the id of the n-th memory that the run remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.support import START


class Ref(NamedTuple):
    """A memory of the run, by the order in which it was remembered."""

    number: int


@dataclass(frozen=True)
class Example:
    """A tool's call, and the method that does the same; the arguments are shared unless given."""

    tool: str
    given: Mapping[str, Any] = field(default_factory=dict)
    method: str = ""
    arguments: Mapping[str, Any] | None = None

    def library(self, ids: list[str]) -> tuple[str, dict[str, Any]]:
        """Return the method and its arguments."""
        given = self.given if self.arguments is None else self.arguments
        return self.method or self.tool, resolved(given, ids)


def resolved(given: Mapping[str, Any], ids: list[str]) -> dict[str, Any]:
    """Return arguments with ids in the place of references."""
    return {name: _one(value, ids) for name, value in given.items()}


def _one(value: Any, ids: list[str]) -> Any:
    if isinstance(value, Ref):
        return ids[value.number]
    if isinstance(value, list):
        return [_one(part, ids) for part in value]
    return {**value, **resolved(value, ids)} if isinstance(value, dict) else value


FIRST, SECOND = Ref(0), Ref(1)
ITEMS = ["The deploy key lives in the vault", {"text": "Ben prefers tabs", "tags": ["style"]}]

EXAMPLES = (
    Example(
        "remember",
        {
            "text": "Anna lands at nine",
            "tags": ["travel"],
            "importance": 0.8,
            "source": "mail",
            "author": "user",
            "entities": ["Anna"],
            "expires_at": "30d",
        },
    ),
    Example("remember", {"text": "Anna flies with KLM", "trust": "reported", "pinned": True}),
    Example("remember", {"text": "anna FLIES with klm", "idempotent": True}),
    Example("remember_many", {"items": ITEMS}),
    Example("link", {"src_id": FIRST, "dst_id": SECOND, "rel": "refines"}),
    Example("neighbors", {"memory_id": FIRST}),
    Example("subgraph", {"memory_ids": [FIRST]}),
    Example("find_path", {"from_id": SECOND, "to_id": FIRST}),
    Example("recall", {"query": "when does Anna land", "k": 2, "tag": "travel"}),
    Example("recall", {"query": "Anna", "explain": True, "touch": False}),
    Example("recall_pack", {"query": "Anna", "token_budget": 20, "compress": True}),
    Example("auto_context", {"task": "Fetch Anna from her KLM flight"}, "auto_context_pack"),
    Example("eval_recall", {"cases": [{"query": "Anna lands", "relevant_ids": [FIRST]}]}),
    Example("find_conflicts", {"threshold": 0.3, "limit": 2}),
    Example("supersede", {"old_id": SECOND, "new_id": FIRST}),
    Example("restore", {"memory_id": SECOND}),
    Example("restore", {"memory_id": SECOND}),
    Example("remember", {"text": "Anna lands", "tags": ["flights"]}),
    Example("merge", {"target_id": FIRST, "other_id": Ref(3), "separator": " "}),
    Example("versions", {"memory_id": FIRST}),
    Example("list_tags"),
    Example("rename_tag", {"old": "style", "new": "taste"}),
    Example("merge_tags", {"sources": ["flights", "travel"], "into": "trips"}),
    Example("delete_tag", {"tag": "taste"}),
    Example("trash", {"memory_id": SECOND}),
    Example("trash_list"),
    Example("trash_restore", {"memory_id": SECOND}),
    Example("trash_restore", {"memory_id": SECOND}),
    Example("trash_many", {"memory_ids": [FIRST, "no such id", SECOND]}),
    Example("trash_restore", {"memory_id": FIRST}),
    Example("trash_restore", {"memory_id": SECOND}),
    Example("trash_many", {"memory_ids": [FIRST, SECOND]}),
    Example("trash_restore_many", {"memory_ids": [FIRST, "no such id", SECOND]}),
    Example("trash_purge", {"older_than_days": 1}),
    Example("get", {"memory_id": FIRST}),
    Example("get", {"memory_id": "no such id"}),
    Example("edit", {"memory_id": FIRST, "text": "Anna lands at ten", "tags": []}),
    Example("edit", {"memory_id": FIRST, "source": ""}),
    Example("list_recent", {"limit": 3}),
    Example("history", {"memory_id": FIRST}),
    Example("operation", {"ref": 1}),
    Example("journal_tail", {"n": 3}, "journal", {"limit": 3}),
    Example("state_at", {"ts": "now"}, "state_at", {"timestamp": "now"}),
    Example(
        "get_at",
        {"memory_id": FIRST, "ts": START},
        "get_at",
        {"memory_id": FIRST, "timestamp": START},
    ),
    Example("preview_undo"),
    Example("preview_undo", {"operation": 1}),
    Example("undo", {}, "undo_last"),
    Example("redo"),
    Example("undo", {"operation": 1}),
    Example("edit", {"memory_id": FIRST, "importance": 7}),
    Example("edit", {"memory_id": "no such id", "importance": 0.7}),
    Example("link", {"src_id": FIRST, "dst_id": FIRST}),
    Example("recall", {"query": " "}),
    Example("unlink", {"src_id": FIRST, "dst_id": SECOND}),
    Example("forget", {"memory_id": SECOND}),
    Example("forget", {"memory_id": SECOND}),
    Example("forget_many", {"memory_ids": [SECOND, "no such id"]}),
    Example("diff", {"t1": 0, "t2": "now"}),
    Example("undo_since", {"since": START, "actor": "nobody"}),
    Example("verify_journal"),
    Example("prune_journal", {"keep_last": 2, "dry_run": True}),
    Example("stats"),
    Example("nuke", {"confirm": "DELETE ALL"}, "nuke", {}),
)
