"""Sessions with a server in this process, by the SDK's own client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client

from houkai import MemoryStore
from houkai.doors.tools import server_of

MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])
"""The handshake that clients of today use, and the protocol of 2026-07-28."""

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
