"""Every mutator is one operation: it commits, is journaled once, undone to the letter, or absent.

A new mutator gets its line in MUTATORS and all of these tests with it.
"""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from houkai import MemoryStore, StorageError
from houkai.ops.table import OPERATIONS
from tests.agreement import disagreements
from tests.conftest import Opener
from tests.support import caught_up, contents, dump_of
from tests.transactions.mutators import FINAL, MUTATORS, Ids, scene

ALL = MUTATORS | FINAL
every_mutator = pytest.mark.parametrize("name", list(ALL))
every_undoable = pytest.mark.parametrize("name", list(MUTATORS))


def prepared(store: MemoryStore, name: str) -> Ids:
    """Return the ids of a scene in which a mutator can run."""
    ids = scene(store)
    ALL[name].before(store, ids)
    return ids


def last_seq(store: MemoryStore) -> int:
    """Return the number of the newest operation."""
    return store.journal(1)[0].operation


def tables(store: MemoryStore) -> dict[str, list[tuple[Any, ...]]]:
    """Return what stands in the journaled tables, without numbers that only this file knows."""
    queries = {
        "memory": """select m.id, c.name, m.type, m.text, m.text_hash, m.content_hash, m.importance,
            m.polarity, m.source, m.position, m.author, m.trust, m.pinned, m.created_at,
            m.expires_at, m.valid_from, m.valid_until, m.superseded_by, m.superseded_at, m.words,
            m.names, m.dates from memory m join collection c on c.pk = m.collection""",
        "tag": "select m.id, t.name, t.ordinal from tag t join memory m on m.pk = t.memory",
        "entity": "select m.id, e.name, e.ordinal from entity e join memory m on m.pk = e.memory",
        "link": """select s.id, l.rel, d.id, l.created_at from link l
            join memory s on s.pk = l.src join memory d on d.pk = l.dst""",
        "words": "select m.id, f.text, f.names from memory_fts f join memory m on m.pk = f.rowid",
        "sketches": """select m.id, v.sketch from memory_vec v
            join memory m on m.pk = v.rowid / 8192""",
    }
    with caught_up(store).read() as connection:
        return {
            name: sorted(connection.execute(sql).fetchall(), key=repr)
            for name, sql in queries.items()
        }


def test_every_writing_operation_is_listed() -> None:
    """An operation that is not listed would escape every test of this file."""
    writing = {one.run.__name__ for one in OPERATIONS if one.effect != "read"}
    run = {name for mutator in ALL.values() for name in mutator.run.__code__.co_names}
    assert writing <= run


@every_mutator
def test_commits_for_everybody(name: str, open_store: Opener) -> None:
    """What a call returned from must be there for every other process."""
    store, other = open_store(), open_store()
    ids = prepared(store, name)
    before = dump_of(other)
    ALL[name].run(store, ids)
    assert contents(other) == contents(store)
    assert dump_of(other) == dump_of(store) != before


@every_mutator
def test_journals_exactly_one_operation(name: str, store: MemoryStore) -> None:
    """Two operations could be undone by halves, none could not be undone at all."""
    ids = prepared(store, name)
    before = last_seq(store)
    ALL[name].run(store.as_actor("somebody", session="s1"), ids)
    assert last_seq(store) == before + 1
    entry = store.journal(1)[0]
    assert (entry.op, entry.actor, entry.scope) == (ALL[name].op, "somebody", "default")
    assert disagreements(store) == []


@every_undoable
def test_undo_restores_and_redo_repeats(name: str, store: MemoryStore) -> None:
    """An undo that forgets one field loses what a user took back."""
    ids = prepared(store, name)
    before, seq = tables(store), last_seq(store) + 1
    MUTATORS[name].run(store, ids)
    after = tables(store)
    assert after != before
    undone = store.undo(seq)
    assert tables(store) == before
    assert disagreements(store) == []
    store.undo(undone)
    assert tables(store) == after
    assert disagreements(store) == []


class Tripwire:
    """Stop the write connection at its n-th statement from now on, once."""

    def __init__(self, store: MemoryStore, at: int) -> None:
        self.at = 0
        self.ran = 0
        self.stopped: str | None = None
        self.store = store
        store.db.write(lambda connection: setattr(connection, "exec_trace", self._step))
        self.at, self.ran = at, 0

    def _step(self, _cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
        self.ran += 1
        if self.ran == self.at:
            self.stopped = sql
            return False
        return True

    def remove(self) -> None:
        """Take the wire away."""
        self.at = 0
        self.store.db.write(lambda connection: setattr(connection, "exec_trace", None))


@every_mutator
def test_rolls_back_whole_when_any_statement_fails(name: str, open_store: Opener) -> None:
    """A full disk or a lost connection may strike at any statement; half a change must not stay."""
    store = open_store(durability="normal")
    ids = prepared(store, name)
    before = dump_of(store)
    stops: list[str] = []
    while True:
        wire = Tripwire(store, len(stops) + 1)
        try:
            ALL[name].run(store, ids)
        except StorageError:
            pass
        else:
            break
        finally:
            wire.remove()
        assert wire.stopped is not None
        stops.append(wire.stopped)
        assert dump_of(store) == before, f"{wire.stopped} left something behind"
    assert "begin immediate" in stops[0]
    assert stops[-1] == "commit"
    assert len(stops) > 8
    assert dump_of(store) != before
    assert disagreements(store) == []


def test_the_first_write_of_a_file_is_whole_too(open_store: Opener) -> None:
    """The first memory also makes the search table; half of that would break every later write."""
    store = open_store(durability="normal")
    before = dump_of(store)
    for stop in range(1, 200):
        wire = Tripwire(store, stop)
        try:
            store.remember("the first", tags=["a"], source="s")
        except StorageError:
            assert dump_of(store) == before, wire.stopped
        else:
            break
        finally:
            wire.remove()
    assert stop > 15
    assert store.count() == 1
    assert disagreements(store) == []


def test_batches_of_remember_many_are_undone_together(store: MemoryStore) -> None:
    """A thousand items are several commits, but one thing to take back."""
    scene(store)
    before, seq = tables(store), last_seq(store)
    store.remember_many([f"item {n}" for n in range(5)], batch_size=2)
    assert last_seq(store) == seq + 3
    after = tables(store)
    undone = store.undo_last()
    assert undone is not None
    assert tables(store) == before
    store.undo(undone)
    assert tables(store) == after
    store.undo(seq + 1)
    assert tables(store) == before
    assert disagreements(store) == []


QUIET: dict[str, Any] = {
    "edit_nothing": lambda s, i: s.edit(i["a"], importance=0.5, tags=["greek", "letter"]),
    "edit_same_text": lambda s, i: s.edit(i["a"], text="alpha is the first letter"),
    "forget_unknown": lambda s, _: s.forget("no-such-id"),
    "idempotent": lambda s, _: s.remember("Alpha IS the first  letter", idempotent=True),
    "remember_no_items": lambda s, _: s.remember_many([]),
    "link_again": lambda s, i: s.link(i["a"], i["b"]),
    "unlink_nothing": lambda s, i: s.unlink(i["b"], i["a"]),
    "nuke_nothing": lambda s, _: open_empty(s).nuke(),
    "redo_nothing": lambda s, _: s.redo(),
    "undo_last_of_nobody": lambda s, _: s.undo_last(actor="nobody"),
    "recall": lambda s, _: s.recall("alpha"),
}


def open_empty(store: MemoryStore) -> MemoryStore:
    """Return a view of an empty collection of the same file."""
    view = store.as_actor("lib")
    view.collection = "empty"
    return view


@pytest.mark.parametrize("name", list(QUIET))
def test_what_changes_nothing_records_nothing(name: str, store: MemoryStore) -> None:
    """A journal full of nothing would make `undo_last` do nothing."""
    ids = scene(store)
    before = last_seq(store)
    QUIET[name](store, ids)
    assert last_seq(store) == before
