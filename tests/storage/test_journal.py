"""The journal: what it records, what it proves, and what it does when it was off for a while."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from houkai import Diverged, JournalEntry, MemoryStore, NotFound
from houkai.clock import LATEST
from houkai.testing import HashingEmbedder
from tests.agreement import disagreements
from tests.conftest import Opener
from tests.support import Clock, contents, plain, texts


def lived(store: MemoryStore) -> list[str]:
    """Give a store some history and return the ids it made."""
    made = store.remember_many(["one", "two", "three"])
    ids = [memory.id for memory in made]
    store.edit(ids[0], text="one again", tags=["t"])
    store.link(ids[0], ids[1])
    store.forget(ids[2])
    store.undo_last()
    return ids


def test_each_operation_is_told_with_both_images(store: MemoryStore, clock: Clock) -> None:
    """An audit needs who, when, what it was and what it became."""
    id = store.as_actor("alice", session="s7").remember("one", tags=["a"]).id
    clock.advance(5)
    store.as_actor("bob").edit(id, text="two", importance=0.75)
    first, second = store.history(id)
    assert (first.op, first.actor, first.before) == ("remember", "alice", None)
    assert first.after is not None
    assert (first.after["text"], first.after["tags"]) == ("one", ["a"])
    assert (second.op, second.actor) == ("edit", "bob")
    assert second.before == first.after
    assert second.after == {**first.after, "text": "two", "importance": 0.75}
    assert second.changed_fields() == ["text", "importance"]
    assert second.ts - first.ts == pytest.approx(5)
    assert first.scope == "default"


def test_a_link_is_in_the_history_of_both_ends(store: MemoryStore) -> None:
    """Whoever asks about either memory must learn of the link."""
    one, two = (store.remember(text).id for text in ("one", "two"))
    store.link(one, two, "causes")
    for id in (one, two):
        entry = store.history(id)[-1]
        assert (entry.op, entry.kind) == ("link", "link")
        assert entry.meta == {"src_id": one, "dst_id": two, "rel": "causes"}


def test_operations_of_many_rows_have_one_entry(store: MemoryStore) -> None:
    """The journal lists what was done, not every row of it."""
    lived(store)
    entry = store.journal(op="remember_many")[0]
    assert (entry.id, entry.changes, entry.before, entry.after) == ("*", 3, None, None)
    assert len(store.operation(entry.operation)) == 3


def test_order_is_the_number_whatever_the_clock_says(store: MemoryStore, clock: Clock) -> None:
    """A clock that is set back must not let a later change look earlier."""
    id = store.remember("one").id
    clock.advance(-3600)
    store.edit(id, text="two")
    clock.advance(-3600)
    store.edit(id, text="three")
    entries = store.history(id)
    assert [entry.operation for entry in entries] == [1, 2, 3]
    assert entries[0].ts < entries[1].ts < entries[2].ts
    for entry, text in zip(entries, ["one", "two", "three"], strict=True):
        assert texts(store.state_at(entry.ts)) == [text]
        found = store.get_at(id, entry.ts)
        assert found is not None
        assert found.text == text
    assert texts(store.state_at("now")) == ["three"]
    assert texts(store.state_at(clock.now)) == ["three"]


def test_moments_rise_even_at_the_end_of_time(store: MemoryStore, clock: Clock) -> None:
    """A wrong clock may be far ahead, where a microsecond is less than a float can tell."""
    clock.now = LATEST - 10
    for text in ("one", "two", "three"):
        store.remember(text)
    moments = [entry.ts for entry in reversed(store.journal())]
    assert moments[0] < moments[1] < moments[2]
    assert texts(store.state_at(moments[1])) == ["one", "two"]
    assert disagreements(store) == []


def test_the_future_is_now_and_the_time_before_is_empty(store: MemoryStore, clock: Clock) -> None:
    """What will be known is not known, and before the first memory there was none."""
    lived(store)
    assert plain(store.state_at(clock.now + 1e6)) == contents(store)
    assert store.state_at(clock.now - 10) == []
    assert store.state_at("30d") == []


TAMPERINGS = {
    "an image": "update change set after = jsonb_set(after, '$.text', 'x') where operation = 1",
    "an actor": "update operation set actor = 'somebody else' where seq = 2",
    "a moment": "update operation set at = at - 1 where seq = 2",
    "an id": "update operation set id = 'x' where seq = 3",
    "a note": "update operation set meta = jsonb('{\"a\": 1}') where seq = 2",
    "a key": "update change set key = 'somebody' where operation = 2",
    "a change removed": "delete from change where operation = 3",
    "a change added": """insert into change(operation, kind, key, after)
        values (2, 'memory', 'new', jsonb('{}'))""",
    "an operation removed": "delete from operation where seq = 3",
    "the first removed": "delete from operation where seq = 1",
    "a hash": "update operation set hash = zeroblob(32) where seq = 2",
    "two swapped": """update operation set seq = case seq when 2 then 103 else 102 end
        where seq in (2, 3)""",
}


@pytest.mark.parametrize("name", list(TAMPERINGS))
def test_the_chain_shows_tampering(name: str, store: MemoryStore) -> None:
    """Whoever rewrites the past must be found out by one pass over it."""
    lived(store)
    assert store.verify_journal() is None

    store.db.write(lambda connection: without_keys(connection, TAMPERINGS[name]))
    assert store.verify_journal() is not None


def without_keys(connection: apsw.Connection, sql: str) -> None:
    """Change rows as a program would that cares for nothing: foreign keys are off there."""
    connection.execute("commit")
    connection.pragma("foreign_keys", 0)
    connection.execute(sql)
    connection.pragma("foreign_keys", 1)
    connection.execute("begin immediate")


def test_the_chain_survives_undo_and_redo(store: MemoryStore) -> None:
    """What is marked as undone afterwards stands outside the hash."""
    lived(store)
    store.redo()
    store.undo_last()
    assert store.verify_journal() is None


def test_with_the_journal_off_writes_work_and_are_counted(open_store: Opener) -> None:
    """A bulk load may do without images; the numbers and the chain go on."""
    store = open_store(journal_enabled=False)
    id = store.remember("one", tags=["a"]).id
    store.edit(id, text="two")
    assert texts(store.list_recent()) == ["two"]
    assert [entry.op for entry in store.journal()] == ["edit", "remember"]
    assert [(entry.before, entry.after) for entry in store.history(id)] == [(None, None)] * 2
    assert store.verify_journal() is None
    assert store.recall("two")[0].memory.id == id


@pytest.mark.parametrize("change", ["edit", "forget", "link"])
def test_nothing_is_undone_into_what_was_never_recorded(change: str, open_store: Opener) -> None:
    """Undoing an edit of an unrecorded memory once deleted it."""
    with open_store(journal_enabled=False) as blind:
        one, two = (blind.remember(text).id for text in ("one", "two"))
    store = open_store()
    calls: dict[str, Any] = {
        "edit": lambda: store.edit(one, text="changed"),
        "forget": lambda: store.forget(one),
        "link": lambda: store.link(one, two),
    }
    calls[change]()
    held = contents(store)
    if change == "link":
        store.undo_last()
        assert set(contents(store)) == {one, two}
        return
    with pytest.raises(Diverged, match="journal off"):
        store.undo_last()
    assert contents(store) == held


def test_an_undo_of_an_unrecorded_operation_is_refused(open_store: Opener) -> None:
    """It has no image to put back."""
    store = open_store(journal_enabled=False)
    store.remember("one")
    with pytest.raises(Diverged, match="journal off"):
        store.undo_last()
    assert store.count() == 1


def test_an_entry_of_another_file_undoes_nothing_here(open_store: Opener, path: Any) -> None:
    """Operation 1 of one file is not operation 1 of another."""
    store, other = open_store(), open_store(path.with_name("other.db"))
    store.remember("mine")
    other.remember("theirs")
    with pytest.raises(NotFound):
        store.undo(other.journal(1)[0])
    assert store.count() == 1


@pytest.mark.parametrize("ref", [1, "1", " 1 ", "id", "prefix", "entry"])
def test_an_operation_may_be_named_in_many_ways(ref: Any, store: MemoryStore) -> None:
    """People type numbers, programs pass entries, other files know ids."""
    store.remember("one")
    entry = store.journal(1)[0]
    named = {"id": entry.operation_id, "prefix": entry.operation_id[:8], "entry": entry}
    undone = store.undo(named.get(ref, ref) if isinstance(ref, str) else ref)
    assert isinstance(undone, JournalEntry)
    assert (undone.op, undone.undoes) == ("undo", 1)
    assert store.count() == 0


def test_the_triggers_serve_other_tools(open_store: Opener, path: Any) -> None:
    """Somebody who edits the file with a SQLite shell must not make words unfindable."""
    store = open_store()
    id = store.remember("one").id
    store.remember("two")
    store.close()
    shell = apsw.Connection(str(path))
    shell.execute("update memory set text = 'penguin' where id = ?", (id,))
    shell.execute("delete from memory where text = 'two'")
    shell.close()
    store = open_store()
    assert texts(hit.memory for hit in store.recall("penguin")) == ["penguin"]
    with store.read() as connection:
        found = connection.execute("select rowid from memory_fts where memory_fts match 'two'")
        assert found.fetchall() == []


def test_now_is_known_though_the_clock_was_set_back_behind_a_pruning(
    store: MemoryStore, clock: Clock
) -> None:
    """What is there now is no lost history, whatever the clock says."""
    memory = store.remember("one")
    store.edit(memory.id, text="two")
    store.prune_journal(keep_last=0)
    clock.advance(-1000)
    assert texts(store.state_at("now")) == ["two"]


@pytest.mark.parametrize("change", ["edit", "forget"])
def test_the_past_shows_what_was_replaced_with_the_journal_off(path: Path, change: str) -> None:
    """The journal knows what stood before, so recall as of then must find it."""
    embedder = HashingEmbedder(64)
    with MemoryStore(path, embedder=embedder) as store:
        memory = store.remember("the first text")
        then = store.journal(1)[0].ts
    with MemoryStore(path, embedder=embedder, journal_enabled=False) as store:
        if change == "edit":
            store.edit(memory.id, text="the second")
        else:
            store.forget(memory.id)
        assert [hit.memory.text for hit in store.recall("text", as_of=then)] == ["the first text"]
