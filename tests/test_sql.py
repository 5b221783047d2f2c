"""Every SQL statement fits the schema, and none searches a word index once a row."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import apsw.ext
import pytest

from houkai import MemoryStore
from houkai.storage import connection as sqlite
from houkai.storage import walks
from tests.support import ROOT

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
    ("search.lexical", "inside"): "and +rowid in (select value from carray(:among))",
    ("ops.undoing", "' and '.join(parts)"): "o.seq > 0",
    ("ops.health", "scope"): "(select pk from collection where name = ?)",
    ("search.past", "live"): "m.operation <= :known",
    ("search.past", "replaced"): "m.operation <= :known and m.until > :known",
    ("search.past", "table"): "past",
    ("search.pool", "table"): "past",
    ("search.arrays", "sql"): "select pk as number from memory",
    ("search.facts", "rest"): "memory m",
    ("search.past", "then"): "m.collection = 1",
    ("storage.memories", "rest"): "where m.pk > 0",
    ("storage.walks", "sql"): " union all ".join(walks._ARMS["both"]),
    ("search.past", "sql"): "m.collection = 1 and m.until > 5",
    ("*", "sql"): "m.pk > 0",
}
"""What stands in a statement for a piece that is only known when it runs."""
RECORDS = """select m.pk from memory m join collection c on c.pk = m.collection
             left join touch t on t.id = m.id """
"""What `memories.select` puts before the rest of a statement."""
NUMBERS = "select number from ("
"""What stands before a statement of which `arrays.numbers` makes a subquery."""
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
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "numbers":
            yield (
                node.lineno,
                ast.JoinedStr([ast.Constant(NUMBERS), *_pieces(node.args[1]), ast.Constant(")")]),
            )
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
    return sqlite.connect(sqlite.uri(file_store.db.path))  # type: ignore[arg-type]


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
    "sql", [one for _, one in STATEMENTS if re.search("_fts .*match", one, re.S)]
)
def test_a_match_is_searched_once(sql: str, migrated: apsw.Connection) -> None:
    """Joined the other way round, the index is searched for every row: seconds for milliseconds."""
    unbound = re.sub(r"\?\d*|:\w+", "null", sql)
    details = [row[-1] for row in migrated.execute(f"explain query plan {unbound}")]
    assert not [detail for detail in details if PROBED.search(str(detail))]
    migrated.close()
