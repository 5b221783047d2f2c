"""What the program prints, letter for letter, but for ids and times."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from houkai import MemoryStore
from houkai.testing import HashingEmbedder
from tests.cli.conftest import Runner

GOLDEN = Path(__file__).parent / "golden"
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")

COMMANDS = {
    "list-rich": "list -f rich",
    "list-tsv": "list",
    "list-json": "list -f json -n 1",
    "list-jsonl": "list -f jsonl -n 2",
    "list-all-collections": "list -f rich --collection *",
    "recall-rich": "recall -f rich deploys -k 2",
    "recall-tsv": "recall deploys -k 2",
    "recall-json": "recall deploys -k 1 -f json",
    "recall-explained": "recall deploys -k 2 -f rich --explain --fusion rrf",
    "recall-explained-blend": "recall deploys -k 2 -f rich --explain",
    "show": "show {last}",
    "history": "history {first}",
    "journal-rich": "journal tail -f rich",
    "journal-tsv": "journal tail",
    "journal-show": "journal show 3",
    "stats": "stats",
    "nothing": "list -f rich -g nothing",
}


def normalised(text: str) -> str:
    """Return text with ids, times and scores replaced: how good a hit is is not meant here."""
    for number, uuid in enumerate(dict.fromkeys(UUID.findall(text))):
        stand_in = f"{number:08d}-0000-4000-8000-000000000000"
        text = text.replace(uuid, stand_in).replace(uuid[:8], stand_in[:8])
    text = re.sub(r"\b[0-9a-f]{8}\b(?!-)", "00000000", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-01-01T00:00:00Z", text)
    text = re.sub(r"\b1[78]\d{8}(\.\d+)?\b", "1700000000", text)
    text = re.sub(r"\b\d+s\b( ago)?", r"0s\1", text)
    text = re.sub(r"\d+\.\d KiB", "1.0 KiB", text)
    text = re.sub(r'(\b|"score": )\d\.\d{3,}\b', r"\g<1>0.000", text)
    text = re.sub(r"(?m)^score +id", "score  id", text)
    text = re.sub(r"(?m)^-?\d\.\d{3} +(?=\d{8})", "0.000  ", text)
    text = re.sub(r"(?m)^ +(?=answers$)", 46 * " ", text)
    text = re.sub(r"(?m)\t-?[\d.]+(e-\d+)?$", "\t0.000", text)
    text = re.sub(r"(?m)^ +-?\d\.\d\d  ", "   0.00  ", text)
    return re.sub(r"/\S+/memory\.db", "/memory.db", text)


def check(name: str, text: str, request: pytest.FixtureRequest) -> None:
    """Compare text with its golden file; `pytest tests/cli --update-golden` writes it anew."""
    file = GOLDEN / f"{name}.txt"
    got = "\n".join(line.rstrip() for line in normalised(text).splitlines()) + "\n"
    if request.config.getoption("--update-golden", default=False):
        file.parent.mkdir(exist_ok=True)
        file.write_text(got, encoding="utf-8")
    assert got == file.read_text(encoding="utf-8")


@pytest.fixture
def lived(filled: list[str], path: Path) -> list[str]:
    """Give the four memories a past: an edit, an undone edit, another collection."""
    with MemoryStore(path, embedder=HashingEmbedder(64), actor="cli") as store:
        store.edit(filled[0], text="Deploys go out on Tuesdays", tags=["ops"], source="run.md")
        store.edit(filled[3], importance=0.1, valid_until="2090-01-01")
        store.undo_last()
    with MemoryStore(path, "work", embedder=HashingEmbedder(64), actor="cli") as store:
        store.remember("The office closes at six")
    return filled


@pytest.mark.parametrize("name", COMMANDS)
def test_output_is_as_written_down(
    name: str, cli: Runner, lived: list[str], request: pytest.FixtureRequest
) -> None:
    """A change of what people and their scripts read must be seen and meant."""
    words = COMMANDS[name].split()
    done = cli(*(word.format(first=lived[0][:8], last=lived[-1][:8]) for word in words))
    assert done.code == 0
    check(name, done.out + done.err, request)


def test_help_names_the_commands_by_section(cli: Runner, request: pytest.FixtureRequest) -> None:
    """The first thing a newcomer reads must tell what there is."""
    done = cli("--help")
    assert done.code == 0
    check("help", done.out[done.out.index("\nWrite:") :], request)


def test_demo_tells_the_story(cli: Runner, request: pytest.FixtureRequest) -> None:
    """The tour runs on the real model: what it claims must be what happens."""
    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.undo()
    done = cli("demo")
    assert done.code == 0
    check("demo", done.out, request)
