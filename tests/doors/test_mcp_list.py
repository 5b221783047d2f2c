"""What a server tells a client before the first call."""

from __future__ import annotations

from typing import Any

import pytest
from mcp.client import Client

import houkai
from houkai import MemoryStore
from houkai.doors import tools
from houkai.doors.tools import INSTRUCTIONS, answer
from houkai.ops.table import OPERATIONS, Operation
from tests.doors.sessions import MODES, talk

CORE = {
    "remember", "remember_many", "recall", "recall_pack", "auto_context", "get", "edit", "forget",
    "link", "neighbors", "supersede", "find_conflicts", "history", "undo", "list_recent", "stats",
}  # fmt: skip


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
