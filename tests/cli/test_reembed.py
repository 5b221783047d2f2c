from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from houkai import MemoryStore
from houkai.cli import app
from houkai.embed import hub, spec
from houkai.ops import models
from houkai.testing import HashingEmbedder

Run = Callable[..., int]


class Named(HashingEmbedder):
    """A model whose name is what a spec says."""

    def __init__(self, model: str) -> None:
        super().__init__(32 + 8 * len(model))
        self.name = model


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, path: Path) -> Run:
    """Return a function that runs the command line on the test's file, and its exit code."""
    monkeypatch.setenv("HOUKAI_DB", str(path))
    monkeypatch.setenv("HOUKAI_EMBEDDER", "ollama:first")
    monkeypatch.setattr(spec, "_ollama", Named)

    def ran(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["houkai", *arguments])
        with pytest.raises(SystemExit) as end:
            app.main()
        return int(end.value.code or 0)

    with MemoryStore() as store:
        store.remember_many([f"note {n} on topic{n}" for n in range(30)])
    return ran


def test_a_file_is_changed_over_with_lines_of_percent(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a log or a pipe, hours of work would pass without a sign, or as control characters."""
    assert run("reembed", "--embedder", "ollama:second", "--batch-size", "10") == 0
    out, err = capsys.readouterr()
    assert "now has vectors of second (80 dimensions): 30 of 30 texts embedded" in out
    assert err.splitlines()[:4] == [
        "Embedding: 0 % (0 of 30)",
        "Embedding: 33 % (10 of 30)",
        "Embedding: 66 % (20 of 30)",
        "Embedding: 100 % (30 of 30)",
    ]
    assert "HOUKAI_EMBEDDER=ollama:second" in err
    with MemoryStore(embedder="ollama:second") as store:
        assert store.stats()["model"] == "second"


def test_json_is_the_result_alone(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script could not read what was done."""
    monkeypatch.setenv("HOUKAI_EMBEDDER", "ollama:another")
    assert run("reembed", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["model"], told["embedded"], told["switched"]) == ("another", 30, True)


def test_a_bad_spec_is_one_line(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """A typing error would end in a traceback."""
    assert run("reembed", "--embedder", "gpt") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: --embedder must be one of: minilm")
    assert err.count("\n") == 1


def test_stopping_says_that_it_can_go_on_and_others_are_asked_about(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user would begin anew, or lose a night's vectors to a typing error."""
    with monkeypatch.context() as patch:
        passages = Named.passages
        calls: list[int] = []

        def stopped(self: Named, texts: Any) -> Any:
            calls.append(len(texts))
            if len(calls) > 2:
                raise KeyboardInterrupt
            return passages(self, texts)

        patch.setattr(Named, "passages", stopped)
        assert run("reembed", "-e", "ollama:second", "--batch-size", "5") == 130
    assert "Run the same command again" in capsys.readouterr().err
    assert run("reembed", "-e", "ollama:other") == 1
    assert "A change to second has begun" in capsys.readouterr().err
    assert run("reembed", "-e", "ollama:second") == 0
    assert "20 of 30 texts embedded" in capsys.readouterr().out
    assert run("reembed", "-e", "ollama:other", "--yes") == 0


def test_models_are_listed_and_verified(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """A damaged model would give other vectors without a word."""
    assert run("model", "list", "--format", "json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert {(one["origin"], one["state"]) for one in listed} == {
        ("package", "present"),
        ("hub", "missing"),
    }
    assert run("model", "verify", "--format", "json") == 0
    assert "verified" in capsys.readouterr().out
    vocabulary = next(one for one in listed if one["file"] == "vocab.txt")
    assert Path(vocabulary["path"]).is_relative_to(home)
    Path(vocabulary["path"]).parent.mkdir(parents=True)
    Path(vocabulary["path"]).write_bytes(b"x" * vocabulary["bytes"])
    assert run("model", "verify", "all-MiniLM-L6-v2") == 1
    err = capsys.readouterr().err
    assert "vocab.txt is damaged. Run: houkai model pull all-MiniLM-L6-v2 vocab.txt" in err
    assert run("model", "verify", "another") == 3
    monkeypatch.setattr(models.lockfile.LockedModel, "folder", home)
    assert run("model", "verify") == 1
    assert "model.onnx is missing. Run: pip install" in capsys.readouterr().err


def test_pulling_shows_how_far_it_is_and_where_it_went(
    run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ninety megabytes would come without a sign, to nobody knows where."""
    asked: list[list[str]] = []

    def pull(name: str, files: list[str], *, progress: Any) -> list[Path]:
        asked.append([name, *files])
        progress(files[0], 0, 2 * 1024 * 1024)
        progress(files[0], 2 * 1024 * 1024, 2 * 1024 * 1024)
        return [tmp_path / files[0]]

    monkeypatch.setattr(hub, "pull", pull)
    assert run("model", "pull", "all-MiniLM-L6-v2", "vocab.txt") == 0
    out, err = capsys.readouterr()
    assert out == f"{tmp_path / 'vocab.txt'}\n"
    assert err.splitlines() == [
        "vocab.txt: 0 % (0 bytes of 2.0 MiB)",
        "vocab.txt: 100 % (2.0 MiB of 2.0 MiB)",
    ]
    assert run("model", "pull", "all-MiniLM-L6-v2", "weights.bin") == 3
    assert run("model", "pull", "all-MiniLM-L6-v2") == 0
    assert [one[1] for one in asked] == [
        "vocab.txt",
        *(file.name for file in hub.hub_model("all-MiniLM-L6-v2").files),
    ]
