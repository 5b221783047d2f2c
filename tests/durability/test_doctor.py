"""Doctor names every damage, repairs what is derived, and leaves the rest as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from houkai import MemoryStore
from houkai.ops import doctor
from houkai.ops.looks import LOOKS
from houkai.storage import connection as sqlite
from tests.durability.checks import assert_sound, opened
from tests.support import contents, sha256

DERIVED: dict[str, tuple[str, set[str]]] = {
    "an index is missing": ("drop index memory_by_text", {"tables"}),
    "a trigger is missing": ("drop trigger memory_au", {"tables"}),
    "a view is another": (
        """drop view past_text;
           create view past_text(pk, text, words, names, dates, scope) as
             select pk, text, words, names, dates, 'scope' from past""",
        {"tables"},
    ),
    "the sketch table is gone": ("drop table memory_vec", {"tables", "sketches"}),
    "a sketch is gone": (
        "delete from memory_vec where rowid = (select min(rowid) from memory_vec)",
        {"sketches"},
    ),
    "a sketch too many": (
        """insert into memory_vec(rowid, collection, sketch)
           values (9999999, 1, vec_bit(x'00000000'))""",
        {"sketches"},
    ),
    "a sketch is another's": ("update embedding set sketch = x'ffffffff' where pk = 1",
                              {"signs"}),
    "a vector is zero": (
        "update embedding set vector = zeroblob(64) where pk = 1",
        {"vector values", "signs"},
    ),
    "a word index entry is gone": ("delete from memory_fts where rowid = 1", {"words"}),
    "the word index is empty": ("delete from memory_fts_data where id > 10", {"words", "indexes"}),
    "a past word index entry is gone": ("delete from past_fts where rowid = 1", {"past words"}),
    "index words are wrong": ("update memory set words = 'nonsense' where pk = 1", {"columns"}),
    "a date is wrong": ("update memory set dates = null where pk = 2", {"columns"}),
    "a hash is wrong": ("update memory set content_hash = 'x' where pk = 2", {"columns"}),
    "an end is wrong": ("update change set until = 3 where pk = 1", {"ends"}),
    "an image that stands has ended": ("update change set until = 9 where until > 99", {"ends"}),
    "a mark of undoing is gone": ("update operation set undone_by = null", {"undo marks"}),
    "a mark of undoing is wrong": ("update operation set undone_by = 5 where seq = 1",
                                   {"undo marks"}),
    "a memory's operation is wrong": ("update memory set operation = 1", {"origins"}),
    "a version is gone": ("delete from past where pk = 1", {"versions"}),
    "a version is another": ("update past set text = 'never said' where pk = 1",
                             {"versions", "past words"}),
    "a version never was": (
        """insert into past(id, operation, until, collection, type, text, text_hash, importance,
             polarity, trust, created_at, tags)
           values ('x', 1, 2, 1, 'semantic', 'never', x'00', 0.5, 0, 'trusted', 1, '[]')""",
        {"versions"},
    ),
}  # fmt: skip
"""Damages to what is derived, and the checks that name them."""

LASTING: dict[str, tuple[str, set[str]]] = {
    "a memory was changed": ("update memory set importance = 0.123 where pk = 1", {"memories"}),
    "a text was changed": ("update memory set text = 'never said' where pk = 1", {"memories"}),
    "a memory was deleted": ("delete from memory where pk = 2", {"memories"}),
    "a memory was added": (
        """insert into memory(id, collection, type, text, text_hash, content_hash, importance,
             created_at, operation) values ('x', 1, 'semantic', 'new', zeroblob(16), 'h', 0.5, 1, 1)
        """,
        {"memories"},
    ),
    "the journal was changed": (
        "update change set after = jsonb_set(after, '$.text', 'never said') where pk = 2",
        {"journal"},
    ),
    "an operation was changed": (
        "update operation set actor = 'somebody' where seq = 2",
        {"journal"},
    ),
    "an operation was deleted": ("delete from operation where seq = 2", {"journal", "references"}),
    "a link leads nowhere": (
        "insert into link(src, rel, dst, created_at) values (1, 'related', 99, 0)",
        {"references"},
    ),
    "somebody's trigger": (
        "create trigger spy after insert on memory begin select 1; end",
        {"foreign objects"},
    ),
    "vectors are gone": ("delete from embedding", {"vectors"}),
}
"""Damages that no repair may cover up."""


@pytest.fixture
def healthy(path: Path) -> Path:
    """Return a file with something of everything, closed."""
    with opened(path) as store:
        first = store.remember("the first memory names fooBar and snake_case", tags=["tag"])
        second = store.remember("the second memory", entities=["Anna"], author="user")
        store.link(first.id, second.id)
        store.edit(first.id, text="the first memory, edited", importance=0.9)
        store.undo_last()
        store.redo()
        store.trash(store.remember("the third memory").id)
        store.undo(store.remember("never mind").id and store.journal(1)[0])
    return path


def damage(path: Path, sql: str) -> None:
    """Change a file behind houkai's back."""
    held = sqlite.connect(sqlite.uri(path))
    held.pragma("foreign_keys", False)
    held.execute(sql)
    held.close()


def ill(path: Path) -> set[str]:
    """Return the names of the checks that find something."""
    checks = doctor.examine(path)
    assert all(check.found for check in checks)
    assert all(check.hint for check in checks if not check.ok)
    return {check.name for check in checks if not check.ok} - {"model"}


def test_a_healthy_file_is_well(healthy: Path) -> None:
    """A doctor that cries wolf is not listened to when it matters."""
    before = sha256(healthy)
    assert ill(healthy) == set()
    assert sha256(healthy) == before


@pytest.mark.parametrize("name", list(DERIVED))
def test_derived_damage_is_named_and_repaired(name: str, healthy: Path) -> None:
    """A damaged index makes recall miss memories without a word; a repair must touch no other."""
    with opened(healthy) as store:
        held = contents(store)
    sql, expected = DERIVED[name]
    damage(healthy, sql)
    assert expected <= ill(healthy)
    left = {check.name for check in doctor.repair(healthy) if not check.ok} - {"model"}
    assert left <= ({"vectors"} if name == "a vector is zero" else set())
    if not left:
        assert assert_sound(healthy) == held


@pytest.mark.parametrize("name", list(LASTING))
def test_other_damage_is_named_and_not_covered_up(name: str, healthy: Path) -> None:
    """A repair that invents or drops what a user stored would be the worst damage of all."""
    sql, expected = LASTING[name]
    damage(healthy, sql)
    assert expected <= ill(healthy)
    left = {check.name for check in doctor.repair(healthy) if not check.ok}
    assert expected <= left


def test_a_damaged_index_page_is_repaired(healthy: Path) -> None:
    """An index that has lost a row hides a memory from some questions and shows it to others."""
    with opened(healthy) as store:
        held = contents(store)
        found = store.list_recent(None)[0].content_hash.encode()
        with store.read() as reading:
            page = reading.execute(
                """select pageno from dbstat
                   where name = 'memory_by_content' and pagetype = 'leaf'"""
            ).get
    data = bytearray(healthy.read_bytes())
    at = data.index(found, (page - 1) * 4096)
    data[at : at + 4] = b"zzzz"
    healthy.write_bytes(data)
    assert "indexes" in ill(healthy)
    doctor.repair(healthy)
    assert assert_sound(healthy) == held


def test_a_file_with_damaged_pages_is_not_repaired(healthy: Path) -> None:
    """Rebuilding indexes over lost pages would make the loss look whole."""
    with opened(healthy) as store, store.read() as reading:
        page = reading.execute("select pageno from dbstat where name = 'tag'").get
    data = bytearray(healthy.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = bytes(4096)
    healthy.write_bytes(data)
    before = sha256(healthy)
    assert "integrity" in ill(healthy)
    assert "integrity" in {check.name for check in doctor.repair(healthy) if not check.ok}
    assert sha256(healthy) == before


FILES: dict[str, Callable[[bytes], bytes]] = {
    "nothing but zeros": lambda whole: bytes(len(whole)),
    "another program's": lambda whole: b"GIF89a" + whole[6:],
    "cut in the header": lambda whole: whole[:60],
    "cut in half": lambda whole: whole[: len(whole) // 2],
    "without its first page's tables": lambda whole: whole[:100] + bytes(3996) + whole[4096:],
}


@pytest.mark.parametrize("name", list(FILES))
def test_a_file_that_cannot_be_opened_is_told_of(name: str, healthy: Path) -> None:
    """The one time a user needs the doctor it must not answer with a traceback."""
    healthy.write_bytes(FILES[name](healthy.read_bytes()))
    before = sha256(healthy)
    assert ill(healthy)
    assert sha256(healthy) == before


def test_a_file_that_is_not_there_is_not_made(path: Path) -> None:
    """Asking after a file must not leave one."""
    assert [check.name for check in doctor.examine(path)] == ["file"]
    assert not path.exists()


def test_marks_follow_undo_redo_and_batches(path: Path) -> None:
    """The marks are played back by other code than made them; both must agree on every order."""
    with opened(path) as store:
        first = store.remember("first").id
        store.remember_many([f"item {n}" for n in range(6)], batch_size=2)
        store.edit(first, importance=0.1)
        for _ in range(3):
            store.undo_last()
        store.redo()
        store.redo()
        store.undo_last()
        since = store.journal(3)[-1].ts
        store.undo_since(since)
        store.redo()
        store.prune_journal(keep_last=5)
        store.undo_last()
    assert ill(path) == set()


def test_a_file_in_use_can_be_examined(
    store: MemoryStore, open_store: Callable[..., MemoryStore]
) -> None:
    """A user asks while the server runs; neither may disturb the other."""
    if store.db.path is None:
        return
    store.remember("in use")
    assert all(check.ok or check.name == "model" for check in doctor.examine(store.db.path))
    store.remember("still in use")


def test_the_looks_cover_the_schema(healthy: Path) -> None:
    """A table that no check reads could be damaged unseen."""
    read: set[str] = set()
    held = sqlite.connect(sqlite.uri(healthy))

    def note(action: int, table: str | None, *_: str | None) -> int:
        if action in (apsw.SQLITE_READ, apsw.SQLITE_SELECT) and table:
            read.add(table)
        return apsw.SQLITE_OK

    held.authorizer = note
    for look in LOOKS:
        look.check(held)
    held.authorizer = None
    tables = {
        str(name)
        for (name,) in held.execute(
            """select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'
               and name not like '%\\_fts\\_%' escape '\\' and name not like 'memory\\_vec\\_%'
               escape '\\'"""
        )
    }
    held.close()
    unread = {"memory_fts", "past_fts", "memory_vocab", "touch"}
    assert tables - read <= unread
