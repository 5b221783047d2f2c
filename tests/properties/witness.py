"""An independent witness: SQLite itself tells which rows changed, whoever changed them."""

from __future__ import annotations

from typing import Any

import apsw

WATCHED = ("memory", "tag", "entity", "link")

Key = tuple[str, ...]


class Witness:
    """What committed transactions changed in the journaled tables, by memory or by link."""

    def __init__(self) -> None:
        self.committed: set[Key] = set()
        self._pending: dict[tuple[Any, ...], list[Any]] = {}
        self._ids: dict[int, str] = {}

    def watch(self, connection: apsw.Connection) -> None:
        """Listen to a connection."""
        connection.preupdate_hook(self._changed)
        connection.set_commit_hook(self._commit)
        connection.set_rollback_hook(self._pending.clear)

    def _changed(self, change: Any) -> None:
        if change.table_name not in WATCHED:
            return
        old, new = change.old, change.new
        row = new or old
        if change.table_name == "memory":
            self._ids[row[0]] = row[1]
        owner: Key = ("memory", self._ids[row[0]])
        if change.table_name == "link":
            owner = ("link", self._ids[row[0]], row[1], self._ids[row[2]])
        where = (change.table_name, owner, row[1])
        self._pending.setdefault(where, [old, new])[1] = new

    def _commit(self) -> bool:
        for (_, owner, _), (old, new) in self._pending.items():
            if old != new:
                self.committed.add(owner)
        self._pending.clear()
        return False

    def take(self) -> set[Key]:
        """Return what was committed since the last call."""
        seen, self.committed = self.committed, set()
        return seen
