"""Bringing a file to the present schema: whole or not at all, a backup first, rivals welcome."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from houkai import ReadOnly, SchemaTooNew, StorageError
from houkai.storage import connection as sqlite
from houkai.storage import files, migrate
from tests.conftest import Opener
from tests.support import contents, dump, folder, run, sha256, texts

NEXT = migrate.head() + 1
GOOD_STEP = "create table extra(a integer) strict; alter table memory add column mood text;"
BAD_STEP = GOOD_STEP + "insert into memory(no_such_column) values (1);"
BACKUP = f"memory.db.before-schema-{NEXT}-from-{NEXT - 1}.bak"


def upgrade_to(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Let houkai know a newer schema step than the released ones."""
    steps = (*migrate.steps(), (NEXT, step))
    monkeypatch.setattr(migrate, "steps", lambda: steps)


def dump_file(path: Path) -> object:
    """Return everything a closed file holds."""
    with sqlite.connect(sqlite.uri(path)) as connection:
        found = dump(connection)
    connection.close()
    return found


@pytest.fixture
def old_file(open_store: Opener, path: Path) -> Path:
    """Return a closed file of the present schema with memories in it."""
    with open_store() as store:
        memory = store.remember("kept", tags=["a"])
        store.edit(memory.id, importance=0.9)
    return path


def test_a_new_file_has_the_present_schema(open_store: Opener, path: Path) -> None:
    """A store is created by the same steps that upgrade an old one."""
    open_store().close()
    connection = apsw.Connection(str(path))
    assert connection.pragma("user_version") == migrate.head()
    assert connection.pragma("application_id") == files.APPLICATION_ID
    connection.close()


def test_steps_are_numbered_without_gaps() -> None:
    """A missing number would leave some files between two schemas for ever."""
    assert [number for number, _ in migrate.steps()] == list(range(1, migrate.head() + 1))


def test_a_migration_keeps_everything_and_makes_a_backup(
    old_file: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who upgrades must find all memories, and the file as it was before."""
    before = dump_file(old_file)
    with open_store() as store:
        held = contents(store)
    upgrade_to(monkeypatch, GOOD_STEP)
    with open_store() as store:
        assert contents(store) == held
        assert texts(store.state_at("now")) == ["kept"]
        with store.read() as connection:
            assert connection.pragma("user_version") == NEXT
            assert connection.execute("select count(*) from extra").get == 0
    assert folder(old_file) == ["memory.db", BACKUP]
    monkeypatch.undo()
    assert dump_file(old_file.with_name(BACKUP)) == before
    with open_store(old_file.with_name(BACKUP)) as old:
        assert contents(old) == held


def test_a_failed_migration_changes_nothing(
    old_file: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a migration would be a file that neither version reads."""
    before = dump_file(old_file)
    upgrade_to(monkeypatch, BAD_STEP)
    with pytest.raises(StorageError):
        open_store()
    assert dump_file(old_file) == before
    monkeypatch.undo()
    with open_store() as store:
        assert texts(store.list_recent()) == ["kept"]


def test_the_backup_is_of_the_last_moment(
    old_file: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup left by a failed attempt months ago must not pass for today's."""
    with monkeypatch.context() as patch:
        upgrade_to(patch, BAD_STEP)
        with pytest.raises(StorageError):
            open_store()
    with open_store() as store:
        store.remember("added later")
    with monkeypatch.context() as patch:
        upgrade_to(patch, GOOD_STEP)
        open_store().close()
    with open_store(old_file.with_name(BACKUP)) as backup:
        assert texts(backup.list_recent()) == ["added later", "kept"]


def test_a_damaged_file_is_not_migrated(
    old_file: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration over damage could make the damage permanent."""
    data = bytearray(old_file.read_bytes())
    with sqlite.connect(sqlite.uri(old_file)) as connection:
        root = connection.execute("select rootpage from sqlite_schema where name = 'memory'").get
    connection.close()
    data[(root - 1) * 4096 : root * 4096] = bytes(4096)
    old_file.write_bytes(data)
    before = sha256(old_file)
    upgrade_to(monkeypatch, GOOD_STEP)
    with pytest.raises(StorageError, match="damaged"):
        open_store()
    assert sha256(old_file) == before
    assert folder(old_file) == ["memory.db"]


def test_an_upgraded_file_is_refused_by_the_old_version(
    old_file: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message must tell the user to upgrade, before anything is touched."""
    with monkeypatch.context() as patch:
        upgrade_to(patch, GOOD_STEP)
        open_store().close()
    before = sha256(old_file)
    with pytest.raises(SchemaTooNew, match="newer houkai") as caught:
        open_store()
    assert "pip install --upgrade" in caught.value.hint
    assert sha256(old_file) == before


def test_a_read_only_file_of_an_old_schema_says_so(
    old_file: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot be migrated where it lies, so it must say what to do."""
    upgrade_to(monkeypatch, GOOD_STEP)
    monkeypatch.setattr(files, "writable", lambda _: False)
    with pytest.raises(ReadOnly, match="newer schema"):
        open_store()


RIVALS = """
import os, sys
import numpy
from houkai import MemoryStore
from houkai.storage import migrate
from houkai.testing import HashingEmbedder
path, rivals, step = sys.argv[1:]
if step:
    steps = (*migrate.steps(), (migrate.head() + 1, step))
    migrate.steps = lambda: steps
waiting, go = os.pipe()
children = []
for n in range(int(rivals)):
    child = os.fork()
    if not child:
        os.close(go)
        os.read(waiting, 1)  # returns when the starter lets go of the other end
        with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
            store.remember(f"rival {n}")
        sys.exit(0)
    children.append(child)
os.close(go)
print([os.waitpid(child, 0)[1] for child in children])
"""


def race(path: Path, rivals: int, step: str) -> None:
    """Let processes open a file at the same moment, each adding one memory."""
    assert run(RIVALS, str(path), str(rivals), step).strip() == str([0] * rivals)


@pytest.mark.parametrize("rivals", [2, 8])
def test_processes_that_create_at_once_share_one_file(
    rivals: int, path: Path, open_store: Opener
) -> None:
    """A shell, an editor and an agent start together on a new machine."""
    race(path, rivals, "")
    with open_store() as store:
        assert sorted(texts(store.list_recent(None))) == [f"rival {n}" for n in range(rivals)]
        with store.read() as connection:
            assert connection.execute("pragma integrity_check").get == "ok"
    assert folder(path) == ["memory.db"]


def test_processes_that_migrate_at_once_keep_everything(
    old_file: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade every agent starts at once and finds the old schema."""
    race(old_file, 4, GOOD_STEP)
    assert folder(old_file) == ["memory.db", BACKUP]
    assert texts_of(open_store, old_file.with_name(BACKUP)) == ["kept"]
    upgrade_to(monkeypatch, GOOD_STEP)
    assert texts_of(open_store, old_file) == ["kept", "rival 0", "rival 1", "rival 2", "rival 3"]


def texts_of(open_store: Opener, path: Path) -> list[str]:
    """Return the sorted texts of a file."""
    with open_store(path) as store:
        return sorted(texts(store.list_recent(None)))


def test_a_killed_migration_is_repeated(
    old_file: Path, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laptop that dies during an upgrade opens the file again the next day."""
    code = """
import os, sys
from houkai import MemoryStore
from houkai.storage import migrate
from houkai.testing import HashingEmbedder
steps = (*migrate.steps(), (migrate.head() + 1, sys.argv[2]))
migrate.steps = lambda: steps
migrate._stamp = lambda connection: None
apply = migrate._apply
def applied(connection, present):
    apply(connection, present)
    os._exit(9)
migrate._apply = applied
MemoryStore(sys.argv[1], embedder=HashingEmbedder(64))
"""
    with pytest.raises(AssertionError):
        run(code, str(old_file), GOOD_STEP)
    upgrade_to(monkeypatch, GOOD_STEP)
    assert texts_of(open_store, old_file) == ["kept"]
    assert folder(old_file) == ["memory.db", BACKUP]


def test_a_store_id_is_given_once(open_store: Opener) -> None:
    """Merging two files needs to know which is which."""
    ids = []
    for _ in range(2):
        with open_store() as store, store.read() as connection:
            ids.append(connection.execute("select value from meta where key = 'store_id'").get)
    assert ids[0] == ids[1]
    with open_store(":memory:") as other, other.read() as connection:
        assert connection.execute("select value from meta where key = 'store_id'").get != ids[0]
