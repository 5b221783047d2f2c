"""What goes through the pipes of a server: every answer, and nothing but answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from houkai import MemoryStore
from houkai.testing import HashingEmbedder
from tests.doors.processes import (
    HELLO,
    MAIN,
    alone,
    ask,
    call,
    launch,
    lines,
    serve,
    texts,
)

NOISY = """
import atexit, os, subprocess, sys

class Loud:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp":
            print("noise of an import")

sys.meta_path.insert(0, Loud())
atexit.register(print, "noise at exit")
from houkai import embed
from houkai.testing import HashingEmbedder

class Noisy(HashingEmbedder):
    def passages(self, texts):
        print("noise of Python")
        os.write(1, b"noise of a C library\\n")
        subprocess.run(["echo", "noise of a child"])
        assert sys.stdin.read() == ""
        return super().passages(texts)

embed.default = lambda: Noisy(64)
from houkai.doors.mcp_server import main
sys.exit(main(sys.argv[1:]))
"""


def test_everything_asked_is_answered_before_the_end(path: Path) -> None:
    """A script pipes its requests and hangs up; the SDK's transport would cancel them."""
    asked = lines(*HELLO, *(call(n, "remember", text=f"fact {n}") for n in range(30)))
    told, complaint, status = serve(asked, "--db", path)
    assert status == 0, complaint
    assert told.keys() == {"hello", *range(30)}
    assert not [one for one in told.values() if "error" in one or one["result"].get("isError")]
    assert len(texts(path)) == 30
    alone(path)
    assert complaint == ""


def test_an_end_without_a_word(path: Path) -> None:
    """A client that starts a server and leaves must find no file, no noise and status 0."""
    told, complaint, status = serve(b"", "--db", path)
    assert (told, complaint, status) == ({}, "", 0)
    assert not path.exists()


def test_lines_that_are_no_requests_are_answered(path: Path) -> None:
    """A client waits for minutes on a request that was dropped because half an emoji was in it."""
    asked = lines(*HELLO, call(1, "remember", text="half \ud83d"), call("\ud83d", "stats"))
    asked += b'garbage\n\n[]\n{"id": 2}\n\xff\xfe\n{"jsonrpc":"2.0","id":3,"method":"\\ud83d"}\n'
    told, complaint, status = serve(asked, "--db", path)
    assert status == 0, complaint
    assert told[1]["result"]["structuredContent"]["code"] == "InputError"
    assert not told["\ud83d"]["result"]["isError"]
    assert told[2]["error"]["code"] == -32600
    assert told[3]["error"]["code"] == -32601
    assert told[None]["error"]["code"] in (-32600, -32700)


@pytest.mark.parametrize("request_id", ["[1]", '{"a": 1}', "1.5", "null"])
def test_a_cancellation_of_nothing_that_could_be_asked(path: Path, request_id: str) -> None:
    """A client's slip in one notification, which nobody answers, must not end its session."""
    slip = f'{{"method":"notifications/cancelled","params":{{"requestId":{request_id}}}}}'
    asked = lines(*HELLO) + slip.replace("{", '{"jsonrpc":"2.0",', 1).encode() + b"\n"
    told, complaint, status = serve(asked + lines(call(1, "stats")), "--db", path)
    assert status == 0, complaint
    assert not told[1]["result"]["isError"]


def test_an_error_is_not_answered(path: Path) -> None:
    """A client that answers an answer in turn would go back and forth with the server for ever."""
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "What?"}}
    told, complaint, status = serve(lines(*HELLO, error, call(1, "stats")), "--db", path)
    assert (told.keys(), status) == ({"hello", 1}, 0), complaint


def test_prints_miss_the_protocol(path: Path) -> None:
    """One line of a library's progress bar on stdout makes clients drop the connection."""
    asked = lines(*HELLO, call(1, "remember", text="x"))
    told, complaint, status = serve(asked, "--db", path, code=NOISY)
    assert status == 0, complaint
    assert not told[1]["result"]["isError"]
    for source in ("of an import", "of Python", "of a C library", "of a child", "at exit"):
        assert f"noise {source}" in complaint


@pytest.mark.parametrize("damage", ["folder", "foreign", "corrupt", "config"])
def test_a_bad_file_is_an_error_in_words(
    path: Path, damage: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that dies of a bad file tells its user nothing; a tool's error tells the agent."""
    where: tuple[str | Path, ...] = ("--db", path)
    if damage == "folder":
        path.mkdir()
    elif damage == "foreign":
        path.write_bytes(b"not a database" * 1_000)
    elif damage == "corrupt":
        MemoryStore(path, embedder=HashingEmbedder(64)).close()
        path.write_bytes(path.read_bytes()[:10_000])
    else:
        where = ()
        config = home / "config.toml"
        config.write_text("db = [")
        monkeypatch.setenv("HOUKAI_CONFIG", str(config))
    told, complaint, status = serve(lines(*HELLO, call(1, "stats")), *where)
    assert status == 0
    assert told["hello"]["result"]["serverInfo"]["name"] == "houkai"
    result = told[1]["result"]
    assert result["isError"]
    assert result["structuredContent"]["code"] != "InternalError", complaint


def test_a_file_that_was_mended_opens(path: Path) -> None:
    """After a failure the next call must try again, not repeat the old error for good."""
    path.mkdir()
    with launch("--db", path) as process:
        ask(process, HELLO[0])
        failed = ask(process, HELLO[1], call(1, "stats"))
        path.rmdir()
        worked = ask(process, call(2, "stats"))
        process.communicate(timeout=60)
    assert failed["result"]["isError"]
    assert worked["result"]["structuredContent"]["count"] == 0


@pytest.mark.parametrize(
    ("code", "arguments", "status"),
    [
        (MAIN, ["--bogus"], 2),
        (MAIN, ["--tools", "most"], 2),
        (MAIN, ["--help"], 0),
        (f"import sys; sys.modules['mcp'] = None; {MAIN}", [], 1),
        (f"import sys; sys.modules['anyio'] = None; {MAIN}", [], 1),
    ],
)
def test_no_failure_writes_to_stdout(code: str, arguments: list[str], status: int) -> None:
    """What a client reads on stdout it takes for an answer, even a usage message."""
    process = launch(*arguments, code=code)
    out, complaint = process.communicate(lines(*HELLO), timeout=60)
    assert out == b""
    assert process.returncode == status
    assert complaint


def test_closed_standard_streams(path: Path) -> None:
    """A service manager may start programs without stdin; its number must not become a file's."""
    code = f"import os; os.close(0); os.close(1); {MAIN}"
    process = launch("--db", path, code=code)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
