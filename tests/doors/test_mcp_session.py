"""An agent's session with the server, by the SDK's own client, inside one process."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

import houkai
from houkai import MemoryStore
from houkai.doors import tools
from houkai.doors.tools import INSTRUCTIONS, answer, server_of
from houkai.ops.table import OPERATIONS, Operation
from houkai.testing import HashingEmbedder
from tests.conftest import Opener

CORE = {
    "remember", "remember_many", "recall", "recall_pack", "auto_context", "get", "edit", "forget",
    "link", "neighbors", "supersede", "find_conflicts", "history", "undo", "list_recent", "stats",
}  # fmt: skip
MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])
"""The handshake that clients of today use, and the protocol of 2026-07-28."""

SECRET = "the text of a memory"

Session = Callable[[Client], Awaitable[Any]]


def talk(store: MemoryStore, session: Session, mode: str = "auto", everything: bool = True) -> Any:
    """Run a session with a store's server and return what it returns."""

    async def main() -> Any:
        async with Client(server_of(lambda: store, everything), mode=mode) as client:
            return await session(client)

    return anyio.run(main)


async def ask(client: Client, tool: str, **given: Any) -> dict[str, Any]:
    """Call a tool that is to succeed, and return its structured answer."""
    result = await client.call_tool(tool, given)
    assert not result.is_error, result.content
    content: dict[str, Any] = result.structured_content
    return content


def said(result: Any) -> str:
    """Return the one text of a result."""
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@MODES
def test_a_session(store: MemoryStore, mode: str) -> None:
    """What an agent does all day must work in the protocol of today and of tomorrow."""

    async def session(client: Client) -> None:
        made = await ask(client, "remember", text="Anna lands at nine", tags=["travel"])
        found = await ask(client, "recall", query="when does Anna land")
        assert [hit["id"] for hit in found["result"]] == [made["id"]]
        assert found["result"][0]["trust"] == "trusted"
        await ask(client, "edit", memory_id=made["id"], text="Anna lands at ten")
        undone = await ask(client, "undo")
        assert undone["op"] == "edit"
        entries = (await ask(client, "history", memory_id=made["id"]))["result"]
        assert [entry["op"] for entry in entries] == ["remember", "edit", "undo"]
        assert entries[1]["undone_by"] == entries[2]["operation"] == undone["operation"]

    talk(store, session, mode)
    assert [memory.text for memory in store.list_recent()] == ["Anna lands at nine"]


@MODES
def test_it_introduces_itself(store: MemoryStore, mode: str) -> None:
    """A client shows name and version, and cuts instructions after two kilobytes."""

    async def session(client: Client) -> Any:
        return client.server_info, client.instructions

    info, instructions = talk(store, session, mode)
    assert (info.name, info.version) == ("houkai", houkai.__version__)
    assert instructions == INSTRUCTIONS
    assert len(INSTRUCTIONS.encode()) < 2_048


def test_instructions_name_only_tools_that_are_offered() -> None:
    """An agent that is told to call a missing tool loses a turn on it."""
    core = {operation.name for operation in OPERATIONS if operation.core}
    quoted = INSTRUCTIONS.split("`")[1::2]
    assert quoted
    assert set(quoted) - {"warnings"} <= core


def test_tools_of_the_core_profile(store: MemoryStore) -> None:
    """Every further tool costs every conversation; the rest comes with --tools all."""

    async def session(client: Client) -> Any:
        return [tool.name for tool in (await client.list_tools()).tools]

    few, many = talk(store, session, everything=False), talk(store, session)
    built = {operation.name for operation in OPERATIONS}
    assert set(few) == CORE & built
    assert set(many) == built
    assert len(many) == len(set(many))


def test_the_list_is_small(store: MemoryStore) -> None:
    """The list of tools is in every context; AI-Houkai's takes 37 kilobytes."""

    async def session(client: Client) -> Any:
        return await client.list_tools()

    listed = talk(store, session, everything=False)
    assert len(listed.model_dump_json(by_alias=True, exclude_none=True)) < 32_000
    assert all(len(tool.description.encode()) < 2_048 for tool in listed.tools)


def test_annotations_follow_the_effect(store: MemoryStore) -> None:
    """Clients run a read without asking and warn before a deletion, by these hints alone."""

    async def session(client: Client) -> Any:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    listed = talk(store, session)
    for operation in OPERATIONS:
        hints = listed[operation.name].annotations
        assert hints.read_only_hint is (operation.effect == "read")
        assert hints.destructive_hint is (operation.effect == "destroy")
        assert hints.open_world_hint is False
        assert listed[operation.name].title
        assert listed[operation.name].output_schema["type"] == "object"
    assert listed["forget"].annotations.destructive_hint is True
    assert listed["edit"].annotations.idempotent_hint is True
    assert listed["remember"].annotations.idempotent_hint is False


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_reads_change_nothing(operation: Operation, store: MemoryStore) -> None:
    """A tool that says it only reads, but writes, is run without asking."""
    if operation.effect != "read":
        return
    memory = store.remember("Anna lands at nine")
    before = len(store.journal(None))
    given = {"memory_id": memory.id, "query": "Anna", "task": "Anna", "ref": 1, "ts": 0, "t1": 0}
    given |= {"memory_ids": [memory.id], "from_id": memory.id, "to_id": memory.id, "cases": []}
    known = tools.tool(operation, True).input_schema["required"]
    result = answer(operation, lambda: store, {name: given[name] for name in known})
    assert result.structured_content.get("code") in (None, "NotFound")
    assert len(store.journal(None)) == before


@MODES
def test_text_and_structure_say_the_same(store: MemoryStore, mode: str) -> None:
    """Some clients show the model the text, others the structure."""

    async def session(client: Client) -> Any:
        await ask(client, "remember", text="Grüße, 東京 — “quoted”")
        return await client.call_tool("recall", {"query": "東京"})

    result = talk(store, session, mode)
    assert json.loads(said(result)) == result.structured_content
    assert "東京" in said(result)


@MODES
def test_errors_are_results(store: MemoryStore, mode: str) -> None:
    """A protocol error never reaches the model; a result with is_error does, with a hint."""

    async def session(client: Client) -> Any:
        return await client.call_tool("edit", {"memory_id": "nobody", "text": "x"})

    result = talk(store, session, mode)
    told = result.structured_content
    assert result.is_error
    assert told["code"] == "NotFound"
    assert said(result) == f"NotFound: {told['message']} {told['hint']}"
    assert told["hint"]


@MODES
def test_unknown_argument_is_an_error(store: MemoryStore, mode: str) -> None:
    """The SDK's own tools ignore a mistyped argument."""

    async def session(client: Client) -> Any:
        return await client.call_tool("recall", {"query": "x", "limit": 3})

    result = talk(store, session, mode)
    assert result.is_error
    assert "has no parameter 'limit'" in said(result)


def test_unknown_tool_is_a_protocol_error(store: MemoryStore) -> None:
    """A call of nothing is the client's mistake, not a tool's."""

    async def session(client: Client) -> None:
        with pytest.raises(MCPError, match="Unknown tool: fly"):
            await client.call_tool("fly", {})

    talk(store, session)


def test_an_undo_that_cannot_be_names_the_rows(store: MemoryStore) -> None:
    """An agent can only undo the later changes first if it is told which they are."""
    memory = store.remember("x")
    store.edit(memory.id, text="y")

    async def session(client: Client) -> Any:
        return await client.call_tool("undo", {"operation": 1})

    told = talk(store, session).structured_content
    assert told["code"] == "Diverged"
    assert told["rows"] == [f"memory {memory.id}"]


def test_a_bug_tells_nothing(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug's words may hold a memory's text: neither the client nor the log may see them."""

    def explode(*_: Any, **__: Any) -> None:
        raise ValueError(SECRET)

    monkeypatch.setattr(tools.wire, "call", explode)

    async def session(client: Client) -> Any:
        return await client.call_tool("stats", {})

    with caplog.at_level(logging.DEBUG, "houkai"):
        result = talk(store, session)
    assert result.is_error
    assert result.structured_content["code"] == "InternalError"
    logged = caplog.text
    assert "ValueError" in logged
    assert "in explode" in logged
    assert SECRET not in logged + said(result)


def test_the_log_repeats_no_memory() -> None:
    """A traceback of any logger ends in the exception's words, which may be a memory."""
    try:
        try:
            raise KeyError("the secret cause")
        except KeyError as cause:
            raise ValueError("the secret text") from cause
    except ValueError as error:
        info = (type(error), error, error.__traceback__)
    shown = tools.Discreet("%(message)s").format(
        logging.LogRecord("mcp", logging.ERROR, "", 0, "it failed", (), info)
    )
    assert "KeyError" in shown
    assert "ValueError" in shown
    assert SECRET not in shown


def test_warnings_come_with_the_result(open_store: Opener) -> None:
    """An agent that is not told would take a search by words alone for the best there is."""
    with open_store() as store:
        store.remember("Anna lands at nine")
    other = open_store(embedder=HashingEmbedder(32))

    async def session(client: Client) -> Any:
        return await ask(client, "recall", query="Anna"), await ask(client, "stats")

    found, counted = talk(other, session)
    assert [hit["text"] for hit in found["result"]] == ["Anna lands at nine"]
    assert found["warnings"][0].startswith("Recall by words only: ")
    assert "warnings" not in counted


def test_calls_run_at_once(store: MemoryStore) -> None:
    """One slow call, such as a first embedding, must not hold up the others."""
    both = threading.Barrier(2, timeout=20)

    class Slow(HashingEmbedder):
        def passages(self, texts: Any) -> Any:
            both.wait()
            return super().passages(texts)

    slow = MemoryStore(":memory:", embedder=Slow(64))

    async def session(client: Client) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: ask(client, "remember", text="one"))
            group.start_soon(lambda: ask(client, "remember", text="two"))

    talk(slow, session)
    assert slow.count() == 2
    slow.close()


def test_many_calls_in_one_session_lose_nothing(file_store: MemoryStore) -> None:
    """The reference memory server acknowledges twenty pipelined writes and keeps one."""

    async def session(client: Client) -> list[str]:
        ids: list[str] = []

        async def one(number: int) -> None:
            ids.append((await ask(client, "remember", text=f"fact {number}"))["id"])

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(one, number)
        return ids

    ids = talk(file_store, session)
    assert {memory.id for memory in file_store.list_recent(None)} == set(ids)
    assert len(set(ids)) == 100


def test_nothing_is_opened_before_the_first_call() -> None:
    """A client that only lists tools must not wait for a model or meet a broken file."""

    def refuse() -> MemoryStore:
        raise AssertionError("opened too early")

    async def main() -> None:
        async with Client(server_of(refuse)) as client:
            assert (await client.list_tools()).tools

    anyio.run(main)
