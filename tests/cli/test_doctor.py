"""The doctor finds what was broken on purpose, and breaks nothing itself."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from houkai.embed import lockfile
from houkai.storage import connection as sqlite
from tests.cli.conftest import Runner
from tests.support import sha256


@pytest.fixture
def doctor(cli: Runner, path: Path, modelled: Path) -> Callable[..., dict[str, Any]]:
    """Copy a healthy file to the test's place, and return a function that examines it."""
    shutil.copy(modelled, path)

    def examine(*more: str) -> dict[str, Any]:
        done = cli("doctor", "--json", *more)
        told = json.loads(done.out)
        failed = {check["name"]: check["found"] for check in told["checks"] if not check["ok"]}
        assert done.code == bool(failed)
        assert told["ok"] == (not failed)
        return failed

    return examine


def tamper(path: Path, *statements: str) -> None:
    """Change a file behind houkai's back."""
    connection = sqlite.connect(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_a_healthy_file_is_left_as_it_was(doctor: Callable[..., Any], path: Path) -> None:
    """An examination that writes could do harm just when the file is in danger."""
    before = sha256(path)
    assert doctor() == {}
    assert sha256(path) == before
    assert [file.name for file in path.parent.iterdir() if file.is_file()] == [path.name]


def test_deep_asks_the_model_again(doctor: Callable[..., Any], cli: Runner, path: Path) -> None:
    """What only the model can tell must be asked of it where the user wants to be sure."""
    assert doctor("--deep") == {}
    assert "every vector is what the model makes of its text" in cli("doctor", "--deep").out
    tamper(path, "update embedding set vector = cast(zeroblob(20) || substr(vector, 21) as blob)")
    assert "meaning" in doctor("--deep")


def test_no_file_is_no_fault_and_none_is_made(
    cli: Runner, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first command of a newcomer must say that all is ready, and create nothing."""
    monkeypatch.delenv("HOUKAI_DB")
    done = cli("doctor")
    assert done.code == 0
    assert "not made yet" in done.out
    assert str(home / ".houkai" / "memory.db") in done.out
    assert not (home / ".houkai").exists()


@pytest.mark.parametrize("command", ["doctor", "list", "remember x"])
def test_a_folder_is_no_file(command: str, cli: Runner, tmp_path: Path) -> None:
    """Who gives the folder must be told so, not that it is in order for copying."""
    done = cli("--db", str(tmp_path), *command.split())
    assert done.code == 1
    said = f"{tmp_path} is a folder, not a memory file."
    assert (done.out + done.err).count(said) == 1
    assert "such as memory.db in it" in done.out + done.err
    assert "a plain copy of it is whole" not in done.out


def test_the_origin_of_the_path_is_told(cli: Runner, filled: list[str], path: Path) -> None:
    """Who looks for memories in the wrong file must learn what names that file."""
    done = cli("doctor")
    assert str(path) in done.out
    assert "from HOUKAI_DB" in done.out


@pytest.mark.parametrize(
    ("statements", "name"),
    [
        (["delete from embedding where pk = (select min(pk) from embedding)"], "vectors"),
        (["delete from memory_vec where rowid = (select min(rowid) from memory_vec)"], "sketches"),
        (["insert into memory_vec(rowid, collection, sketch) values (1, 1, vec_bit(zeroblob(48)))"],
         "sketches"),
        (["drop trigger memory_au", "update memory set text = 'other words'"], "words"),
        (["pragma foreign_keys = off", "delete from memory where pk = 2",
          "insert into tag(memory, name, ordinal) values (2, 'x', 0)"], "references"),
        (["update model set fingerprint = 'another'"], "model"),
        (["update operation set actor = 'somebody else'"], "journal"),
    ],
)  # fmt: skip
def test_each_fault_is_found(
    statements: list[str], name: str, doctor: Callable[..., Any], path: Path
) -> None:
    """A check that cannot fail tells nobody anything."""
    tamper(path, *statements)
    assert name in doctor()


def test_repair_makes_the_indexes_anew(doctor: Callable[..., Any], cli: Runner, path: Path) -> None:
    """What is derived must be possible to derive again, with nothing else changed."""
    before = cli("list", "-f", "json").out
    tamper(
        path,
        "delete from memory_vec",
        "insert into memory_fts(memory_fts) values ('delete-all')",
    )
    assert set(doctor()) == {"sketches", "words"}
    assert doctor("--repair") == {}
    assert cli("list", "-f", "json").out == before


def test_damage_is_told_in_a_sentence(doctor: Callable[..., Any], path: Path) -> None:
    """A file that cannot be read is the doctor's business; it must not fall ill itself."""
    damaged = bytearray(path.read_bytes())
    for page in range(2, len(damaged) // 4096):
        damaged[page * 4096 : page * 4096 + 64] = os.urandom(64)
    path.write_bytes(damaged)
    assert {"integrity", "file"} & set(doctor())


@pytest.mark.parametrize("content", [b"just a note " * 20, b"SQLite format 3\x00"])
def test_a_foreign_file_is_named(content: bytes, doctor: Callable[..., Any], path: Path) -> None:
    """Pointing --db at the wrong file is the commonest fault of all."""
    path.write_bytes(content)
    assert set(doctor()) == {"file"}
    assert path.read_bytes() == content


def test_a_file_in_use_is_told(doctor: Callable[..., Any], cli: Runner, path: Path) -> None:
    """Copying a file whose log lies beside it loses what is in the log."""
    assert doctor() == {}
    connection = sqlite.connect(str(path))
    connection.pragma("journal_mode", "wal")
    connection.execute("insert into meta(key, value) values ('test', 1)")
    done = cli("doctor")
    connection.close()
    assert done.code == 0
    assert "memory.db-wal" in done.out
    assert "Close every program" in done.out


def test_a_damaged_model_is_found(
    doctor: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model with one wrong byte gives vectors that agree with no other machine's."""
    model = lockfile.locked("all-MiniLM-L6-v2")
    folder = tmp_path / model.name
    shutil.copytree(model.folder, folder)
    monkeypatch.setattr(lockfile.LockedModel, "folder", folder)
    os.utime(folder / "tokenizer.json", (1, 1))
    assert doctor() == {}
    tokens = folder / "tokenizer.json"
    tokens.write_bytes(tokens.read_bytes().replace(b"[PAD]", b"[pad]", 1))
    assert "tokenizer.json" in doctor()["model files"]


def test_reembed_fills_what_is_missing(doctor: Callable[..., Any], cli: Runner, path: Path) -> None:
    """The doctor's advice must help: run as told, the same examination passes."""
    tamper(path, "delete from embedding")
    assert "vectors" in doctor()
    assert set(doctor("--repair")) == {"vectors"}
    assert "all-MiniLM-L6-v2" in cli("reembed", "--embedder", "minilm", "--yes").out
    assert doctor() == {}
