"""What the commands that write and find do to the store, and what they answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from houkai import MemoryStore
from houkai.testing import HashingEmbedder
from tests.cli.conftest import Runner, only, stored


def test_remember_takes_every_field(cli: Runner, path: Path) -> None:
    """A flag that is parsed and then dropped loses what the user said, silently."""
    done = cli(
        *("remember", "Deploys are slow", "-t", "episodic", "-g", "ops", "-g", "a,b", "-i", "0.8"),
        *("-s", "run.md", "--ttl", "3600", "--polarity", "-1", "--pin", "--trust", "reported"),
        *("--valid-from", "2020-01-01", "--valid-until", "2030-01-01", "--created-at", "1d"),
        *("--author", "Ana", "--position", "7", "--entity", "Bob", "-f", "jsonl"),
    )
    record = only(done)
    assert stored(path)[0].to_dict() == record
    assert record["expires_at"] - record["created_at"] == pytest.approx(86_400 + 3600, abs=60)
    given = {
        "type": "episodic", "tags": ["ops", "a,b"], "importance": 0.8, "source": "run.md",
        "polarity": -1, "pinned": True, "trust": "reported", "author": "Ana", "position": 7,
        "entities": ["Bob"], "valid_from": 1_577_836_800.0, "valid_until": 1_893_456_000.0,
    }  # fmt: skip
    assert {name: record[name] for name in given} == given


def test_remember_prints_the_id_alone(cli: Runner, path: Path) -> None:
    """`id=$(houkai remember ...)` must hold nothing but the id."""
    done = cli("remember", "Deploys are slow")
    assert done.out == stored(path)[0].id + "\n"
    assert done.err == ""


@pytest.mark.parametrize("argument", [[], ["-"]])
def test_remember_reads_a_pipe(argument: list[str], cli: Runner, path: Path) -> None:
    """Text from another program must arrive whole: every sign, no byte order mark."""
    done = cli("remember", *argument, stdin="\ufeffnaïve\nцвет 🌍\n".encode())
    assert done.code == 0
    assert stored(path)[0].text == "naïve\nцвет 🌍"


def test_remember_refuses_what_is_no_text(cli: Runner, path: Path) -> None:
    """Bytes in another encoding would be stored as rubbish that nobody can search."""
    done = cli("remember", stdin=b"caf\xe9")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("Error: Standard input is no UTF-8 text.")
    assert not path.exists()


@pytest.mark.parametrize("limit", [-1, 2**64])
def test_a_limit_that_is_none_is_refused_as_it_was_typed(
    limit: int, cli: Runner, filled: list[str]
) -> None:
    """-1 would show nothing, as if nothing were there, and others be refused as numbers next to
    them.
    """
    done = cli("list", "--limit", str(limit))
    assert (done.code, done.out) == (1, "")
    assert f"got {limit}." in done.err


def test_remember_idempotent_keeps_one(cli: Runner, filled: list[str], path: Path) -> None:
    """A script that runs twice must not remember twice when asked not to."""
    done = cli("remember", "payments FAILED on Monday", "--idempotent")
    assert done.out.strip() == filled[2]
    assert len(stored(path)) == 4


def test_edit_changes_what_flags_name(cli: Runner, filled: list[str], path: Path) -> None:
    """An edit that touches a field nobody named destroys it."""
    before = {memory.id: memory for memory in stored(path)}[filled[0]].to_dict()
    record = only(
        cli("edit", filled[0][:8], "-s", "x", "--tag", "new", "--expires-at", "7d", "-f", "jsonl")
    )
    changed = {name for name in record if record[name] != before[name]}
    assert changed == {"source", "tags", "expires_at", "position"} - (
        {"position"} if record["position"] == before["position"] else set()
    )
    assert record["tags"] == ["new"]


def test_edit_clears_with_blank_and_zero(cli: Runner, filled: list[str]) -> None:
    """What can be set must be possible to take away again."""
    cli("edit", filled[3], "--expires-at", "7d", "-g", "x", "--entity", "y")
    record = only(
        cli(
            "edit",
            filled[3],
            "--expires-at",
            "0",
            "-s",
            "",
            "-g",
            "",
            "--entity",
            "",
            "-f",
            "jsonl",
        )
    )
    found = {name: record[name] for name in ("expires_at", "source", "tags", "entities")}
    assert found == {"expires_at": None, "source": None, "tags": [], "entities": []}


def test_edit_without_a_change_says_so(cli: Runner, filled: list[str]) -> None:
    """An edit that changed nothing must not be mistaken for one that did."""
    done = cli("edit", filled[0], "-i", "0.5")
    assert done.out == f"{filled[0][:8]} is as it was\n"


def test_tag_adds_and_takes_off(cli: Runner, filled: list[str]) -> None:
    """Tags must be changed one by one, without retyping the others."""
    done = cli("tag", filled[0], "-a", "new", "-a", "ops", "-r", "release", "-f", "jsonl")
    assert only(done)["tags"] == ["ops", "new"]
    assert cli("tag", filled[0]).code == 2


@pytest.mark.parametrize(
    ("delta", "importance"),
    [("+0.2", 0.7), ("-0.1", 0.4), ("=0.9", 0.9), ("+9", 1.0), ("-9", 0.0), ("-.25", 0.25)],
)
def test_bump_moves_importance(
    delta: str, importance: float, cli: Runner, filled: list[str]
) -> None:
    """A change that begins with a minus must not be taken for a flag."""
    assert only(cli("bump", filled[0], delta, "-f", "jsonl"))["importance"] == importance


@pytest.mark.parametrize("delta", ["0.5", "=nan", "+inf", "=2", "much"])
def test_bump_refuses_what_is_no_change(delta: str, cli: Runner, filled: list[str]) -> None:
    """A bare number could mean either; NaN would rank above everything."""
    assert cli("bump", filled[0], delta).code == 1


def test_forget_takes_all_or_none(cli: Runner, filled: list[str], path: Path) -> None:
    """One wrong id in a list must not cost the memories named before it."""
    assert cli("forget", filled[0], "feedfeed", "--yes").code == 3
    assert len(stored(path)) == 4
    done = cli("forget", filled[0], filled[1][:8], filled[0][:8], "-y")
    assert done.code == 0
    assert [line.split()[1] for line in done.lines] == [filled[0][:8], filled[1][:8]]
    assert len(stored(path)) == 2
    assert cli("undo").code == 0
    assert len(stored(path)) == 4


def test_list_pages_by_short_id(cli: Runner, filled: list[str]) -> None:
    """A listing must go on where the last page ended, and say that it can."""
    done = cli("list", "-n", "2", "-f", "rich")
    assert done.err == f"Note: There is more: add --before {filled[2][:8]}\n"
    rest = cli("list", "--before", filled[2][:8], "-f", "jsonl")
    assert [json.loads(line)["id"] for line in rest.lines] == [filled[1], filled[0]]
    assert len(cli("list", "--all", "-f", "jsonl").lines) == 4
    assert cli("list", "--before", "2020-01-01", "-f", "jsonl").out == ""


def test_list_and_recall_filter(cli: Runner, filled: list[str]) -> None:
    """A filter that is parsed and then dropped shows what it was told to hide."""
    filters = {
        ("-g", "ops"): {0, 2}, ("-t", "feedback"): {1}, ("--min-importance", "0.8"): {1},
        ("--author", "Ana"): {2}, ("-s", "web.md"): {3}, ("--min-trust", "trusted"): {0, 1, 2},
        ("--until", "1d"): set[int](), ("--valid-at", "2000"): {0, 1, 2, 3},
    }  # fmt: skip
    for flags, places in filters.items():
        for command in (["list"], ["recall", "deploys", "-k", "9"]):
            done = cli(*command, *flags, "-f", "jsonl")
            assert {json.loads(line)["id"] for line in done.lines} == {filled[n] for n in places}


def test_recall_leaves_a_trace_only_when_asked(cli: Runner, filled: list[str]) -> None:
    """Looking around must be possible without making everything look used."""
    assert filled
    cli("recall", "deploys", "-k", "1", "--no-touch")
    assert only(cli("list", "-t", "procedural", "-f", "jsonl"))["access_count"] == 0
    cli("recall", "deploys", "-k", "1")
    assert only(cli("list", "-t", "procedural", "-f", "jsonl"))["access_count"] == 1


def test_recall_of_nothing_stays_parseable(cli: Runner, path: Path) -> None:
    """A script that reads an empty answer must find an empty answer, not prose."""
    MemoryStore(path).close()
    for more in ([], ["--explain"]):
        nothing = cli("recall", "x", *more).out
        cli("remember", "x")
        assert nothing == cli("recall", "x", *more).lines[0] + "\n"
        cli("undo")
    assert nothing.endswith("\ttext\tscore\texplain\n")
    done = cli("recall", "x", "-f", "json")
    assert (done.out, done.err) == ("[]\n", "No memories found.\n")


def test_recall_tells_what_it_could_not_do(
    cli: Runner, filled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recall by words alone answers less; who asked must know, in one line off the pipe."""
    assert filled
    monkeypatch.setattr("houkai.store.as_embedder", lambda _: HashingEmbedder(32))
    done = cli("recall", "deploys", "-f", "jsonl")
    assert done.code == 0
    assert done.out
    assert done.err.startswith("Note: Recall by words only")
    assert done.err.count("\n") == 1


def test_neighbors_of_nothing_have_the_same_columns(cli: Runner, filled: list[str]) -> None:
    """A script that cuts the relation out must find its column where there are no rows too."""
    nothing = cli("neighbors", filled[0]).out
    cli("link", filled[0], filled[1])
    assert nothing == cli("neighbors", filled[0]).lines[0] + "\n"


def test_stats_name_the_file_from_anywhere(
    cli: Runner, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path as it was typed means nothing to somebody in another folder."""
    MemoryStore(path).close()
    monkeypatch.chdir(path.parent)
    told = json.loads(cli("--db", path.name, "stats", "--json").out)
    assert told["path"] == str(path)
