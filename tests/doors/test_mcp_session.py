"""An agent's calls, by the SDK's own client, inside one process."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from houkai import MemoryStore
from houkai.doors import tools
from houkai.doors.tools import server_of
from houkai.testing import HashingEmbedder
from tests.conftest import Opener
from tests.doors.sessions import MODES, ask, said, talk

SECRET = "the text of a memory"


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
        with pytest.raises(MCPError, match=r"Unknown tool: fly$"):
            await client.call_tool("fly", {})

    talk(store, session)


def test_a_tool_that_is_not_offered_says_how_it_is(store: MemoryStore) -> None:
    """Who reads of nuke and is told it is unknown would take the documentation to be wrong."""

    async def session(client: Client) -> None:
        with pytest.raises(MCPError, match="Unknown tool: nuke; a server started with --tools all"):
            await client.call_tool("nuke", {})

    talk(store, session, everything=False)


def test_an_undo_that_cannot_be_names_the_rows(store: MemoryStore) -> None:
    """An agent can only undo the later changes first if it is told which they are."""
    memory = store.remember("x")
    store.edit(memory.id, text="y")

    async def session(client: Client) -> Any:
        return await client.call_tool("undo", {"operation": 1})

    told = talk(store, session).structured_content
    assert told["code"] == "Diverged"
    assert told["rows"] == [f"memory {memory.id}"]


def test_a_refused_memory_tells_what_it_conflicts_with(store: MemoryStore) -> None:
    """An agent can only decide between two memories if it is told of the other one."""
    stored = store.remember("Anna likes coffee in the morning")
    given = {"text": "Anna likes coffee in the morning", "on_conflict": "raise"}

    async def session(client: Client) -> Any:
        return await client.call_tool("remember", given)

    result = talk(store, session)
    told = result.structured_content
    assert result.is_error
    assert told["code"] == "ConflictError"
    (conflict,) = told["conflicts"]
    assert (conflict["kind"], conflict["other_id"]) == ("duplicate", stored.id)
    assert conflict["other_text"] == stored.text
    assert store.count() == 1


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
