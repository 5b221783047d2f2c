"""Conflicts, mergers, tags and the trash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from houkai.cli import session
from tests.cli.conftest import Runner, only, stored


@pytest.fixture
def pair(cli: Runner) -> list[str]:
    """Store two memories that contradict each other and return their ids, the older first."""
    texts = ("The server runs on port 8080", "The server runs not on port 8080")
    return [cli("remember", text).lines[0] for text in texts]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of answers that a person on a terminal gives, to be filled."""
    given: list[str] = []

    def ask(_question: str) -> str:
        return given.pop(0) + "\n" if given else ""

    monkeypatch.setattr(session, "can_ask", lambda: True)
    monkeypatch.setattr(session, "ask", ask)
    return given


def live(path: Path) -> Iterator[str]:
    """Yield the ids of what is neither gone nor superseded."""
    yield from (memory.id for memory in stored(path) if memory.superseded_by is None)


def test_conflicts_are_told(cli: Runner, pair: list[str]) -> None:
    """Both sides must be named: one alone says nothing."""
    found = only(cli("conflicts", "-f", "jsonl"))
    assert (found["a"]["id"], found["b"]["id"]) == (pair[0], pair[1])
    assert (found["kind"], found["reason"]) == ("contradiction", "negation_diff")
    assert only(cli("conflicts", "--id", pair[1][:8], "-f", "jsonl"))["a"]["id"] == pair[1]
    assert cli("conflicts", "-T", "1").err == "No conflicts found.\n"
    assert cli("conflicts", "--resolve").code == 1


@pytest.mark.parametrize(
    ("answer", "left"),
    [("s", [1]), ("S", [0]), ("d", [1]), ("D", [0]), ("k", [0, 1]), ("", [0, 1])],
)
def test_resolve_does_what_is_answered(
    answer: str, left: list[int], cli: Runner, pair: list[str], answers: list[str], path: Path
) -> None:
    """Older and newer mixed up would hide the truth and keep the error."""
    answers += ["what?", answer] if answer else [answer]
    done = cli("conflicts", "--resolve", "--id", pair[1])
    assert done.code == 0
    assert done.lines[0].startswith("1/1 contradiction")
    assert sorted(live(path)) == sorted(pair[number] for number in left)
    assert not answers


def test_resolve_asks_nothing_about_what_is_gone(
    cli: Runner, pair: list[str], answers: list[str], path: Path
) -> None:
    """An answer about a memory that an answer before took away would act on nothing."""
    cli("remember", "The server runs on port 8080!")
    answers += ["d", "q"]
    assert cli("conflicts", "--resolve", "--id", pair[1]).code == 0
    assert len(list(live(path))) == 2
    assert cli("conflicts", "--resolve").code == 0


def test_keeping_both_takes_off_the_link(
    cli: Runner, filled: list[str], answers: list[str]
) -> None:
    """Who keeps both does not want to be asked about the same link every time."""
    cli("link", filled[2], filled[0], "-r", "contradicts")
    answers += ["k"]
    assert cli("conflicts", "--resolve").lines[-1] == "Kept both."
    assert cli("conflicts").err == "No conflicts found.\n"


def test_remember_shows_what_refused_it(cli: Runner, pair: list[str]) -> None:
    """A refusal that does not show what is in the way leaves its user searching."""
    done = cli("remember", "The server runs on port 8080.", "--on-conflict", "raise")
    assert (done.code, done.out) == (1, "")
    assert f"  duplicate {pair[0][:8]} The server runs on port 8080" in done.err.splitlines()
    assert cli("remember", "The server runs on port 8080.", "--on-conflict", "warn").code == 0


def test_supersede_and_restore(cli: Runner, pair: list[str], path: Path) -> None:
    """What is replaced must leave the listings, and come back when asked."""
    assert cli("supersede", pair[0][:8], pair[1][:8]).code == 0
    assert list(live(path)) == [pair[1]]
    assert cli("supersede", pair[1], pair[0]).code == 1
    assert cli("restore", pair[0][:8]).out == f"Restored {pair[0][:8]}\n"
    assert cli("restore", pair[0]).out == f"{pair[0][:8]} was not superseded.\n"


def test_merge_asks_and_keeps_the_first(cli: Runner, filled: list[str], path: Path) -> None:
    """A merger deletes a memory, so that it asks, and the first id must live on."""
    assert cli("merge", *filled[:2]).code == 1
    assert len(stored(path)) == 4
    done = cli("merge", *filled[:2], "--separator", " / ", "-y")
    assert done.out == filled[0] + "\n"
    text = "Deploys go out with make release / The user prefers short answers"
    assert only(cli("show", filled[0], "-f", "jsonl"))["text"] == text
    assert only(cli("versions", filled[0], "-f", "jsonl"))["text"] == text.partition(" / ")[0]
    assert cli("undo").code == 0
    assert len(stored(path)) == 4


def test_tags_change_everywhere(cli: Runner, filled: list[str]) -> None:
    """A tag that is renamed on some memories only splits what belonged together."""
    assert filled
    assert cli("tags", "list").lines[1:] == ["ops\t2", "release\t1"]
    assert cli("tags", "rename", "ops", "work").out == "Renamed it: 2 memories changed.\n"
    assert cli("tags", "merge", "all", "work", "release").code == 0
    assert cli("tags", "list").lines[1:] == ["all\t2"]
    assert cli("tags", "delete", "all").code == 1
    assert cli("tags", "delete", "all", "-y").out == "Took it off: 2 memories changed.\n"
    assert cli("tags", "list", "-f", "json").out == "[]\n"


def test_trash_gives_back(cli: Runner, filled: list[str], path: Path) -> None:
    """What was put aside must be found by its short id, and come back whole."""
    before = stored(path)
    assert cli("trash", "put", filled[0][:8], filled[1][:8]).code == 0
    assert len(stored(path)) == 2
    gone = cli("show", filled[0][:8])
    assert (gone.code, gone.err) == (
        3,
        f"Error: The memory with the id '{filled[0][:8]}' is in the trash. "
        "`houkai trash restore` brings it back.\n",
    )
    assert "is in the trash" not in cli("show", filled[0][:8], "-C", "other").err
    kept = [json.loads(line)["memory_id"] for line in cli("trash", "list", "-f", "jsonl").lines]
    assert sorted(kept) == sorted(filled[:2])
    assert cli("undo").code == 0
    assert cli("trash", "list").err == "The trash is empty.\n"
    assert cli("trash", "put", filled[0][:8], filled[1][:8]).code == 0
    assert cli("trash", "restore", filled[0][:8], filled[1]).code == 0
    assert cli("undo").code == 0
    assert len(cli("trash", "list", "-f", "jsonl").lines) == 2
    assert cli("redo").code == 0
    assert sorted(m.text for m in stored(path)) == sorted(m.text for m in before)
    assert cli("trash", "restore", filled[0]).code == 3
    assert cli("trash", "list").err == "The trash is empty.\n"


def test_purge_asks_and_chooses(cli: Runner, filled: list[str]) -> None:
    """What is purged is gone for good: no more than was named may go."""
    cli("trash", "put", *filled[:3])
    assert cli("trash", "purge").code == 1
    assert cli("trash", "purge", filled[0], "--older-than", "1", "-y").code == 2
    assert cli("trash", "purge", "--older-than", "1", "-y").out == "Dropped 0 memories for good.\n"
    assert cli("trash", "purge", filled[0][:8], "-y").out == "Dropped 1 memory for good.\n"
    assert cli("trash", "purge", "-y").out == "Dropped 2 memories for good.\n"
    assert cli("trash", "purge", filled[0], "-y").code == 3


def test_a_merge_with_itself_is_refused_unasked(
    cli: Runner, pair: list[str], answers: list[str]
) -> None:
    """To ask whether to do what will be refused wastes an answer."""
    answers.append("y")
    done = cli("merge", pair[0], pair[0][:8])
    assert done.code == 1
    assert done.err.startswith("Error: TARGET and OTHER must differ")
    assert answers == ["y"]
