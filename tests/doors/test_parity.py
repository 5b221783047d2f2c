"""The library, the async store and the tools do the same and say the same."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from houkai import AsyncMemoryStore, HoukaiError, Memory, MemoryStore, ids
from houkai.aio import AsyncMemoryStore as Async
from houkai.doors import wire
from houkai.hits import ExplainedHit, Hit
from houkai.model import Graph, JournalEntry, Neighbor
from houkai.ops.table import OPERATIONS
from houkai.packing import PackedMemory
from houkai.testing import HashingEmbedder
from tests.doors.examples import EXAMPLES, Example, resolved
from tests.support import Clock

ROWS = {operation.name: operation for operation in OPERATIONS}
PART = {
    "state_at": "memories",
    "find_path": "path",
    "undo_since": "operations",
    "forget_many": "ids",
    "trash_many": "ids",
    "trash_restore_many": "ids",
}
"""Where a tool's answer holds what the library returns."""
NOTHING: dict[str, dict[str, Any]] = {
    "get": {"found": False, "id": "no such id"},
    "supersede": {"ok": True},
    "trash_restore": {"restored": False},
    "verify_journal": {"ok": True, "broken_at": None},
}
"""What tools answer where the library returns None."""
SAID_BY_UNDO = ("operation", "undoes")
"""What the entry of an undo and the answer, which is about what was undone, have in common."""


class Run:
    """One run through the examples on a store of its own, with ids that every run repeats."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        numbers = iter(range(10**6))
        monkeypatch.setattr(ids, "new", lambda: str(uuid.UUID(int=next(numbers) << 96, version=4)))
        self.open: dict[str, Any] = {
            "path": path,
            "embedder": HashingEmbedder(64),
            "clock": Clock(),
        }
        self.ids: list[str] = []
        self.results: list[Any] = []

    def take(self, example: Example, result: Any) -> None:
        """Keep a result, and the ids it brought."""
        self.results.append(result)
        if example.tool == "remember":
            self.ids.append(result["id"] if isinstance(result, dict) else result.id)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Run]:
    """Return a function that begins a run."""
    return lambda name: Run(tmp_path / f"{name}.db", monkeypatch)


def by_library(run: Run) -> list[Any]:
    """Run the examples as methods."""
    with MemoryStore(**run.open) as store:
        for example in EXAMPLES:
            method, given = example.library(run.ids)
            try:
                run.take(example, getattr(store, method)(**given))
            except HoukaiError as error:
                run.take(example, error)
    return run.results


async def by_async(run: Run) -> list[Any]:
    """Run the examples as coroutines."""
    async with AsyncMemoryStore(**run.open) as store:
        for example in EXAMPLES:
            method, given = example.library(run.ids)
            try:
                run.take(example, await getattr(store, method)(**given))
            except HoukaiError as error:
                run.take(example, error)
    return run.results


def by_wire(run: Run) -> list[Any]:
    """Run the examples as tools."""
    with MemoryStore(**run.open) as store:
        for example in EXAMPLES:
            try:
                given = resolved(example.given, run.ids)
                run.take(example, wire.call(ROWS[example.tool], store, given))
            except HoukaiError as error:
                run.take(example, error)
    return run.results


def plain(result: Any) -> Any:
    """Return a result of the library in JSON types."""
    match result:
        case Memory() | Graph():
            return result.to_dict()
        case Hit(memory, score) | PackedMemory(memory, score):
            return {**memory.to_dict(), "score": round(score, 4)}
        case ExplainedHit(memory, score, explain):
            return {**memory.to_dict(), "score": round(score, 4), "explain": explain}
        case Neighbor(memory, rel):
            return {**memory.to_dict(), "rel": rel}
        case JournalEntry():
            return {**vars(result), "summary": result.summary}
        case tuple() if hasattr(result, "_asdict"):
            return result._asdict()
        case list():
            return [plain(one) for one in result]
        case _ if is_dataclass(result):
            return {name: plain(value) for name, value in vars(result).items()}
        case _:
            return result


def compare(answer: Any, result: Any) -> None:
    """Require that whatever an answer and a result both name is equal, and that something is."""
    if isinstance(result, list):
        assert len(answer) == len(result)
        for one, other in zip(answer, result, strict=True):
            compare(one, other)
    elif isinstance(result, dict):
        shared = answer.keys() & result.keys()
        assert shared or answer == result
        for name in shared:
            compare(answer[name], result[name])
    else:
        assert answer == result


def test_every_tool_has_an_example() -> None:
    """A tool without an example would be compared with nothing below."""
    assert {example.tool for example in EXAMPLES} == set(ROWS)


def test_async_returns_what_the_library_returns(run: Any) -> None:
    """An offloaded operation that lost an argument would return something else."""
    expected, got = by_library(run("library")), asyncio.run(by_async(run("async")))
    for example, one, other in zip(EXAMPLES, expected, got, strict=True):
        if example.tool == "stats":
            one, other = {**one, "path": ""}, {**other, "path": ""}
        if isinstance(one, HoukaiError):
            one, other = (one.code, one.message), (other.code, other.message)
        assert one == other, example


def test_tools_answer_what_the_library_returns(run: Any) -> None:
    """A shape that takes the wrong field, or a form that drops an argument, would tell lies."""
    expected, got = by_library(run("library")), by_wire(run("wire"))
    for example, result, answer in zip(EXAMPLES, expected, got, strict=True):
        if isinstance(result, HoukaiError):
            assert wire.explain(answer) == wire.explain(result), example
        elif result is None:
            assert NOTHING[example.tool].items() <= answer.items()
        elif isinstance(result, bool | int):
            assert result in answer.values() or example.tool == "link", example
        elif example.tool in ("undo", "redo"):
            assert [answer[name] for name in SAID_BY_UNDO] == [
                getattr(result, name) for name in SAID_BY_UNDO
            ]
        elif example.tool == "stats":
            compare({**answer, "path": ""}, {**result, "path": ""})
        elif example.tool == "remember_many":
            assert answer["ids"] == [memory.id for memory in result]
        else:
            part = PART.get(example.tool, "result")
            compare(answer.get(part, answer), plain(result))


def test_answers_fit_their_output_schemas(run: Any) -> None:
    """A client that checks answers, as the SDK's does, would refuse a tool that breaks its word."""
    for example, answer in zip(EXAMPLES, by_wire(run("wire")), strict=True):
        if not isinstance(answer, HoukaiError):
            schema = wire.output_schema(ROWS[example.tool])
            jsonschema.validate(answer, schema)
            closed = {**schema, "additionalProperties": False}
            jsonschema.validate(answer, closed)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_every_row_is_a_method(operation: Any) -> None:
    """A row that only tools can call would leave library and async users behind."""
    name = operation.run.__name__
    assert getattr(MemoryStore, name) is operation.run
    assert getattr(Async, name).__wrapped__ is operation.run


def test_async_has_every_operation_of_the_library() -> None:
    """An operation added to MemoryStore alone would be missed by async programs."""
    operations = {
        name
        for name, thing in vars(MemoryStore).items()
        if getattr(thing, "__module__", "").startswith("houkai.ops.")
    }
    assert operations
    assert operations <= set(vars(Async))
