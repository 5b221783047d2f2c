"""Undoing everything since a moment puts back what was known then."""

from __future__ import annotations

from houkai import MemoryStore
from tests.support import Clock, contents, plain


def lived(store: MemoryStore, clock: Clock) -> float:
    """Write, undo and redo on both sides of a moment, and return that moment."""
    first = store.remember("first")
    second = store.remember("second")
    store.edit(first.id, text="first, changed")
    store.undo_last()
    clock.advance(10)
    moment = store.now()
    clock.advance(10)
    store.redo()
    store.edit(second.id, importance=0.9)
    store.undo_last()
    store.undo_last()
    store.remember("third")
    store.forget(second.id)
    store.redo()
    store.remember_many(["fourth", "fifth", "sixth"], batch_size=1)
    return moment


def test_since_brings_back_the_state_at_that_moment(store: MemoryStore, clock: Clock) -> None:
    """Undos and redos inside the window must be taken back neither twice nor not at all."""
    moment = lived(store, clock)
    then = plain(store.state_at(moment))
    assert contents(store) != then
    assert store.undo_since(moment)
    assert contents(store) == then
    assert store.undo_since(moment) == []


def test_redo_brings_everything_back_at_once(store: MemoryStore, clock: Clock) -> None:
    """Who undid too much must not have to redo operation by operation."""
    moment = lived(store, clock)
    now = contents(store)
    store.undo_since(moment)
    store.redo()
    assert contents(store) == now


def test_since_takes_back_one_actor_only(store: MemoryStore, clock: Clock) -> None:
    """Undoing a hasty agent's work must leave what others did meanwhile."""
    moment = clock.now
    kept = store.remember("mine")
    agent = store.as_actor("agent")
    agent.remember("theirs")
    agent.edit(agent.remember("theirs too").id, text="theirs, changed")
    undone = store.undo_since(moment, actor="agent")
    assert [entry.undoes for entry in undone] == [4, 3, 2]
    assert list(contents(store)) == [kept.id]


def test_since_keeps_to_one_memory(store: MemoryStore, clock: Clock) -> None:
    """Undoing what happened to one memory must not touch its neighbours."""
    one, other = store.remember("one"), store.remember("other")
    moment = clock.advance(10)
    store.edit(one.id, text="one, changed")
    store.edit(other.id, text="other, changed")
    store.undo_since(moment, memory_id=one.id)
    assert {memory.text for memory in store.list_recent()} == {"one", "other, changed"}


def test_since_keeps_to_its_collection(store: MemoryStore, clock: Clock) -> None:
    """Undoing in one collection must not reach into another."""
    store.remember("here")
    there = MemoryStore.as_actor(store, "lib")
    there.collection = "there"
    there.remember("there")
    store.undo_since(clock.now)
    assert (store.count(), there.count()) == (0, 1)
