"""Serve MCP over two pipes, answering everything that was asked before the client hung up.

The SDK's stdio transport guards stdout only while it serves, cancels what still runs when stdin
ends, leaves a line it cannot parse unanswered, and reads in a thread that delays the exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, NamedTuple

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import SessionMessage

from houkai.doors.pipes import Pipes, abandoned, lines, write

Requests = MemoryObjectSendStream[SessionMessage | Exception]
Answers = MemoryObjectSendStream[SessionMessage]

LAST_CALLS_S: Final = 30.0
"""How long calls may go on after the client has hung up."""
WATCH_S: Final = 5.0
"""How often to look for a client that died while another process holds its end of stdin open."""


class Refused(NamedTuple):
    """A line that is no message; an error that the client sends is one, and is not answered."""

    answer: types.JSONRPCError


async def serve(server: Server[Any], pipes: Pipes) -> None:
    """Serve one client until it hangs up and every request is answered."""
    unanswered: set[types.RequestId] = set()
    requests, inbox = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, outbox = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        gone = tasks.cancel_scope.cancel  # even then a call that runs is finished
        tasks.start_soon(_receive, pipes.source, requests, answers.clone(), unanswered)
        tasks.start_soon(_send, pipes.sink, outbox, unanswered, gone)
        async with anyio.create_task_group() as meanwhile:
            meanwhile.start_soon(_watch, pipes.sink, gone)
            await server.run(inbox, answers, server.create_initialization_options())
            meanwhile.cancel_scope.cancel()


async def _watch(sink: int, gone: Callable[[], None]) -> None:
    while not abandoned(sink):
        await anyio.sleep(WATCH_S)
    gone()


async def _receive(
    source: int, requests: Requests, answers: Answers, unanswered: set[types.RequestId]
) -> None:
    """Hand the client's messages to the server; at their end wait until all are answered."""
    async with requests, answers:
        async for line in _lines(source):
            message = parse(line)
            match message:
                case Refused():
                    await answers.send(SessionMessage(message.answer))
                    continue
                case types.JSONRPCRequest():
                    unanswered.add(message.id)
                case types.JSONRPCNotification(
                    method="notifications/cancelled", params={"requestId": str() | int() as id}
                ):
                    unanswered.discard(id)
            await requests.send(SessionMessage(message))
        with anyio.move_on_after(LAST_CALLS_S):
            while unanswered:
                await anyio.sleep(0.01)


async def _send(
    sink: int,
    outbox: MemoryObjectReceiveStream[SessionMessage],
    unanswered: set[types.RequestId],
    gone: Callable[[], None],
) -> None:
    async with outbox:
        async for item in outbox:
            message = item.message
            try:
                await anyio.to_thread.run_sync(write, sink, dump(message))
            except OSError:
                gone()
                return
            if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
                unanswered.discard("" if message.id is None else message.id)


async def _lines(source: int) -> AsyncIterator[bytes]:
    """Yield the client's lines, read by a thread that does not hold up the end of the process."""
    loop = asyncio.get_running_loop()
    read: asyncio.Queue[bytes | None] = asyncio.Queue(1)

    def hand_over(line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(read.put(line), loop).result()

    def pump() -> None:
        # The loop may be gone by now, and a pipe that fails is one that has ended.
        with contextlib.suppress(RuntimeError, asyncio.CancelledError):
            with contextlib.suppress(OSError):
                for line in lines(source):
                    hand_over(line)
            hand_over(None)

    threading.Thread(target=pump, name="houkai-stdin", daemon=True).start()
    while (line := await read.get()) is not None:
        if line.strip():
            yield line


def parse(line: bytes) -> types.JSONRPCMessage | Refused:
    """Return the message of a line, or what to answer a line that holds none."""
    text = line.decode("utf-8", "replace")
    with contextlib.suppress(ValueError):
        return types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    try:
        # Unlike the SDK's parser, Python's takes half of a surrogate pair, which a client sends
        # that cuts a text in two; the operation then refuses it in words.
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _refusal(None, types.PARSE_ERROR, "This line is not JSON.")
    with contextlib.suppress(ValueError):
        return types.jsonrpc_message_adapter.validate_python(found, by_name=False)
    id = found.get("id") if isinstance(found, dict) else None
    known = id if isinstance(id, str | int) and not isinstance(id, bool) else None
    return _refusal(known, types.INVALID_REQUEST, "This is not a JSON-RPC message.")


def _refusal(id: types.RequestId | None, code: int, sentence: str) -> Refused:
    error = types.ErrorData(code=code, message=sentence)
    return Refused(types.JSONRPCError(jsonrpc="2.0", id=id, error=error))


def dump(message: types.JSONRPCMessage) -> bytes:
    """Return a message as one line."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except ValueError:  # half of a surrogate pair, which only an escape can carry
        text = json.dumps(message.model_dump(by_alias=True, exclude_unset=True))
    return text.encode("utf-8") + b"\n"
