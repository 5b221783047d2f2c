"""How a server lives and ends: its start, its neighbours, signals, and the file it leaves."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp.client import Client

from houkai import MemoryStore
from houkai.testing import HashingEmbedder
from tests.doors.processes import (
    HASHING,
    HELLO,
    MAIN,
    alone,
    answers,
    ask,
    call,
    launch,
    lines,
    parameters,
    serve,
    texts,
)
from tests.support import environment


def test_a_session_with_the_real_model(path: Path) -> None:
    """The way every agent uses houkai: the SDK's client, a process, a model, one file."""

    async def session() -> None:
        server = parameters(path, MAIN, CLAUDE_CODE_SESSION_ID="session-7")
        async with Client(server, mode="legacy") as client:
            assert client.server_info.name == "houkai"
            assert "remember" in {tool.name for tool in (await client.list_tools()).tools}
            made = await client.call_tool("remember", {"text": "Anna takes her coffee black"})
            await client.call_tool("remember", {"text": "The deploy key lives in the vault"})
            found = await client.call_tool("recall", {"query": "a hot drink without milk"})
            (first, *_) = found.structured_content["result"]
            assert first["id"] == made.structured_content["id"]
            edit = {"memory_id": first["id"][:8], "text": "Anna takes her coffee with milk"}
            assert not (await client.call_tool("edit", edit)).is_error
            assert (await client.call_tool("undo", {})).structured_content["ok"]
            told = await client.call_tool("history", {"memory_id": first["id"]})
            assert [one["op"] for one in told.structured_content["result"]] == [
                "remember",
                "edit",
                "undo",
            ]

    anyio.run(session)
    alone(path)
    with MemoryStore(path) as store:
        assert "Anna takes her coffee black" in {one.text for one in store.list_recent()}
        assert {entry.actor for entry in store.journal(None)} == {"mcp"}
        with store.read() as connection:
            rows = connection.execute("select distinct session from operation").fetchall()
        assert rows == [("session-7",)]


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_one_whole_file(path: Path, sent: signal.Signals) -> None:
    """Clients end servers by SIGTERM; what was acknowledged must be in the one file they copy."""
    with launch("--db", path) as process:
        ask(process, HELLO[0])
        made = ask(process, HELLO[1], call(1, "remember", text="Anna lands at nine"))
        assert not made["result"]["isError"]
        process.send_signal(sent)
        status = process.wait(timeout=60)
        out, complaint = process.communicate(timeout=60)
    assert status == (0 if sent == signal.SIGTERM else 130)
    assert (out, complaint) == (b"", b"")
    alone(path)
    assert texts(path) == ["Anna lands at nine"]


def test_a_client_that_stops_reading(path: Path) -> None:
    """A client that crashed reads no more; the server must end quietly, its writes done."""
    process = launch("--db", path)
    ask(process, HELLO[0])
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stdin.write(lines(HELLO[1], call(1, "remember", text="last words")))
    process.stdin.flush()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()
    assert texts(path) == ["last words"]
    alone(path)


def test_a_client_that_died_and_left_its_pipe_open(path: Path) -> None:
    """A process that inherited the client's end of stdin kept servers alive by the hundred."""
    code = f"from houkai.doors import stdio\nstdio.WATCH_S = 0.05\n{HASHING}"
    process = launch("--db", path, code=code)
    ask(process, HELLO[0])
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stdin is not None
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stdin.close()
    process.stderr.close()


def test_houkai_mcp_is_the_same_server(path: Path) -> None:
    """The command that people configure goes through the command line to the same door."""
    code = "import sys; sys.argv[0] = 'houkai'; from houkai.cli import main; main()"
    asked = lines(*HELLO, call(1, "stats"), {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    given = ("mcp", "--tools", "all", "--db", path, "--collection", "work")
    told, complaint, status = serve(asked, *given, code=code)
    assert (status, complaint) == (0, "")
    counted = told[1]["result"]["structuredContent"]
    assert (counted["path"], counted["collection"]) == (str(path), "work")
    assert "nuke" in {tool["name"] for tool in told[2]["result"]["tools"]}


def test_two_servers_share_a_file(path: Path) -> None:
    """Two agents at work at once is the normal case; the reference server loses half of it."""

    async def write(name: str) -> list[str]:
        async with Client(parameters(path)) as client:
            ids: list[str] = []

            async def one(number: int) -> None:
                result = await client.call_tool("remember", {"text": f"{name} {number}"})
                ids.append(result.structured_content["id"])

            async with anyio.create_task_group() as group:
                for number in range(40):
                    group.start_soon(one, number)
            return ids

    acknowledged: list[str] = []

    async def both() -> None:
        async def gather(name: str) -> None:
            acknowledged.extend(await write(name))

        async with anyio.create_task_group() as group:
            group.start_soon(gather, "left")
            group.start_soon(gather, "right")

    anyio.run(both)
    alone(path)
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
        assert {memory.id for memory in store.list_recent(None)} == set(acknowledged)
    assert len(set(acknowledged)) == 80


def test_listing_tools_imports_and_opens_nothing(path: Path) -> None:
    """Clients give a server ten seconds to start, on a cold disk; the model comes later."""
    code = f"""
import atexit, sys
def show():
    heavy = {{"numpy", "onnxruntime", "tokenizers", "sqlite_vec", "typer", "rich"}}
    print(*sorted(heavy & set(sys.modules)), file=sys.stderr)
atexit.register(show)
{MAIN}
"""
    asked = lines(*HELLO, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    told, complaint, status = serve(asked, "--db", path, code=code)
    assert status == 0
    assert told[1]["result"]["tools"]
    assert complaint.strip() == ""
    assert not path.exists()


def test_it_starts_no_process(path: Path) -> None:
    """Memory servers that leave children behind fill machines with hundreds of orphans."""
    if not Path("/proc/self/task").exists():
        pytest.skip("needs /proc")
    with launch("--db", path) as process:
        ask(process, HELLO[0])
        ask(process, HELLO[1], call(1, "remember", text="x"))
        tasks = Path(f"/proc/{process.pid}/task")
        children = [(task / "children").read_text() for task in tasks.iterdir()]
        process.communicate(timeout=60)
    assert not any(child.strip() for child in children)


def test_the_console_script_serves() -> None:
    """What an agent's configuration names must exist and hold on to stdout."""
    script = Path(sys.executable).with_name("houkai-mcp")
    if not script.exists():
        pytest.skip("houkai is not installed here")
    run = subprocess.run(
        [script], input=lines(HELLO[0]), capture_output=True, env=environment(), timeout=60
    )
    assert answers(run.stdout)["hello"]["result"]["serverInfo"]["name"] == "houkai"
