"""A command that breaks says so in a line, with a code of its own, and loses nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from houkai import MemoryStore
from houkai.ops import removal
from tests.cli.conftest import Runner, program
from tests.support import environment


def broken(error: Exception) -> Callable[..., None]:
    """Return an operation with a fault in it."""

    def fail(*_given: object, **_named: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize("fault", [RuntimeError("boom\n\x1b[2J"), KeyError("x"), ImportError()])
def test_a_bug_is_owned_up_to(
    fault: Exception, cli: Runner, filled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback frightens, and a code of 1 would let a script take it for a refusal."""
    assert filled
    monkeypatch.setattr(MemoryStore, "list_recent", broken(fault))
    done = cli("list")
    assert (done.code, done.out) == (70, "")
    told = f"Error: This is a bug of houkai, not your mistake ({type(fault).__name__}"
    assert done.err.startswith(told)
    for word in ("intact", "report", "HOUKAI_DEBUG=1"):
        assert word in done.err
    assert done.err.count("\n") == 1
    assert "\x1b" not in done.err


def test_what_was_stored_before_a_bug_is_there(
    cli: Runner, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence promises it."""
    cli("remember", "Anna lands at nine")
    cli("remember", "Ben prefers tabs")
    calls = iter([removal.remove, broken(RuntimeError("boom"))])
    monkeypatch.setattr(removal, "remove", lambda *given: next(calls)(*given))
    assert cli("nuke", "--yes").code == 70
    with MemoryStore(path) as store:
        assert store.count() == 2
        assert store.verify_journal() is None


def test_a_traceback_is_shown_when_asked_for(cli: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever repairs it needs the place."""
    monkeypatch.setenv("HOUKAI_DEBUG", "1")
    cli("remember", "x")
    monkeypatch.setattr(MemoryStore, "list_recent", broken(RuntimeError("boom")))
    done = cli("list")
    assert done.code == 70
    assert "Traceback (most recent call last)" in done.err
    assert "in fail\n" in done.err
    assert done.err.splitlines()[-1].startswith("Error: This is a bug of houkai")


def test_mistakes_keep_their_codes(cli: Runner, filled: list[str]) -> None:
    """A user's mistake is no bug."""
    assert filled
    assert cli("recall", " ").code == 1
    assert cli("recall", "x", "-k", "many").code == 2
    assert cli("show", "zzzz").code == 3


def test_what_the_system_refuses_is_no_bug(
    cli: Runner, filled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full is nobody's bug, and the system's words say what to do."""
    assert filled
    monkeypatch.setattr(MemoryStore, "list_recent", broken(PermissionError(13, "No way", "/x/y")))
    done = cli("list")
    assert (done.code, done.err) == (1, "Error: No way: /x/y.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize("format", ["tsv", "json"])
def test_output_that_cannot_be_written(format: str, path: Path) -> None:
    """A result lost on its way must not look like success, nor like a crash."""
    with MemoryStore(path) as store:
        store.remember("Anna lands at nine")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            program(["list", "-f", format]),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(PYTHONUNBUFFERED=""),  # so that only the end writes
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (1, "Error: No space left on device.\n")
