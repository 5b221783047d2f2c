"""Every SQL statement in the code fits the schema, and the hot ones use an index."""

from __future__ import annotations

import ast
import importlib
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import apsw.ext
import pytest

from houkai import MemoryStore
from houkai.storage import connection as sqlite
from houkai.storage import walks
from houkai.testing import HashingEmbedder
from tests.conftest import Opener
from tests.support import ROOT, Clock

SOURCES = sorted((ROOT / "houkai").rglob("*.py"))
COMPOSED = {
    ("storage.history", "sql"): "o.seq > 0 order by o.seq desc",
    ("storage.rows", "table"): "tag",
    ("storage.rows", "sets"): "text = ?, ",
    ("storage.fulltext", "index"): "memory_fts",
    ("storage.derived", "index"): "memory_fts",
    ("storage.derived", "', '.join(row)"): "id, text",
    ("storage.derived", "', '.join('?' * len(row))"): "?, ?",
    ("storage.shape", "kind"): "index",
    ("storage.shape", "name"): "memory_by_text",
    ("storage.shape", "table"): "past_fts",
    ("storage.vectors", "bits"): "64",
    ("storage.reembedding", "source.table"): "memory",
    ("storage.reembedding", "source.key"): "pk",
    ("storage.reembedding", "source.text"): "text",
    ("storage.connection", "name"): "foreign_keys",
    ("storage.connection", "wanted"): "on",
    ("search.sketches", "inside"): "and collection = :scope",
    ("ops.undoing", "' and '.join(parts)"): "o.seq > 0",
    ("ops.health", "scope"): "(select pk from collection where name = ?)",
    ("search.past", "live"): "m.operation <= :known",
    ("search.past", "replaced"): "m.operation <= :known and m.until > :known",
    ("search.past", "_TEXTS.format(t='m')"): "m.text, m.words, m.names, m.dates",
    ("search.past", "table"): "past",
    ("search.pool", "table"): "past",
    ("storage.memories", "rest"): "where m.pk > 0",
    ("storage.walks", "sql"): " union all ".join(walks._ARMS["both"]),
    ("search.past", "sql"): "m.collection = 1 and m.until > 5",
    ("*", "sql"): "m.pk > 0",
}
"""What stands in a statement for a piece that is only known when it runs."""
RECORDS = """select m.pk from memory m join collection c on c.pk = m.collection
             left join touch t on t.id = m.id """
"""What `memories.select` puts before the rest of a statement."""
UNKNOWN = "no line in COMPOSED for"
ELSEWHERE = {
    ("storage.migrate", "sql"),
    ("storage.migrate", "f'pragma user_version = {head()}'"),
    ("storage.shape", "step"),
    ("storage.shape", "sql"),
    ("ops.salvage", "sql"),
}
"""Statements that are no literals: the schema itself, which every test here runs."""


def module_name(path: Path) -> str:
    """Return a file's module as COMPOSED names it."""
    return ".".join(path.relative_to(ROOT / "houkai").with_suffix("").parts)


def executed(path: Path) -> Iterator[tuple[int, ast.expr]]:
    """Yield (line, first argument) of every call of execute and executemany."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("execute", "executemany")
        ):
            yield node.lineno, node.args[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "memories.select":
            yield node.lineno, ast.JoinedStr([ast.Constant(RECORDS), *_pieces(node.args[1])])


def _pieces(expression: ast.expr) -> list[ast.expr]:
    """Return the parts of a literal or composed string."""
    return list(expression.values) if isinstance(expression, ast.JoinedStr) else [expression]


def statement(module: str, expression: ast.expr) -> str | None:
    """Return the SQL that an expression stands for, its unknown pieces filled in."""
    if isinstance(expression, ast.Constant):
        return str(expression.value)
    if isinstance(expression, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else piece(module, part.value)  # type: ignore[attr-defined]
            for part in expression.values
        )
    source = ast.unparse(expression)
    return None if (module, source) in ELSEWHERE else piece(module, expression)


def piece(module: str, expression: ast.expr) -> str:
    """Return what a module's own names say, or what COMPOSED gives for a local one."""
    source = ast.unparse(expression)
    names = vars(importlib.import_module(f"houkai.{module}"))
    for key in ((module, source), ("*", source)):
        if key in COMPOSED:
            return COMPOSED[key]
    try:
        return str(eval(source, names))
    except NameError:
        return f"{UNKNOWN} {source}"


STATEMENTS = sorted(
    {
        (f"{module_name(path)}:{line}", sql)
        for path in SOURCES
        for line, expression in executed(path)
        if (sql := statement(module_name(path), expression)) is not None
    }
)


@pytest.fixture
def migrated(file_store: MemoryStore) -> apsw.Connection:
    """Return a connection to a file of the present schema that may be written."""
    connection = sqlite.connect(sqlite.uri(file_store.db.path))  # type: ignore[arg-type]
    return connection


def test_statements_are_found() -> None:
    """A walk that finds nothing would pass everything below."""
    assert len(STATEMENTS) > 60
    assert {"storage", "search", "ops"} <= {where.split(".")[0] for where, _ in STATEMENTS}


@pytest.mark.parametrize(("where", "sql"), STATEMENTS, ids=[where for where, _ in STATEMENTS])
def test_statement_fits_the_schema(where: str, sql: str, migrated: apsw.Connection) -> None:
    """A misspelt column is found here, not by the one user who takes that path."""
    assert UNKNOWN not in sql, sql
    made = re.match(r"create virtual table (\w+)", sql)
    if made:
        migrated.execute(f"drop table if exists {made[1]}")
    parts = [part for part in sql.split(";") if part.strip()] if "job" in sql else [sql]
    for part in parts:
        apsw.ext.query_info(migrated, part)
    migrated.close()


PROBED = re.compile(r"VIRTUAL TABLE INDEX \d+:=.*M")


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(sql, id=where)
        for where, sql in STATEMENTS
        if re.search("_fts .*match", sql, re.S)
    ],
)
def test_a_match_is_searched_once(sql: str, migrated: apsw.Connection) -> None:
    """Joined the other way round, the index is searched for every row: seconds for milliseconds."""
    unbound = re.sub(r"\?\d*|:\w+", "null", sql)
    details = [row[-1] for row in migrated.execute(f"explain query plan {unbound}")]
    assert not [detail for detail in details if PROBED.search(str(detail))]
    migrated.close()


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


def test_a_scan_would_be_seen(migrated: apsw.Connection) -> None:
    """The patterns above must know what a scan looks like."""
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
