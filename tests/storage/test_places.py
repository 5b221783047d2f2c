"""Where a store may lie: any name, folders made on the way, read-only disks, whole copies."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from houkai import HoukaiError, MemoryStore, StorageError
from houkai.storage import writer
from houkai.storage.files import APPLICATION_ID
from tests.conftest import Opener
from tests.support import contents, folder, is_one_sentence, run, sha256, texts


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


def test_a_read_only_file_with_a_log_is_refused(
    open_store: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read without its log, it would answer as if the last changes had never been made."""
    monkeypatch.setattr(writer, "QUIET_S", 1_000)
    inner = tmp_path / "inner"
    store = open_store(inner / "memory.db")
    store.remember("only in the log")
    code = """
import sys
from houkai import MemoryStore, ReadOnly
from houkai.testing import HashingEmbedder
from tests.support import obey_permissions
obey_permissions()
try:
    MemoryStore(sys.argv[1], embedder=HashingEmbedder(64))
except ReadOnly as error:
    print(error)
"""
    inner.chmod(0o500)
    try:
        said = run(code, str(inner / "memory.db"))
    finally:
        inner.chmod(0o700)
    assert "memory.db-wal" in said


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


def test_new_folders_reach_the_disk(
    open_store: Opener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite syncs the file's own folder only: a power cut would take a new one with the file."""
    synced: set[int] = set()
    sync = os.fsync

    def noting(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    open_store(tmp_path / "a" / "b" / "memory.db").close()
    assert {tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino} <= synced
