"""The program on a terminal: tables, questions, and memories that try to drive it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from houkai import MemoryStore
from houkai.testing import HashingEmbedder
from tests.cli.conftest import Runner, program
from tests.support import environment

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are POSIX's", allow_module_level=True)

import pty


class Terminal:
    """A run of the program on a terminal of its own."""

    def __init__(self, *arguments: str, **more: str) -> None:
        self.master, slave = pty.openpty()
        variables = {k: v for k, v in environment(**more).items() if v}
        self.process = subprocess.Popen(
            program(arguments), stdin=slave, stdout=slave, stderr=slave, env=variables
        )
        os.close(slave)
        self.seen = b""

    def read_until(self, sign: bytes) -> None:
        """Read until something was printed. Fails when the program ends first."""
        while sign not in self.seen:
            piece = self._read()
            assert piece, self.seen
            self.seen += piece

    def _read(self) -> bytes:
        try:
            return os.read(self.master, 65_536)
        except OSError:  # Linux reports the end of a terminal's other side as an error
            return b""

    def type(self, text: str) -> None:
        """Type something."""
        os.write(self.master, text.encode())

    def end(self) -> int:
        """Read to the end and return the exit code."""
        while piece := self._read():
            self.seen += piece
        os.close(self.master)
        return self.process.wait(60)

    @property
    def text(self) -> str:
        """Return what was printed."""
        return self.seen.decode()


def test_terminal_gets_a_table_with_colours(houkai: Runner) -> None:
    """People must get the readable form without asking for it."""
    assert houkai("list").code == 0
    terminal = Terminal("list", NO_COLOR="", TERM="xterm-256color")
    assert terminal.end() == 0
    assert "\x1b[" in terminal.text
    assert "───" in terminal.text
    assert "(pinned)" in terminal.text
    assert "\t" not in terminal.text


def test_no_color_means_plain_lines(houkai: Runner) -> None:
    """NO_COLOR is a promise to people who cannot read colours, and to their tools."""
    assert houkai("list").code == 0
    for command in (["list"], ["list", "-f", "rich"]):
        terminal = Terminal(*command, NO_COLOR="1", TERM="xterm-256color")
        assert terminal.end() == 0
        assert "\x1b" not in terminal.text


@pytest.mark.parametrize(("answer", "code", "left"), [("y\n", 0, 3), ("n\n", 1, 4), ("\n", 1, 4)])
def test_forget_asks(answer: str, code: int, left: int, houkai: Runner) -> None:
    """Only a yes may take a memory away; Enter alone is no yes."""
    first = houkai("list", "-n", "1").lines[1].partition("\t")[0]
    terminal = Terminal("forget", first)
    terminal.read_until(b"[y/N] ")
    assert "moon is cheese" in terminal.text
    terminal.type(answer)
    assert terminal.end() == code
    assert len(houkai("list", "-f", "jsonl").lines) == left


def test_ctrl_c_at_a_question(houkai: Runner) -> None:
    """Who backs out must leave everything as it was, and the shell must see why."""
    assert houkai("list").code == 0
    terminal = Terminal("nuke")
    terminal.read_until(b"[y/N] ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert len(houkai("list", "-f", "jsonl").lines) == 4


def test_no_text_and_no_pipe_is_a_mistake(houkai: Runner) -> None:
    """A command that waits for input nobody knows of looks hung."""
    assert houkai("list").code == 0
    started = time.monotonic()
    terminal = Terminal("remember")
    assert terminal.end() == 2
    assert time.monotonic() - started < 30


EVIL = (
    "\x1b]0;owned\x07\x1b[31mred\x1b[2J bell\x07 back\b\b\b return\rover \x9b31m c1 \x7f del\n"
    "second\tline \u202egnp.exe\u202c \u2028 sep"
)
FORBIDDEN = {chr(n) for n in (*range(9), *range(11, 32), *range(127, 160))} | set(
    "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


@pytest.fixture
def evil(cli: Runner, path: Path) -> Iterator[str]:
    """Fill a file with a memory that attacks through every field, and yield its id."""
    with MemoryStore(path, embedder=HashingEmbedder(64), actor=EVIL[:40]) as store:
        memory = store.remember(
            EVIL, tags=[EVIL[:60]], source=EVIL, author=EVIL[:60], entities=[EVIL[:60]]
        )
        store.edit(memory.id, text=EVIL + " again", source=EVIL + "!")
    assert cli("list").code == 0
    return memory.id


COMMANDS = [
    *(f"list -f {format}" for format in ("tsv", "rich", "json", "jsonl")),
    *(f"recall red -f {format}" for format in ("tsv", "rich", "json", "jsonl")),
    "show {id}", "show {id} -f tsv", "history {id}", "history {id} -f rich", "journal tail",
    "journal tail -f rich", "journal tail -f json", "journal show 2", "tag {id} -a x",
    "edit {id} --text \x1b[31m", "bump {id} +0.1", "undo", "undo --since 1d", "forget {id} -y",
    "show \x1b[31m", "list --before \x1b[31m", "list -g \x1b[31m -t \x1b[31m", "stats",
    "-C \x1b[31m stats", "-C \x1b[31m nuke", "undo \x1b[31m", "bump {id} \x1b[31m",
    *(f"diff 1h -f {format}" for format in ("tsv", "rich", "json", "jsonl")),
    *(f"versions {{id}} -f {format}" for format in ("tsv", "rich", "json", "jsonl")),
    *(f"tags list -f {format}" for format in ("tsv", "rich", "json", "jsonl")),
    *(f"graph {{id}} -f {format}" for format in ("ascii", "dot", "mermaid", "json")),
    "trash put {id}", "get-at {id} now", "state-at now -f rich", "pack red", "pack red -f json",
    "auto-context red", "tags delete \x1b[31m", "trash restore \x1b[31m", "eval \x1b[31m",
    "remember {id}\x1b[31m --on-conflict raise",
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS)
def test_memories_cannot_drive_the_terminal(words: str, cli: Runner, evil: str) -> None:
    """A stored escape sequence that is printed raw can retitle, hide, or type for the user."""
    done = cli(*(word.format(id=evil) for word in words.split()))
    assert not FORBIDDEN & set(done.out + done.err)
    assert done.out or done.err


def test_what_is_escaped_can_be_read_back(cli: Runner, evil: str) -> None:
    """Escapes must lose nothing: a script gets back the very text."""
    import json

    assert evil
    (record,) = map(json.loads, cli("list", "-f", "jsonl").lines)
    assert record["text"] == EVIL + " again"
    cell = cli("list").lines[1].split("\t")[5]
    assert cell.encode("ascii").decode("unicode_escape") == EVIL + " again"
