"""Compare the start of houkai-mcp with that of an MCP server that does nothing.

Both are started in turn on this interpreter; what counts is the time until `initialize` is
answered, and the CPU of a whole life: start, `initialize`, the client hangs up, exit.

    python benchmarks/mcp_start.py [--rounds N] [--limit RATIO]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

BARE = """
import anyio
from mcp.server import Server
from mcp.server.stdio import stdio_server

async def main():
    server = Server("bare")
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""
HOUKAI = "import sys; from houkai.doors.mcp_server import main; sys.exit(main())"
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "mcp_start", "version": "1"},
    },
}


class Start(NamedTuple):
    """One start: seconds until the answer, and CPU seconds of the whole life."""

    wall: float
    cpu: float


def start(code: str, home: str) -> Start:
    """Start a server, wait for its first answer, hang up, and wait for its end."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "HOME": home, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    process.stdin.flush()
    answer = json.loads(process.stdout.readline())
    wall = time.perf_counter() - began
    assert answer["result"]["serverInfo"], answer
    process.stdin.close()
    process.stdout.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    return Start(wall, used.ru_utime + used.ru_stime)


def main() -> int:
    """Print medians and ratios; exit 1 when a limit is given and exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--limit", type=float, help="the highest ratio of CPU that is accepted")
    options = parser.parse_args()
    starts: dict[str, list[Start]] = {"bare": [], "houkai": []}
    with tempfile.TemporaryDirectory() as home:
        for _ in range(options.rounds + 1):
            starts["bare"].append(start(BARE, home))
            starts["houkai"].append(start(HOUKAI, home))
        left = os.listdir(home)
    middle = {
        name: Start(*(median(column) for column in zip(*rows[1:], strict=True)))
        for name, rows in starts.items()
    }
    for name, row in middle.items():
        print(f"{name:8} initialize {row.wall * 1000:6.0f} ms   CPU {row.cpu * 1000:6.0f} ms")
    bare, ours = middle["bare"], middle["houkai"]
    print(f"ratio    initialize {ours.wall / bare.wall:6.2f}      CPU {ours.cpu / bare.cpu:6.2f}")
    assert not left, f"a start touched the home folder: {left}"
    return int(options.limit is not None and ours.cpu / bare.cpu > options.limit)


if __name__ == "__main__":
    sys.exit(main())
