"""What a path may hold when a store is opened on it, and what is left when it is closed."""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from houkai import (
    Corrupt,
    Foreign,
    HoukaiError,
    MemoryStore,
    SchemaTooNew,
    StorageError,
)
from houkai.storage import migrate
from houkai.storage.connection import APPLICATION_ID
from tests.conftest import Opener
from tests.support import contents, folder, run, sha256, texts

Maker = Callable[[Path, bytes], object]


def good_file(open_store: Opener, path: Path) -> bytes:
    """Return the bytes of a closed file with some memories in it."""
    with open_store(path) as store:
        first = store.remember("alpha beta gamma", tags=["greek"], source="s", entities=["Alpha"])
        store.remember_many([f"{n} {'filler words ' * 40}" for n in range(20)])
        store.edit(first.id, text="alpha beta delta")
        store.forget(store.list_recent(1)[0].id)
    data = path.read_bytes()
    path.unlink()
    return data


def database(path: Path, *statements: str) -> None:
    """Make a SQLite file that is not houkai's."""
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def stamped(path: Path, good: bytes, version: int) -> None:
    """Write a houkai file that claims another schema number."""
    path.write_bytes(good)
    database(path, f"pragma user_version = {version}")


REFUSED: dict[str, tuple[type[HoukaiError], Maker]] = {
    "a text": (Foreign, lambda p, _: p.write_bytes(b"just some words\n" * 40)),
    "a short text": (Foreign, lambda p, _: p.write_bytes(b"hi")),
    "zeros": (Foreign, lambda p, _: p.write_bytes(bytes(8192))),
    "a foreign database": (Foreign, lambda p, _: database(p, "create table t(a)")),
    "a foreign application": (Foreign, lambda p, _: database(p, "pragma application_id = 7")),
    "a foreign version": (Foreign, lambda p, _: database(p, "pragma user_version = 7")),
    "a foreign wal database": (
        Foreign,
        lambda p, _: database(p, "pragma journal_mode = wal", "create table t(a)"),
    ),
    "a folder": (Foreign, lambda p, _: p.mkdir()),
    "a pipe": (Foreign, lambda p, _: os.mkfifo(p)),
    "a newer schema": (SchemaTooNew, lambda p, good: stamped(p, good, migrate.head() + 1)),
    "no schema": (Corrupt, lambda p, good: stamped(p, good, 0)),
    "one byte": (Corrupt, lambda p, good: p.write_bytes(good[:1])),
    "fifty bytes": (Corrupt, lambda p, good: p.write_bytes(good[:50])),
    "one page": (Corrupt, lambda p, good: p.write_bytes(good[:4096])),
    "one half": (Corrupt, lambda p, good: p.write_bytes(good[: len(good) // 2])),
    "all but a byte": (Corrupt, lambda p, good: p.write_bytes(good[:-1])),
    "a header and noise": (
        Corrupt,
        lambda p, good: p.write_bytes(good[:100] + random.Random(1).randbytes(len(good) - 100)),
    ),
    "a header and zeros": (Corrupt, lambda p, good: p.write_bytes(good[:100].ljust(len(good)))),
}


def is_one_sentence(error: HoukaiError) -> bool:
    """Say whether an error is what a person can read: one line, no driver's jargon."""
    message = str(error)
    jargon = ("apsw", "Traceback", "sqlite3_")
    return (
        message.endswith(".")
        and "\n" not in message
        and len(message) < 300
        and not any(word in message for word in jargon)
    )


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused_files_stay_as_they_were(name: str, open_store: Opener, path: Path) -> None:
    """Touching a file that is not ours, or is damaged, takes its owner's last chance."""
    kind, make = REFUSED[name]
    make(path, good_file(open_store, path))
    before = sha256(path) if path.is_file() else None
    with pytest.raises(HoukaiError) as caught:
        open_store()
    assert type(caught.value) is kind, caught.value
    assert is_one_sentence(caught.value)
    assert path.name in str(caught.value)
    assert folder(path) == [path.name]
    assert before == (sha256(path) if path.is_file() else None)


def test_a_foreign_log_is_not_folded_in(open_store: Opener, path: Path) -> None:
    """Another program's crashed database must not be recovered by a mere look at it."""
    code = """
import apsw, os, sys
c = apsw.Connection(sys.argv[1])
c.pragma("journal_mode", "wal")
c.execute("create table t(a); insert into t values (1)")
os._exit(0)
"""
    run(code, str(path))
    log = path.with_name(path.name + "-wal")
    before = sha256(path), sha256(log)
    with pytest.raises(Foreign):
        open_store()
    assert (sha256(path), sha256(log)) == before


def read_all(store: MemoryStore) -> list[str]:
    """Read what a file holds through every path that a user takes."""
    found = texts(store.list_recent(None))
    for memory in store.list_recent(None):
        store.history(memory.id)
        store.get(memory.id)
    store.recall("alpha filler", k=50, touch=False)
    store.state_at("now")
    store.journal(None)
    store.stats()
    return found


def damaged_reading(open_store: Opener, path: Path) -> list[str] | None:
    """Return what a damaged file tells, None when it is refused as such; never change it."""
    before = sha256(path)
    try:
        with open_store() as store:
            return read_all(store)
    except (Corrupt, Foreign) as error:
        assert is_one_sentence(error)
        return None
    finally:
        assert sha256(path) == before
        assert folder(path) == [path.name]


def test_every_zeroed_page_is_noticed_or_harmless(open_store: Opener, path: Path) -> None:
    """A lost page must end in a sentence, never in a traceback or in fewer memories."""
    good = good_file(open_store, path)
    path.write_bytes(good)
    with open_store() as store:
        whole = read_all(store)
    noticed = 0
    for start in range(4096, len(good), 4096):
        path.write_bytes(good[:start] + bytes(4096) + good[start + 4096 :])
        told = damaged_reading(open_store, path)
        noticed += told is None
        assert told in (None, whole), f"page {start // 4096 + 1} changed the answer"
    assert noticed > len(good) // 4096 // 2


@pytest.mark.parametrize("seed", range(30))
def test_noise_ends_in_a_sentence(seed: int, open_store: Opener, path: Path) -> None:
    """Bytes a disk turned over may be unreadable, but reading them must not crash or write."""
    chance = random.Random(seed)
    data = bytearray(good_file(open_store, path))
    for _ in range(chance.choice([1, 30, 3000])):
        data[chance.randrange(100, len(data))] = chance.randrange(256)
    path.write_bytes(data)
    damaged_reading(open_store, path)


def test_an_empty_file_becomes_a_store(open_store: Opener, path: Path) -> None:
    """`touch memory.db` or a temporary file's name is a fair place for a new store."""
    path.touch()
    with open_store() as store:
        store.remember("hello")
    assert path.stat().st_size > 0


def test_missing_folders_are_made_and_the_file_is_private(
    open_store: Opener, tmp_path: Path
) -> None:
    """Memories are nobody else's business, whatever the umask says."""
    path = tmp_path / "a" / "b c" / "memory.db"
    old = os.umask(0)
    try:
        store = open_store(path)
        store.remember("hello")
        modes = [stat.S_IMODE(entry.stat().st_mode) for entry in path.parent.iterdir()]
    finally:
        os.umask(old)
    assert modes == [0o600] * len(modes)
    assert len(modes) == 3


NAMES = ["with space.db", "übung ñ 日本.db", "what?.db", "a#b.db", "100%25.db", "a?b=c&mode=ro.db",
         "'quote\".db", "-dash.db", "file:x.db", "line\nbreak.db", "n" * 200 + ".db",
         ":memory:.db", "semi;colon.db", os.fsdecode(b"latin-\xe9.db")]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_file_name_works(name: str, open_store: Opener, tmp_path: Path) -> None:
    """A character that a URI treats specially must not send memories to another file."""
    path = tmp_path / name
    with open_store(path) as store:
        store.remember("hello")
    assert folder(path) == [name]
    with open_store(path) as store:
        assert texts(store.list_recent()) == ["hello"]


def test_a_relative_path_is_fixed_when_opened(
    open_store: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that changes its folder must not split its memory in two."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    store = open_store("memory.db")
    monkeypatch.chdir(tmp_path / "b")
    store.remember("hello")
    store.close()
    assert not list((tmp_path / "b").iterdir())
    assert [entry.name for entry in (tmp_path / "a").iterdir()] == ["memory.db"]


def test_the_default_place_is_in_the_home(open_store: Opener, home: Path) -> None:
    """Every door opens the same file when none is named."""
    with MemoryStore(embedder=open_store(":memory:").embedder) as store:
        assert store.db.path == home / ".houkai" / "memory.db"
    with open_store("~/there.db"):
        assert (home / "there.db").exists()


READ_ONLY = """
import sys
from pathlib import Path
from houkai import MemoryStore, ReadOnly
from houkai.testing import HashingEmbedder
from tests.support import obey_permissions
obey_permissions()
path = Path(sys.argv[1])
store = MemoryStore(path, embedder=HashingEmbedder(64))
assert [m.text for m in store.list_recent()] == ["kept"], store.list_recent()
assert store.recall("kept")[0].memory.text == "kept"
for change in (lambda: store.remember("no"), lambda: store.nuke(), lambda: store.undo_last()):
    try:
        change()
    except ReadOnly as error:
        print(error.line())
    else:
        raise SystemExit("a read-only file was changed")
store.close()
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_file_is_read_and_refuses_writes(
    what: str, open_store: Opener, tmp_path: Path
) -> None:
    """A backup on a read-only disk is still worth reading, and says why it takes nothing."""
    path = tmp_path / "inner" / "memory.db"
    with open_store(path) as store:
        store.remember("kept")
    before = sha256(path)
    locked = path if what == "file" else path.parent
    locked.chmod(0o400 if what == "file" else 0o500)
    try:
        said = run(READ_ONLY, str(path)).splitlines()
    finally:
        locked.chmod(0o700)
    assert len(said) == 3
    assert all("read-only" in line for line in said)
    assert sha256(path) == before
    assert folder(path) == ["memory.db"]


def test_a_new_file_in_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    """A mistyped place must be named, not left to the driver's words."""
    inner = tmp_path / "inner"
    inner.mkdir(mode=0o500)
    code = """
import sys
from houkai import MemoryStore, ReadOnly
from houkai.testing import HashingEmbedder
from tests.support import obey_permissions
obey_permissions()
for name in ("/memory.db", "/below/memory.db"):
    try:
        MemoryStore(sys.argv[1] + name, embedder=HashingEmbedder(64))
    except ReadOnly as error:
        print(error)
"""
    said = run(code, str(inner)).splitlines()
    inner.chmod(0o700)
    assert len(said) == 2
    assert not list(inner.iterdir())


def test_a_place_below_a_file_is_refused(open_store: Opener, path: Path) -> None:
    """A path through a file is a typing error that deserves a sentence."""
    path.write_bytes(b"")
    with pytest.raises(StorageError) as caught:
        open_store(path / "memory.db")
    assert is_one_sentence(caught.value)


def test_a_bad_option_leaves_nothing(open_store: Opener, path: Path) -> None:
    """A constructor that fails must not leave a file, nor a connection to one."""
    for options in ({"embedder": 5}, {"durability": "some"}, {"actor": ""}, {"collection": "*"}):
        with pytest.raises(HoukaiError):
            open_store(**options)
    assert folder(path) == []


def test_a_copy_of_a_closed_file_is_the_whole_store(open_store: Opener, tmp_path: Path) -> None:
    """The product is one file: copying it must carry everything."""
    with open_store() as store:
        memory = store.remember("hello", tags=["a"])
        store.edit(memory.id, text="hello again")
        held = contents(store)
        history = store.history(memory.id)
    other = tmp_path / "copy.db"
    other.write_bytes((tmp_path / "memory.db").read_bytes())
    with open_store(other) as copy:
        assert contents(copy) == held
        assert copy.history(memory.id) == history
        assert copy.recall("again")[0].memory.id == memory.id


def test_application_id_is_houkai(open_store: Opener, path: Path) -> None:
    """The `file` command and other tools know the format by this number."""
    open_store().close()
    assert path.read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big") == b"hkai"
