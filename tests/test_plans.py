"""What every call pays for: queries that stay quick in a file of a million rows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest

from houkai import MemoryStore
from houkai.storage import connection as sqlite
from houkai.testing import HashingEmbedder
from tests.conftest import Opener
from tests.support import Clock


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


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch) -> Trace:
    """Return what fills with every statement run on connections opened from now on."""
    seen = Trace()
    connect = sqlite.connect

    def listening(*args: Any, **more: Any) -> apsw.Connection:
        connection = connect(*args, **more)
        seen.listen(connection)
        return connection

    monkeypatch.setattr(sqlite, "connect", listening)
    return seen


SIZE = 300
ENOUGH = 20
"""Rows that a hot query may read without an index in a file of SIZE memories and operations."""
SCAN = re.compile(r"\bSCAN (m|memory|c|p|change|o|operation|e|embedding|l|link)\b(?! USING INDEX)")
NEWEST_FIRST = re.compile(r"order by (o\.)?seq desc\s+limit")
"""Read from the end until enough is found; ENOUGH tells whether that was soon."""


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory, embedder: HashingEmbedder
) -> tuple[Path, list[str]]:
    """Return a file with an operation for each memory, and the memories' ids."""
    path = tmp_path_factory.mktemp("filled") / "memory.db"
    with MemoryStore(path, embedder=embedder, durability="normal", clock=Clock()) as store:
        made = [
            store.remember(f"note {n}", tags=[f"tag {n % 30}"], source=f"source {n % 30}").id
            for n in range(SIZE)
        ]
        for id in made[:30]:
            store.edit(id, importance=0.7)
        for _ in range(5):
            store.undo_last()
    return path, made


def hot(ids: list[str]) -> dict[str, Callable[[MemoryStore], object]]:
    """Return the calls that must stay quick in a file of a million rows."""
    return {
        "get": lambda s: s.get(ids[0]),
        "find_id": lambda s: s.find_id(ids[0][:8]),
        "list_recent": lambda s: s.list_recent(5),
        "list_recent_page": lambda s: s.list_recent(5, before=ids[9]),
        "list_by_type": lambda s: s.list_recent(5, type="semantic"),
        "list_by_source": lambda s: s.list_recent(5, source="source 1"),
        "list_by_tag": lambda s: s.list_recent(5, tag="tag 1"),
        "list_by_rare_tag": lambda s: s.list_recent(5, tag="none such"),
        "count": lambda s: s.count(),
        "find_by_content_hash": lambda s: s.find_by_content_hash("note 7"),
        "history": lambda s: s.history(ids[0]),
        "get_at": lambda s: s.get_at(ids[0], "now"),
        "journal": lambda s: s.journal(5),
        "journal_of_memory": lambda s: s.journal(5, memory_id=ids[0]),
        "journal_of_actor": lambda s: s.journal(5, actor="nobody"),
        "operation": lambda s: s.operation(1),
        "remember": lambda s: s.remember("another", source="source 1", idempotent=True),
        "edit": lambda s: s.edit(ids[2], text="note two"),
        "forget": lambda s: s.forget(ids[3]),
        "undo": lambda s: s.undo(SIZE),
        "undo_last": lambda s: s.undo_last(),
        "undo_last_of_memory": lambda s: s.undo_last(memory_id=ids[5]),
        "undo_last_of_actor": lambda s: s.undo_last(actor="nobody"),
        "redo": lambda s: s.redo(),
    }


@pytest.mark.parametrize("name", list(hot(["x"] * 10)))
def test_hot_queries_use_an_index(
    name: str, trace: Trace, filled: tuple[Path, list[str]], path: Path, open_store: Opener
) -> None:
    """A query that reads a whole table is quick in every test and slow for every old user."""
    shutil.copy(filled[0], path)
    store = open_store()
    trace.ran.clear()
    trace.scanned.clear()
    hot(filled[1])[name](store)
    plans = [(sql, bound) for sql, bound in trace.ran if is_query(sql)]
    assert plans
    read = [f"{steps} rows read by {sql}" for steps, sql in trace.scanned if steps > ENOUGH]
    with sqlite.connect(sqlite.uri(path)) as connection:
        read += [
            f"{detail} in {sql}"
            for sql, bound in plans
            for *_, detail in connection.execute(f"explain query plan {sql}", bound)
            if SCAN.search(detail) and not NEWEST_FIRST.search(sql)
        ]
    assert not read, "\n" + "\n".join(" ".join(line.split()) for line in read)


def is_query(sql: str) -> bool:
    """Say whether a statement has a plan worth looking at."""
    return sql.lstrip().lower().startswith(("select", "update", "delete", "insert", "with"))


def test_a_scan_would_be_seen(file_store: MemoryStore) -> None:
    """The patterns above must know what a scan looks like."""
    assert file_store.db.path is not None
    migrated = sqlite.connect(sqlite.uri(file_store.db.path))
    seen = Trace()
    seen.listen(migrated)
    migrated.execute("select * from memory m where trim(text) = ''").fetchall()
    plan = migrated.execute("explain query plan select * from memory m where trim(text) = ''")
    assert any(SCAN.search(detail) for *_, detail in plan)
    numbers = ", ".join(f"({n})" for n in range(ENOUGH + 2))
    migrated.execute(f"create temp table n as select column1 as n from (values {numbers})")
    migrated.execute("select * from n where n < 0").fetchall()
    assert max(steps for steps, _ in seen.scanned) > ENOUGH
    migrated.close()
