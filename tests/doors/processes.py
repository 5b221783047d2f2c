"""Servers in processes of their own, and what they write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from mcp.client.stdio import StdioServerParameters

from houkai import MemoryStore
from houkai.testing import HashingEmbedder
from tests.support import environment

MAIN = "import sys; from houkai.doors.mcp_server import main; sys.exit(main(sys.argv[1:]))"
HASHING = f"""
from houkai import embed
from houkai.testing import HashingEmbedder
embed.default = lambda: HashingEmbedder(64)
{MAIN}
"""
"""The server with an embedder that needs no model."""
HELLO: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": "hello",
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]


def call(id: int | str, tool: str, **given: Any) -> dict[str, Any]:
    """Return the request that calls a tool."""
    params = {"name": tool, "arguments": given}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def lines(*messages: dict[str, Any]) -> bytes:
    """Return messages as a client writes them."""
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def answers(out: bytes) -> dict[Any, dict[str, Any]]:
    """Return the answers by id; every byte must belong to one."""
    assert out == b"" or out.endswith(b"\n"), out[-200:]
    found = [json.loads(line) for line in out.splitlines()]
    assert all(one["jsonrpc"] == "2.0" and ("result" in one) != ("error" in one) for one in found)
    return {one["id"]: one for one in found}


def launch(
    *arguments: str | Path, code: str = HASHING, **variables: str
) -> subprocess.Popen[bytes]:
    """Start a server."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def serve(
    asked: bytes, *arguments: str | Path, code: str = HASHING
) -> tuple[dict[Any, dict[str, Any]], str, int]:
    """Ask a server everything at once and hang up; return answers, stderr and exit status."""
    process = launch(*arguments, code=code)
    out, complaint = process.communicate(asked, timeout=120)
    return answers(out), complaint.decode(), process.returncode


def ask(process: subprocess.Popen[bytes], *messages: dict[str, Any]) -> dict[str, Any]:
    """Send messages, the last of them a request, and return the next answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(lines(*messages))
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def parameters(db: Path, code: str = HASHING, **variables: str) -> StdioServerParameters:
    """Return how the SDK's client starts a server."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-c", code, "--db", str(db)],
        env=environment(**variables),
    )


def alone(path: Path) -> None:
    """Require that nothing lies beside a memory file."""
    assert [file.name for file in path.parent.iterdir() if file.is_file()] == [path.name]


def texts(path: Path) -> list[str]:
    """Return what a file holds, as the library in this process reads it."""
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
        return sorted(memory.text for memory in store.list_recent(None))
