"""The shape of the code: layers, sizes, exports, and what importing houkai costs."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

import houkai
from houkai import options
from houkai.search.ranking import Ranking
from houkai.storage.eligible import Filter
from tests.support import ROOT, run

PACKAGE = ROOT / "houkai"
SOURCES = sorted(PACKAGE.rglob("*.py"))
ALL_SOURCES = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]
FILE_LINES, FUNCTION_LINES = 300, 40

LAYERS: dict[str, int] = {
    **dict.fromkeys(
        [
            "errors",
            "limits",
            "vocabulary",
            "clock",
            "text",
            "model",
            "hits",
            "rules",
            "time_rules",
            "params",
            "options",
            "settings",
            "ids",
            "notes",
            "packing",
            "evaluation",
            "graph",
            "stopwords",
            "conflict_rules",
        ],
        0,
    ),
    **dict.fromkeys(["storage", "embed"], 1),
    "search": 2,
    "handle": 3,
    "ops": 4,
    **dict.fromkeys(["store", "aio"], 5),
    **dict.fromkeys(
        ["doors", "cli", "render", "tables", "demo", "testing", "__init__", "__main__"], 6
    ),
}
"""Which layer a module or package belongs to; a new one gets its line here."""
STRANGERS = [("storage", "embed"), ("doors", "cli")]
"""Pairs of one layer that must not know each other."""
HEAVY = {"numpy", "onnxruntime", "tokenizers", "mcp", "pydantic", "rich", "starlette", "uvicorn",
         "huggingface_hub", "textual", "sqlite_vec"}  # fmt: skip
AT_HOME = {"search": {"numpy"}, "ops/ranked.py": {"numpy"}, "ops/entries.py": {"numpy"},
           "doors": {"mcp", "pydantic", "starlette", "uvicorn"},
           "cli": {"rich"}}  # fmt: skip
"""Where a heavy package may be imported at module level: in what is itself imported late."""


def home_of(path: Path) -> str:
    """Return the module or package of houkai that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute module) of every import, those inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"line {node.lineno}: write imports in full"
            base = node.module or ""
            yield node.lineno, base
            if base == "houkai":
                yield from ((node.lineno, f"houkai.{alias.name}") for alias in node.names)


def at_module_level(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the imports that run when the module is imported."""
    waiting: list[ast.stmt] = list(tree.body)
    for node in waiting:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(ast.Module([node], []))
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.ClassDef):
            waiting += [child for child in ast.walk(node) if child in getattr(node, "body", [])]


def parsed(path: Path) -> ast.Module:
    """Return a file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def lines_of(offences: list[str]) -> str:
    """Return offences one a line, for the message of a failed assertion."""
    return "\n" + "\n".join(offences)


def test_every_module_has_a_layer() -> None:
    """A module outside the table would escape every rule below."""
    unknown = sorted({home_of(path) for path in SOURCES} - set(LAYERS))
    assert not unknown, f"give these a layer in LAYERS: {unknown}"


def test_imports_only_point_down() -> None:
    """A lower layer that imports a higher one is a cycle waiting to happen."""
    offences = []
    for path in SOURCES:
        home = home_of(path)
        for line, name in imports(parsed(path)):
            parts = name.split(".")
            if parts[0] != "houkai" or len(parts) < 2 or parts[1] not in LAYERS:
                continue
            other = parts[1]
            strangers = (home, other) in STRANGERS or (other, home) in STRANGERS
            if LAYERS[other] > LAYERS[home] or strangers:
                offences.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not offences, lines_of(offences)


def test_surfaces_do_not_reach_into_storage() -> None:
    """A door that knows tables would bypass the journal and break with the schema."""
    offences = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in SOURCES
        if home_of(path) in ("doors", "cli", "render", "tables", "demo")
        for line, name in imports(parsed(path))
        if name.split(".")[:2] in (["houkai", "storage"], ["houkai", "search"]) or name == "apsw"
    ]
    assert not offences, lines_of(offences)


def allowed_in(path: Path) -> set[str]:
    """Return the heavy packages that a file may import at module level."""
    own = AT_HOME.get(path.relative_to(PACKAGE).as_posix(), set())
    return own | AT_HOME.get(home_of(path), set())


def test_heavy_packages_are_imported_late() -> None:
    """One import of numpy at the top of a core file costs every command 0.1 s."""
    offences = [
        f"{path.relative_to(ROOT)}:{line} imports {name} at module level"
        for path in SOURCES
        for line, name in at_module_level(parsed(path))
        if name.split(".")[0] in HEAVY - allowed_in(path)
    ]
    assert not offences, lines_of(offences)


def test_files_are_short() -> None:
    """A file beyond the limit has more than one duty."""
    offences = [
        f"{path.relative_to(ROOT)} has {count} lines, {FILE_LINES} are allowed"
        for path in ALL_SOURCES
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > FILE_LINES
    ]
    assert not offences, lines_of(offences)


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines a function has below its signature."""
    return (node.end_lineno or 0) - node.body[0].lineno + 1


def test_functions_are_short() -> None:
    """A function beyond the limit cannot be read in one look."""
    offences = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name} has {count} lines below its signature,"
        f" {FUNCTION_LINES} are allowed"
        for path in ALL_SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (count := length(node)) > FUNCTION_LINES
    ]
    assert not offences, lines_of(offences)


def test_no_comment_banners() -> None:
    """A banner marks a place where a file should have been two."""
    banner = re.compile(r"^\s*#\s*([-=#*~_]{3,}|[-=#*~─━]{2}.*[-=#*~─━]{2}\s*$)")
    offences = [
        f"{path.relative_to(ROOT)}:{number} {line.strip()}"
        for path in ALL_SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if banner.match(line)
    ]
    assert not offences, lines_of(offences)


def kind_then_name(name: str) -> tuple[int, str]:
    """Sort constants before classes before functions, as ruff does."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_all_is_sorted_and_whole() -> None:
    """A name that is exported but not listed is an accident, and the other way round."""
    assert houkai.__all__ == sorted(houkai.__all__, key=kind_then_name)
    public = {
        name
        for name in dir(houkai)
        if not name.startswith("_")
        and name != "annotations"
        and not isinstance(getattr(houkai, name), ModuleType)
    }
    assert public == set(houkai.__all__)


def test_every_error_and_record_is_exported() -> None:
    """A caller must be able to name what is raised and returned without private imports."""
    for module in (houkai.errors, houkai.model):
        own = {
            name
            for name, thing in vars(module).items()
            if isinstance(thing, type) and thing.__module__ == module.__name__
        }
        assert own - set(houkai.__all__) == set()


def test_listing_imports_nothing_heavy(path: Path) -> None:
    """A short-lived command that only lists must not pay for models, schemas or numbers."""
    code = """
import sys
from houkai import MemoryStore
with MemoryStore(sys.argv[1]) as store:
    assert store.list_recent() == []
    assert store.count() == 0 and store.journal() == []
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
    loaded = set(run(code, str(path)).split())
    assert loaded & HEAVY == set()
    assert "apsw" in loaded


def test_parameter_groups_are_the_filters_and_rankings() -> None:
    """A filter that recall knows and the doors do not would drift apart unseen."""
    filters = set(get_type_hints(options.FilterOptions))
    derived = {"now", "known_by"}
    assert filters == {field.name for field in dataclasses.fields(Filter)} - derived
    ranking = set(get_type_hints(options.RankingOptions))
    assert ranking == {field.name for field in dataclasses.fields(Ranking)}
    core = set(get_type_hints(options.CoreFilter))
    assert set(get_type_hints(options.RecallOptions)) == ranking | (filters - core) | {
        "as_of",
        "now",
    }


def test_every_test_says_what_would_break() -> None:
    """A test without its sentence is deleted by the first who finds it in the way."""
    silent = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in ALL_SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and not ast.get_docstring(node)
    ]
    assert not silent, lines_of(silent)
