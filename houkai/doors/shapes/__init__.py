"""From results to answers: AI-Houkai's success shapes, and houkai's own fields beside them.

The function of a tool turns its result into plain data, and the schema of what it returns is the
tool's output schema. Wherever a memory's text is shown, its trust stands by. The modules go
without `from __future__ import annotations`, which would hide `NotRequired` from the schemas.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from houkai.doors.shapes import conflicts, curation, journal, links, memories, recalls
from houkai.doors.shapes.picking import Given

SHAPES: Final[Mapping[str, Callable[[Any, Given], Any]]] = {
    "auto_context": recalls.auto_context,
    "delete_tag": curation.retag,
    "diff": journal.diff,
    "edit": memories.edit,
    "eval_recall": recalls.eval_recall,
    "find_conflicts": conflicts.find_conflicts,
    "find_path": links.find_path,
    "forget": memories.forget,
    "forget_many": memories.forget_many,
    "get": memories.get,
    "get_at": journal.get_at,
    "history": journal.history,
    "journal_tail": journal.journal_tail,
    "link": links.link,
    "list_recent": memories.list_recent,
    "list_tags": curation.list_tags,
    "merge": curation.merge,
    "merge_tags": curation.retag,
    "neighbors": links.neighbors,
    "nuke": memories.nuke,
    "operation": journal.history,
    "preview_undo": journal.preview_undo,
    "prune_journal": journal.prune_journal,
    "recall": recalls.recall,
    "recall_pack": recalls.recall_pack,
    "redo": journal.undo,
    "remember": memories.remember,
    "remember_many": memories.remember_many,
    "rename_tag": curation.retag,
    "restore": conflicts.restore,
    "state_at": journal.state_at,
    "stats": memories.stats,
    "subgraph": links.subgraph,
    "supersede": conflicts.supersede,
    "trash": curation.trash,
    "trash_many": curation.trash_many,
    "trash_list": curation.trash_list,
    "trash_purge": curation.trash_purge,
    "trash_restore": curation.trash_restore,
    "trash_restore_many": curation.trash_restore_many,
    "undo": journal.undo,
    "undo_since": journal.undo_since,
    "unlink": links.unlink,
    "versions": curation.versions,
    "verify_journal": journal.verify_journal,
}
