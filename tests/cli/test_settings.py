"""Which file a command works on, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Runner, stored


def test_place_is_taken_from_either_side(cli: Runner, tmp_path: Path) -> None:
    """People type --db where they think of it; a file that is silently another one is the worst."""
    file = str(tmp_path / "other.db")
    cli("--db", file, "-C", "work", "remember", "one")
    cli("remember", "two", "--db", file, "-C", "work")
    assert {memory.text for memory in stored(Path(file), "work")} == {"one", "two"}
    assert "work" in cli("stats", "-S", file, "--collection", "work").out
    assert cli("journal", "tail", "-S", file, "-C", "work", "-f", "jsonl").out.count("\n") == 2


def test_a_mistyped_collection_is_told(cli: Runner) -> None:
    """Nothing found in the wrong place reads like nothing known."""
    for name in ("work", "home"):
        cli("remember", "one", "-C", name)
    told = "Note: There is no collection 'wrok' yet; the file has: home, work.\n"
    for command in (["list"], ["recall", "one"], ["pack", "one"], ["stats"]):
        assert told in cli(*command, "-C", "wrok").err
        assert told not in cli(*command, "-C", "work").err
    cli("nuke", "-C", "work", "-y")
    assert "There is no collection" not in cli("list", "-C", "work").err


def test_stats_keep_the_collection_and_the_file_apart(cli: Runner) -> None:
    """Three links under two memories of a collection would be those of another one."""
    one, two = (cli("remember", text, "-C", "work").out.strip() for text in ("one", "two"))
    cli("link", one, two, "-C", "work")
    cli("remember", "three", "-C", "home")
    lines = cli("stats", "-C", "home").lines
    file = next(n for n, line in enumerate(lines) if line.startswith("file "))
    assert [line.split(maxsplit=1) for line in lines[:file]] == [
        ["collection", "home"],
        ["memories", "1 (1 semantic)"],
    ]
    assert ["collections", "2 (home, work)"] in [one.split(maxsplit=1) for one in lines[file:]]
    assert ["links", "1"] in [one.split() for one in lines[file:]]
    for n in range(30):
        cli("remember", "x", "-C", f"c{n:02}")
    assert "32 (c00, c01," in cli("stats").out
    assert ", c19, …)" in cli("stats").out
    assert ", c18, c19 and more.\n" in cli("list", "-C", "wrok").err


def test_settings_come_in_order(
    cli: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flag, environment, config file, default: the wrong order reads somebody else's memories."""
    config = tmp_path / "config.toml"
    config.write_text(f'db = {json.dumps(str(tmp_path / "config.db"))}\ncollection = "configured"')
    monkeypatch.setenv("HOUKAI_CONFIG", str(config))

    def place() -> Any:
        return json.loads(cli("stats", "--json").out)

    cli("remember", "makes the file that HOUKAI_DB names")
    monkeypatch.setenv("HOUKAI_COLLECTION", "environment")
    assert Path(place()["path"]).name == "memory.db"
    assert place()["collection"] == "environment"
    monkeypatch.delenv("HOUKAI_DB")
    monkeypatch.delenv("HOUKAI_COLLECTION")
    assert Path(place()["path"]).name == "config.db"
    assert place()["collection"] == "configured"
    monkeypatch.delenv("HOUKAI_CONFIG")
    assert Path(place()["path"]) == Path.home() / ".houkai" / "memory.db"


def test_the_doctor_names_a_setting_that_nothing_reads(
    cli: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mistyped key is silently the default, and nobody learns why."""
    config = tmp_path / "config.toml"
    monkeypatch.setenv("HOUKAI_CONFIG", str(config))
    cli("remember", "one")
    config.write_text('colection = "work"\neditor = "vi"')
    done = cli("doctor")
    assert done.out.startswith("FAIL  settings ")
    assert "sets what nothing reads: colection  It may set:" in done.out
    assert done.code == 1
    config.write_text('collection = "work"\neditor = "vi"')
    assert cli("doctor").out.startswith("ok    settings ")


def test_errors_are_one_line(cli: Runner, tmp_path: Path) -> None:
    """A traceback for a user's slip hides what to do; a bug must keep its own."""
    (tmp_path / "note.txt").write_text("no database, but longer than a header" * 9)
    done = cli("--db", str(tmp_path / "note.txt"), "list")
    assert done.code == 1
    assert done.err.startswith("Error: ")
    assert done.err.count("\n") == 1
    assert "choose another path" in done.err


READING = (
    ("list",),
    ("recall", "anything"),
    ("pack", "anything"),
    ("show", "1234"),
    ("stats",),
    ("history", "1234"),
    ("journal", "tail"),
    ("journal", "verify"),
    ("state-at", "now"),
    ("tags", "list"),
    ("trash", "list"),
    ("conflicts",),
    ("neighbors", "1234"),
    ("doctor",),
    ("doctor", "--repair"),
    ("undo",),
    ("nuke", "--yes"),
    ("reembed", "--yes"),
)


@pytest.mark.parametrize("command", READING, ids=" ".join)
@pytest.mark.parametrize("named", ["flag", "environment"])
def test_a_mistyped_path_is_refused(
    named: str, command: tuple[str, ...], cli: Runner, path: Path, tmp_path: Path
) -> None:
    """An empty file in the place of a slip answers every question with nothing, and stays."""
    missing = tmp_path / "missing.db" if named == "flag" else path
    done = cli(*(("--db", str(missing)) if named == "flag" else ()), *command)
    assert done.code == 1
    assert done.err == (
        f"Error: There is no memory file at {missing}."
        " Check the path; `houkai remember` makes a new file.\n"
    )
    assert not missing.exists()


def test_remember_makes_the_file_that_is_named(cli: Runner, tmp_path: Path) -> None:
    """A new project's file must be as easy to begin as to write `--db`."""
    file = tmp_path / "new" / "memory.db"
    assert cli("--db", str(file), "remember", "one").code == 0
    assert [memory.text for memory in stored(file)] == ["one"]


def test_the_default_file_reads_as_empty(cli: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newcomer who looks before writing has mistyped nothing."""
    monkeypatch.delenv("HOUKAI_DB")
    done = cli("list")
    assert (done.code, done.err) == (0, "No memories found.\n")


def test_version_is_told(cli: Runner) -> None:
    """The first line of every bug report must be easy to get."""
    from houkai import __version__

    assert cli("--version").out == f"houkai {__version__}\n"
    assert f"houkai  {__version__}" in cli("version").out
