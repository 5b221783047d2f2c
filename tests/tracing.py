"""Listen to what SQLite runs and how much it reads without an index."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import apsw


@dataclass
class Trace:
    """What ran: statements with their bindings, and the rows each read without an index."""

    ran: list[tuple[str, Any]] = field(default_factory=list)
    scanned: list[tuple[int, str]] = field(default_factory=list)

    def listen(self, connection: apsw.Connection) -> None:
        """Note everything that a connection runs from now on."""

        def before(cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
            self.ran.append((sql, bindings))
            return True

        def after(event: dict[str, Any]) -> None:
            steps = event["stmt_status"]["SQLITE_STMTSTATUS_FULLSCAN_STEP"]
            self.scanned.append((steps, event["sql"]))

        connection.exec_trace = before
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, after)
