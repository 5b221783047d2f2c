"""Fixtures of the command line's tests: the program in this process and in one of its own."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from houkai import Memory, MemoryStore, RememberItem
from houkai.cli import app
from houkai.testing import HashingEmbedder
from tests.support import environment

TEXTS = (
    RememberItem("Deploys go out with make release", "procedural", tags=["ops", "release"]),
    RememberItem("The user prefers short answers", "feedback", importance=0.9, pinned=True),
    RememberItem("Payments failed on Monday", "episodic", tags=["ops"], author="Ana"),
    RememberItem("Somebody wrote that the moon is cheese", trust="untrusted", source="web.md"),
)


@dataclass
class Done:
    """What a run of the program left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Return the lines of standard output."""
        return self.out.splitlines()


Runner = Callable[..., Done]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the golden files anew."""
    parser.addoption("--update-golden", action="store_true", help="write tests/cli/golden anew")


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Give every run the same width, no colours, and the test's own file."""
    for name, value in {"COLUMNS": "80", "NO_COLOR": "1", "HOUKAI_DB": str(path)}.items():
        monkeypatch.setenv(name, value)
    for name in ("VISUAL", "EDITOR", "PYTHONIOENCODING", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    """Return a function that runs the program in this process, with vectors that need no model."""
    monkeypatch.setattr("houkai.store.as_embedder", lambda _: HashingEmbedder(64))

    def run(*arguments: str, stdin: bytes | None = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["houkai", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin or b"")))
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            app.main()
        told = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return Done(end.value.code, told.out, told.err)

    return run


@pytest.fixture
def filled(cli: Runner, path: Path) -> list[str]:
    """Fill the test's file with four memories and return their ids, oldest first."""
    with MemoryStore(path, embedder=HashingEmbedder(64), actor="cli") as store:
        return [memory.id for memory in store.remember_many(TEXTS)]


@pytest.fixture(scope="session")
def modelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file whose vectors are the real model's, made once."""
    file = tmp_path_factory.mktemp("modelled") / "memory.db"
    with MemoryStore(file, "default", actor="cli") as store:
        store.remember_many(TEXTS)
    return file


def program(arguments: Sequence[str]) -> list[str]:
    """Return the command that starts the program as its own process."""
    return [sys.executable, "-m", "houkai.cli", *arguments]


@pytest.fixture
def houkai(path: Path, modelled: Path) -> Runner:
    """Return a function that runs the program as its own process, on a copy of that file."""
    shutil.copy(modelled, path)

    def run(*arguments: str, stdin: bytes | None = None, **more: str) -> Done:
        done = subprocess.run(
            program(arguments),
            input=b"" if stdin is None else stdin,
            capture_output=True,
            env=environment(**more),
            timeout=60,
            check=False,
        )
        out, err = done.stdout.decode("utf-8"), done.stderr.decode("utf-8")
        return Done(done.returncode, out, err)

    return run


def stored(path: Path, collection: str = "default") -> list[Memory]:
    """Return what a file holds, the newest first."""
    with MemoryStore(path, collection, embedder=HashingEmbedder(64)) as store:
        return store.list_recent(None, include_expired=True, include_retired=True)


def only(done: Done) -> Any:
    """Return the one record that a run printed."""
    assert done.code == 0, done.err
    (record,) = map(json.loads, done.lines)
    return record
