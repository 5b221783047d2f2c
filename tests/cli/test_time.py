"""Past states, what changed between two of them, and how much of them is kept."""

from __future__ import annotations

import json
from pathlib import Path

from houkai.storage.database import Database
from tests.cli.conftest import Runner, only


def at(cli: Runner, number: int) -> str:
    """Return the moment at which an operation was done."""
    entries = [json.loads(line) for line in cli("journal", "tail", "-f", "jsonl").lines]
    return next(repr(entry["ts"]) for entry in entries if entry["operation"] == number)


def test_past_states_are_as_they_were(cli: Runner, filled: list[str]) -> None:
    """Who asks what was known then must not be told what is known now."""
    then = at(cli, 1)
    cli("edit", filled[0], "--text", "Deploys are frozen")
    cli("forget", filled[1], "-y")
    assert len(cli("state-at", then, "-f", "jsonl").lines) == 4
    assert len(cli("state-at", "now", "-f", "jsonl").lines) == 3
    assert only(cli("get-at", filled[1][:8], then, "-f", "jsonl"))["id"] == filled[1]
    assert only(cli("get-at", filled[0], then, "-f", "jsonl"))["text"].startswith("Deploys go")
    assert cli("get-at", filled[1], "now").code == 3
    assert cli("state-at", "someday").code == 1


def test_diff_tells_each_change(cli: Runner, filled: list[str]) -> None:
    """A comparison that misses a kind of change hides it."""
    then = at(cli, 1)
    assert cli("diff", then).err == "Nothing changed between the two.\n"
    cli("edit", filled[0], "-i", "0.1", "--author", "Bo")
    cli("link", filled[0], filled[2], "-r", "derived_from")
    cli("trash", "put", filled[1])
    found = {
        (record["change"], record["kind"]): record
        for record in map(json.loads, cli("diff", then, "-f", "jsonl").lines)
    }
    assert set(found) == {
        ("changed", "memory"),
        ("removed", "memory"),
        ("added", "link"),
        ("added", "trash"),
    }
    table = cli("diff", then, "-f", "rich").out
    assert "importance: 0.5 -> 0.1" in table
    assert f"{filled[0][:8]}|derived_from|{filled[2][:8]}" in table
    fields = [line.split("\t")[3] for line in cli("diff", then).lines if "changed" in line]
    assert fields == ["importance,author"]


def test_prune_is_a_rehearsal_until_applied(cli: Runner, filled: list[str]) -> None:
    """Dropping the past cannot be undone, so that it must not happen by the way."""
    cli("edit", filled[0], "-i", "0.1")
    cli("edit", filled[0], "-i", "0.2")
    before = cli("journal", "tail").out
    assert cli("journal", "prune", "--keep-last", "1").out.startswith("Would drop")
    assert cli("journal", "tail").out == before
    assert cli("journal", "prune").code == 1
    done = cli("journal", "prune", "--before", "2090-01-01", "--apply", "--json")
    told = json.loads(done.out)
    assert told["images"] > 0
    assert not told["dry_run"]
    assert cli("undo", "2").code != 0
    assert cli("journal", "verify").code == 0


def test_verify_finds_a_forged_row(cli: Runner, filled: list[str], path: Path) -> None:
    """A journal that anybody may rewrite unseen proves nothing."""
    assert filled
    assert cli("journal", "verify").out == "Every operation matches its hash.\n"
    database = Database(path)
    database.write(lambda connection: connection.execute("update operation set actor = 'me'"))
    database.close()
    done = cli("journal", "verify")
    assert (done.code, done.out) == (1, "")
    assert done.err == "Operation 1 does not match what is stored.\n"
