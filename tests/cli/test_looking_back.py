"""What undo, redo and the journal do, and what they answer."""

from __future__ import annotations

import json
from pathlib import Path

from houkai import MemoryStore
from tests.cli.conftest import Runner, only, stored


def test_the_journal_knows_the_command_line(cli: Runner, filled: list[str]) -> None:
    """Who changed something is the first question asked of a journal."""
    assert filled
    cli("remember", "Deploys are slow")
    assert only(cli("journal", "tail", "-n", "1", "-f", "jsonl"))["actor"] == "cli"


def test_nuke_empties_one_collection_and_undo_fills_it(
    cli: Runner, filled: list[str], path: Path
) -> None:
    """The bluntest command must stay within its collection and be undoable."""
    cli("-C", "work", "remember", "The office closes at six")
    assert cli("nuke", "-y").code == 0
    assert (len(stored(path)), len(stored(path, "work"))) == (0, 1)
    assert cli("undo").out == "Undid 3: nuke, 4 rows\n"
    assert {memory.id for memory in stored(path)} == set(filled)
    assert cli("-C", "empty", "nuke").out == "The collection empty is empty.\n"


def test_undo_steps_back_and_redo_forward(cli: Runner, filled: list[str]) -> None:
    """Undo must undo what stands, not its own undoing."""
    for importance in ("0.1", "0.2", "0.3"):
        cli("edit", filled[0], "-i", importance)

    def now() -> float:
        return float(only(cli("show", filled[0], "-f", "jsonl"))["importance"])

    seen = []
    for command in ("undo", "undo", "redo", "undo", "undo"):
        cli(command)
        seen.append(now())
    assert seen == [0.2, 0.1, 0.2, 0.1, 0.5]


def test_undo_chooses(cli: Runner, filled: list[str]) -> None:
    """An operation can be named by number or id, or chosen by memory, actor and time."""
    cli("edit", filled[0], "-i", "0.1")
    cli("edit", filled[1], "-i", "0.1")
    (entry,) = [json.loads(line) for line in cli("journal", "tail", "-n1", "-fjsonl").lines]
    assert cli("undo", "--memory", filled[0][:8]).out.startswith("Undid 2: edit")
    assert cli("undo", entry["operation_id"][:8]).out.startswith("Undid 3: edit")
    assert cli("undo", "3").code == 1
    assert cli("undo", "99").code == 3
    assert cli("undo", "--actor", "nobody").code == 1
    assert cli("undo", "1", "--last").code == 2
    assert cli("undo", "--since", "1h").out == "Undid 1: remember_many, 4 rows\n"
    assert cli("undo").code == 1


def test_undo_says_whose_it_was(cli: Runner, path: Path) -> None:
    """Who takes back an agent's work for his own slip must see that he did."""
    with MemoryStore(path, actor="mcp\x1b") as store:
        id = store.remember("an agent's").id
    assert cli("undo").out == f'Undid 1: remember {id[:8]} "an agent\'s" (done by mcp\\x1b)\n'


def test_a_dry_run_shows_and_changes_nothing(cli: Runner, filled: list[str]) -> None:
    """Whoever hesitates must see the rows, and the refusal, before anything happens."""
    cli("edit", filled[0], "-i", "0.1")
    journal = cli("journal", "tail").out
    done = cli("undo", "--dry-run")
    assert done.out.startswith(f"Would undo 2: edit {filled[0][:8]}: importance")
    assert f"changed\tmemory\t{filled[0]}\timportance\t" in done.out
    assert json.loads(cli("undo", "--dry-run", "--format", "jsonl").out)["after"].get("text")
    refused = cli("undo", "1", "--dry-run")
    assert (refused.code, filled[0] in refused.err) == (1, True)
    assert "Would undo 1: remember_many 4 rows" in refused.out
    assert len(cli("undo", "--since", "1h", "--dry-run").lines) == 2 + 1 + 4
    assert cli("journal", "tail").out == journal
    assert cli("undo", "--session", "none", "--dry-run").code == 1


def test_a_dry_run_does_not_advise_what_cannot_help(cli: Runner, filled: list[str]) -> None:
    """No undoing of later operations brings back what was purged."""
    cli("trash", "put", filled[0])
    cli("trash", "purge", "--yes")
    refused = cli("undo", "--since", "1h", "--dry-run")
    assert refused.code == 1
    assert refused.err == cli("undo", "--since", "1h").err
    assert "was purged from the trash. Nothing was changed; " in refused.err
    assert "later operations" not in refused.err


def test_one_memory_is_counted_as_one(cli: Runner) -> None:
    """A question about "all 1 memories" reads as if nobody had looked."""
    cli("remember", "Deploys go out on Tuesdays")
    assert "Forget the only memory of the collection 'default'?" in cli("nuke").err
    assert cli("nuke", "-y").out == "Forgot 1 memory. To bring back: houkai undo\n"


def test_history_outlives_its_memory(cli: Runner, filled: list[str]) -> None:
    """What was forgotten is what people look up; its short id must still do."""
    cli("forget", filled[0], "-y")
    done = cli("history", filled[0][:8], "-f", "jsonl")
    assert [json.loads(line)["op"] for line in done.lines] == ["remember_many", "forget"]
    assert cli("show", filled[0][:8]).code == 3


def test_journal_filters(cli: Runner, filled: list[str]) -> None:
    """A journal that cannot be narrowed is read by nobody."""
    cli("edit", filled[0], "-i", "0.1")
    cli("edit", filled[1], "-i", "0.1")
    assert len(cli("journal", "tail", "--op", "edit", "-f", "jsonl").lines) == 2
    assert len(cli("journal", "tail", "--memory", filled[0][:8], "-f", "jsonl").lines) == 2
    assert cli("journal", "tail", "--actor", "mcp").err.startswith("The journal has nothing")
