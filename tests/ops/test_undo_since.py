"""Undoing everything since a moment puts back what was known then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from houkai import Diverged, InputError, MemoryStore, NotFound, UndoPreview
from houkai.ops.reversal import NOTHING_CHANGED
from tests.support import Clock, contents, dump_of, plain


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


def test_since_is_all_or_nothing(store: MemoryStore, clock: Clock) -> None:
    """Half an undo leaves a state that never was, which nobody asked for."""
    moment = clock.now
    agent = store.as_actor("agent")
    first, second = agent.remember("first"), agent.remember("second")
    store.edit(first.id, text="first, built upon")
    held, written = contents(store), store.journal(None)
    with pytest.raises(Diverged, match=r"Operation 1 .* memory") as caught:
        store.undo_since(moment, actor="agent")
    assert caught.value.rows == [f"memory {first.id}"]
    assert contents(store) == held
    assert second.id in held
    assert store.journal(None) == written


def test_a_session_is_undone_alone(store: MemoryStore, clock: Clock) -> None:
    """One actor's sessions are many; the one that went wrong must be told from the others."""
    moment = clock.now
    one, other = (store.as_actor("agent", session=name) for name in ("one", "other"))
    kept = one.remember("by one")
    other.remember("by the other")
    one.edit(kept.id, text="by one, edited")
    other.remember("by the other again")
    assert [entry.session for entry in store.journal(session="one")] == ["one", "one"]
    entry = store.undo_last(session="one")
    assert entry is not None
    assert (entry.undoes, entry.session) == (3, None)
    assert len(store.undo_since(moment, session="other")) == 2
    assert [memory.text for memory in store.list_recent()] == ["by one"]
    assert store.undo_last(session="nobody's") is None


def test_undoing_a_session_takes_back_its_undos(store: MemoryStore, clock: Clock) -> None:
    """What the session had undone of others is part of what it did."""
    moment, session = clock.now, store.as_actor("agent", session="s")
    kept = store.remember("kept")
    store.edit(kept.id, text="kept, edited")
    session.undo_last()
    session.edit(kept.id, text="meddled with")
    store.undo_since(moment, session="s")
    assert [memory.text for memory in store.list_recent()] == ["kept, edited"]


def test_a_preview_tells_what_the_undo_does(store: MemoryStore, clock: Clock) -> None:
    """Who is shown other rows than will change decides on the wrong thing."""
    moment = lived(store, clock)
    before, stored = contents(store), dump_of(store)
    preview = store.preview_undo(since=moment)
    assert dump_of(store) == stored
    done = store.undo_since(moment)
    after = contents(store)
    told = {one.id: one for one in preview.changes if one.kind == "memory"}
    assert told.keys() == {id for id in before | after if before.get(id) != after.get(id)}
    for id, one in told.items():
        for shown, held in ((one.before, before.get(id)), (one.after, after.get(id))):
            assert (shown and shown["text"]) == (held and held["text"])
    undone = {entry.operation for entry in preview.operations}
    assert {entry.undoes for entry in done} <= undone
    assert (preview.refusal, preview.rows) == (None, [])


def test_a_preview_of_one_operation(store: MemoryStore) -> None:
    """The last one, a named one, none at all: each as the undo itself would choose."""
    assert store.preview_undo() == UndoPreview()
    one = store.remember("one")
    store.edit(one.id, text="another")
    (change,) = store.preview_undo().changes
    assert (change.id, change.change) == (one.id, "changed")
    assert change.before is not None
    assert change.after is not None
    assert (change.before["text"], change.after["text"]) == ("another", "one")
    assert store.preview_undo(store.journal(1)[0]).changes == [change]
    with pytest.raises(NotFound):
        store.preview_undo(99)
    with pytest.raises(InputError, match="alone"):
        store.preview_undo(1, actor="lib")


def test_a_preview_tells_of_the_refusal(store: MemoryStore) -> None:
    """The reason is what a user needs to see before trying, with the rows that moved on."""
    one = store.remember("one")
    store.edit(one.id, text="another")
    preview = store.preview_undo(1)
    with pytest.raises(Diverged) as caught:
        store.undo(1)
    assert (preview.refusal, preview.hint) == (caught.value.message, caught.value.hint)
    assert preview.rows == caught.value.rows == [f"memory {one.id}"]
    assert [entry.operation for entry in preview.operations] == [1]
    assert [change.change for change in preview.changes] == ["removed"]


def purge(store: MemoryStore) -> None:
    """Drop a memory for good."""
    store.trash(store.remember("secret").id)
    store.trash_purge()


def unrecorded(store: MemoryStore) -> None:
    """Prune the journal up to now."""
    store.prune_journal(keep_last=0)


@pytest.mark.parametrize("final", [purge, unrecorded])
def test_what_cannot_come_back_names_the_moment_from_which_all_can(
    final: Callable[[MemoryStore], None], store: MemoryStore, clock: Clock
) -> None:
    """A refusal that only says no leaves its user to search the journal for a way on."""
    one, moment = store.remember("one"), clock.advance(10)
    store.edit(one.id, text="one, changed")
    final(store)
    clock.advance(10)
    store.remember("two")
    last = clock.advance(10)
    store.edit(one.id, text="one, changed twice")
    held, written = contents(store), store.journal(None)
    with pytest.raises(Diverged, match=r"^Operation \d+ cannot be undone: ") as caught:
        store.undo_since(moment)
    preview = store.preview_undo(since=moment)
    assert (preview.refusal, preview.hint) == (caught.value.message, caught.value.hint)
    assert (contents(store), store.journal(None)) == (held, written)
    assert "Nothing was changed; other operations can be undone" in caught.value.hint
    since = float(caught.value.hint.partition("since ")[2].partition(" (")[0])
    assert moment < since < last
    assert len(store.undo_since(since)) == 2
    assert [memory.text for memory in store.list_recent()] == ["one, changed"]


def test_no_moment_is_named_where_none_would_do(store: MemoryStore, clock: Clock) -> None:
    """Advice that is refused again is worse than none."""
    moment = clock.now
    store.remember("one")
    purge(store)
    with pytest.raises(Diverged, match="purged") as caught:
        store.undo_since(moment)
    assert caught.value.hint == NOTHING_CHANGED
    agent = store.as_actor("agent")
    memory = agent.remember("by an agent")
    store.edit(memory.id, text="built upon")
    agent.remember("more by an agent")
    with pytest.raises(Diverged, match="changed since then") as caught:
        store.undo_since(moment, actor="agent")
    assert "since" not in caught.value.hint
