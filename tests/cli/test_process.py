"""The program as other programs meet it: codes, pipes, an editor, consoles that know few signs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from houkai import MemoryStore, __version__
from houkai.testing import HashingEmbedder
from tests.cli.conftest import TEXTS, Done, Runner, program
from tests.support import environment

EDITOR = """
import pathlib, sys
file = pathlib.Path(sys.argv[-1])
text = file.read_text(encoding="utf-8")
{body}
"""


def ids(houkai: Runner) -> list[str]:
    """Return the ids in the file, oldest first."""
    done = houkai("list", "-f", "jsonl")
    return [json.loads(line)["id"] for line in done.lines][::-1]


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a program that will stand in for the user's editor."""
    file = tmp_path / "an editor.py"
    monkeypatch.setenv("EDITOR", f'"{sys.executable}" "{file}" --wait')
    return str(file)


def edited(houkai: Runner, editor: str, body: str) -> Done:
    """Edit the first memory with an editor that does `body` to the file."""
    Path(editor).write_text(EDITOR.format(body=body))
    return houkai("edit", ids(houkai)[0])


def test_pipe_gets_tsv(houkai: Runner) -> None:
    """`houkai list | cut -f6` is the promise made to every shell script."""
    done = houkai("list")
    assert done.code == 0
    rows = [line.split("\t") for line in done.lines]
    assert rows[0] == ["id", "type", "importance", "tags", "created_at", "text"]
    assert [row[5] for row in rows[1:]] == [item.text for item in reversed(TEXTS)]


def test_remember_and_recall_by_meaning(houkai: Runner) -> None:
    """The whole way, with the model that ships: a pipe in, an answer in other words out."""
    assert houkai("remember", stdin=b"Ana cannot eat peanuts\n").code == 0
    done = houkai("recall", "which food must we avoid?", "-k", "1", "-f", "json")
    (record,) = json.loads(done.out)
    assert record["text"] == "Ana cannot eat peanuts"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("list", 0),
        ("list --min-importance 7", 1),
        ("list --nonsense", 2),
        ("list -t opinion", 2),
        ("nonsense", 2),
        ("", 2),
        ("show feedfeed", 3),
        ("undo 4711", 3),
    ],
)
def test_exit_codes(words: str, code: int, cli: Runner, filled: list[str]) -> None:
    """Scripts tell by the code alone whether to go on, to complain, or to create."""
    assert filled
    assert cli(*words.split()).code == code


def test_an_id_may_be_short_but_not_ambiguous(houkai: Runner) -> None:
    """Nobody types 36 signs; a beginning that fits two memories must name neither."""
    first = ids(houkai)[0]
    done = houkai("show", first[:6])
    assert done.code == 0
    assert first in done.out
    done = houkai("show", "")
    assert done.code == 1


def test_destruction_needs_an_answer(houkai: Runner) -> None:
    """Without a terminal nobody can say yes, so nothing may be taken away."""
    before = ids(houkai)
    for command in (["forget", before[0]], ["nuke"]):
        done = houkai(*command, stdin=b"y\n")
        assert (done.code, done.out) == (1, "")
        assert "Add --yes" in done.err
        assert done.err.count("\n") == 1
    assert ids(houkai) == before


def test_editor_changes_text_and_fields(houkai: Runner, editor: str) -> None:
    """What was changed in the editor, and only that, must reach the memory."""
    done = edited(
        houkai,
        editor,
        "text = text.replace('make release', 'a button').replace('0.5', '0.75')\n"
        "file.write_text(text, encoding='utf-8')",
    )
    assert done.code == 0, done.err
    assert "text: Deploys go out with a button" in done.out
    assert "importance: 0.75" in done.out
    assert "tags" not in done.out


def test_editor_that_changes_nothing(houkai: Runner, editor: str) -> None:
    """Closing without a change must leave no trace in the journal."""
    done = edited(houkai, editor, "")
    assert done.out.endswith("is as it was\n")
    assert len(houkai("journal", "tail", "-f", "jsonl").lines) == 1


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("sys.exit(3)", "ended with code 3"),
        ("file.write_text('gone')", "lost a +++ line"),
        ("file.write_text(text.replace('tags =', 'tags ='+chr(34)))", "are no TOML"),
        ("file.write_text(text.replace('tags', 'labels'))", "no field 'labels'"),
        ("file.write_bytes(b'\\xff' + text.encode())", "no UTF-8"),
    ],
)
def test_editor_that_fails_loses_no_work(
    body: str, complaint: str, houkai: Runner, editor: str
) -> None:
    """After a slip in the file what was typed must still be there."""
    done = edited(houkai, editor, body)
    assert done.code == 1
    assert complaint in done.err
    kept = Path(done.err.strip().rpartition(": ")[2])
    assert kept.exists()
    kept.unlink()


def test_editor_that_is_not_there(houkai: Runner) -> None:
    """A misspelt $EDITOR must be named, not traced."""
    done = houkai("edit", ids(houkai)[0], EDITOR="no-such-editor-anywhere")
    assert done.code == 1
    assert "'no-such-editor-anywhere' cannot be started" in done.err


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_may_leave(unbuffered: str, houkai: Runner) -> None:
    """`houkai list | head -1` must end without a word."""
    assert houkai("list").code == 0
    many = ["--all", "--include-expired", "-f", "json"]
    process = subprocess.Popen(
        program(["list", *many]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PYTHONUNBUFFERED=unbuffered),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) == 1
    assert complaint == b""


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "cp437"])
@pytest.mark.parametrize("format", ["rich", "json"])
def test_old_consoles_get_every_memory(encoding: str, format: str, path: Path) -> None:
    """A console without a sign for it must show an escape, not end in a UnicodeEncodeError."""
    text = "naïve 🌍 → цвет"
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
        store.remember(text)
    done = subprocess.run(
        program(["list", "-f", format]),
        capture_output=True,
        env=environment(PYTHONIOENCODING=encoding),
        check=True,
    )
    told = done.stdout.decode(encoding)
    assert done.stderr == b""
    if format == "json":
        assert json.loads(told)[0]["text"] == text
    else:
        assert "\\u2192" in told or "→" in told


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_interrupt_ends_with_130(houkai: Runner) -> None:
    """A shell loop over houkai must stop at Ctrl-C, which it sees by this code only."""
    assert ids(houkai)
    process = subprocess.Popen(
        program(["remember", "-"]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin is not None
    process.stdin.write(b"x" * 2**17)  # more than a pipe holds: it is taken, so it is being read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == (b"", b"")


@pytest.mark.parametrize("module", ["houkai", "houkai.cli"])
def test_modules_run_the_program(module: str) -> None:
    """Where scripts are not on the path, `python -m` is what people type."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert __version__ in done.stdout
