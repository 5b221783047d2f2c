"""Taking memories away, and the ways back."""

from __future__ import annotations

from typing import Any

import pytest

from houkai import Diverged, MemoryStore, NotFound
from tests.support import Clock, contents, plain, texts
from tests.transactions.mutators import scene


def test_forget_takes_what_hangs_on_a_memory(store: MemoryStore) -> None:
    """A link to nothing, or a memory hidden by nothing, could never be explained."""
    ids = scene(store)
    assert store.forget(ids["c"]) is True
    left = contents(store)
    assert set(left) == {ids["a"], ids["b"], ids["d"]}
    assert left[ids["d"]]["superseded_by"] is None
    assert store.neighbors(ids["b"], direction="in", rel="refines") == []
    assert store.forget(ids["c"]) is False


def test_many_are_forgotten_and_brought_back_as_one(store: MemoryStore) -> None:
    """Who forgets three by mistake must not have to undo three times, nor stop after two."""
    ids = scene(store)
    held = contents(store)
    gone = store.forget_many([ids["c"], "none", ids["d"], ids["c"]])
    assert gone == [ids["c"], ids["d"]]
    assert set(contents(store)) == {ids["a"], ids["b"]}
    assert store.journal(1)[0].op == "forget"
    store.undo_last()
    assert contents(store) == held
    assert store.forget_many([]) == []


def test_a_forgotten_memory_is_nowhere(store: MemoryStore) -> None:
    """What a user took away must not come up again by any path."""
    memory = store.remember("a secret word xyzzy", tags=["t"])
    store.remember("something else")
    store.forget(memory.id)
    assert store.get(memory.id) is None
    assert store.find_by_content_hash("a secret word xyzzy") is None
    assert memory.id not in [hit.memory.id for hit in store.recall("xyzzy", k=10)]
    assert memory.id not in contents(store)
    with pytest.raises(NotFound):
        store.find_id(memory.id)
    assert [entry.op for entry in store.history(memory.id)] == ["remember", "forget"]


def test_nuke_empties_and_can_be_undone(store: MemoryStore) -> None:
    """The worst mistake deserves the same way back as any other."""
    scene(store)
    held = contents(store)
    assert store.nuke() == len(held)
    assert contents(store) == {}
    assert store.recall("alpha") == []
    assert store.count() == 0
    assert store.nuke() == 0
    undone = store.undo_last()
    assert undone is not None
    assert contents(store) == held
    assert store.recall("alpha")


def test_undo_last_steps_back_to_the_beginning_and_redo_forward(store: MemoryStore) -> None:
    """Pressing the key again must go further, as in every editor."""
    scene(store)
    states = [contents(store)]
    while store.undo_last() is not None:
        states.append(contents(store))
    assert states[-1] == {}
    assert len(states) > 6
    for state in reversed(states[:-1]):
        assert store.redo() is not None
        assert contents(store) == state
    assert store.redo() is None


def test_undo_of_an_older_operation_leaves_the_newer(store: MemoryStore) -> None:
    """Taking back one change must not take back those that followed on other memories."""
    one = store.remember("one").id
    two = store.remember("two").id
    edit = store.edit(one, text="one changed") and store.journal(1)[0]
    store.edit(two, text="two changed")
    store.undo(edit)
    assert {m.id: m.text for m in store.list_recent()} == {one: "one", two: "two changed"}


def test_undo_refuses_to_clobber(store: MemoryStore) -> None:
    """A later change would be lost without a word."""
    one = store.remember("one").id
    store.edit(one, text="changed")
    held = contents(store)
    with pytest.raises(Diverged, match="changed since") as caught:
        store.undo(1)
    assert caught.value.rows == [f"memory {one}"]
    assert contents(store) == held
    assert len(store.journal()) == 2


def test_undo_refuses_to_leave_a_link_dangling(store: MemoryStore) -> None:
    """The memory itself is unchanged, but something hangs on it by now."""
    one, two = store.remember("one").id, store.remember("two").id
    store.link(one, two)
    with pytest.raises(Diverged) as caught:
        store.undo(1)
    assert caught.value.rows == [f"link {one}|related|{two}"]


def test_undo_twice_says_by_what_it_was_undone(store: MemoryStore) -> None:
    """The second press is a mistake, and the answer names the way forward."""
    store.remember("one")
    store.undo(1)
    with pytest.raises(Diverged, match="already undone, by operation 2") as caught:
        store.undo(1)
    assert "redo" in caught.value.hint
    store.undo(2)
    assert store.count() == 1
    store.undo(1)
    assert store.count() == 0


def test_undo_last_by_memory_and_by_actor(store: MemoryStore) -> None:
    """A user takes back what one agent did, or what happened to one memory."""
    one, two = store.remember("one").id, store.remember("two").id
    alice, bob = store.as_actor("alice"), store.as_actor("bob")
    alice.edit(one, text="by alice")
    bob.edit(two, text="by bob")
    bob.edit(one, importance=0.9)
    undone = store.undo_last(actor="alice", memory_id=two)
    assert undone is None
    entry = store.undo_last(memory_id=two)
    assert entry is not None
    assert (entry.op, entry.actor, entry.undoes) == ("undo", "lib", 4)
    with pytest.raises(Diverged):
        store.undo_last(actor="alice")
    assert store.undo_last(actor="bob") is not None
    assert store.undo_last(actor="alice") is not None
    assert {m.id: (m.text, m.importance) for m in store.list_recent()} == {
        one: ("one", 0.5),
        two: ("two", 0.5),
    }


def test_undo_last_of_a_memory_sees_its_links(store: MemoryStore) -> None:
    """A link is something that happened to both of its ends."""
    one, two = store.remember("one").id, store.remember("two").id
    store.link(one, two)
    store.remember("three")
    assert store.undo_last(memory_id=two) is not None
    assert store.neighbors(one) == []
    assert store.count() == 3


@pytest.mark.parametrize("ref", [99, "99", "no-such-operation", 10**30, -1, 0, "²", "1.0"])
def test_unknown_operations_are_not_found(ref: Any, store: MemoryStore) -> None:
    """A mistyped number must not undo another operation."""
    store.remember("one")
    with pytest.raises((NotFound, ValueError)):
        store.undo(ref)
    assert store.count() == 1


def test_redo_of_what_is_no_undo_is_refused(store: MemoryStore) -> None:
    """Undoing and redoing are different wishes."""
    store.remember("one")
    with pytest.raises(NotFound, match="no undo"):
        store.redo(1)
    assert store.redo() is None


def test_access_counts_outlive_an_undo(store: MemoryStore) -> None:
    """They are no part of history: taking back an edit does not unread a memory."""
    memory = store.remember("hello")
    store.recall("hello")
    store.edit(memory.id, text="hello there")
    store.recall("hello")
    store.undo_last()
    found = store.get(memory.id)
    assert found is not None
    assert (found.text, found.access_count) == ("hello", 2)


def test_state_at_shows_links_and_hidden_ones(store: MemoryStore, clock: Clock) -> None:
    """A past state is the whole of what was known, not only what would be listed."""
    ids = scene(store)
    memory = store.remember("short-lived", ttl_seconds=1)
    held, at = contents(store), store.journal(1)[0].ts
    clock.advance(100)
    store.nuke()
    assert plain(store.state_at(at)) == held
    found = store.get_at(ids["a"], at)
    assert found is not None
    assert [(link.to, link.rel) for link in found.links] == [(ids["b"], "related")]
    assert store.get_at(memory.id, "now") is None


def test_journal_filters(store: MemoryStore, clock: Clock) -> None:
    """An audit asks who, what and when."""
    one = store.as_actor("alice").remember("one").id
    clock.advance(100)
    store.edit(one, text="two")
    assert [e.op for e in store.journal(op="edit")] == ["edit"]
    assert [e.op for e in store.journal(actor="alice")] == ["remember"]
    assert [e.op for e in store.journal(since="50s")] == ["edit"]
    assert [e.op for e in store.journal(until="50s")] == ["remember"]
    assert [e.op for e in store.journal(memory_id=one)] == ["edit", "remember"]
    assert store.journal(memory_id="none") == store.journal(0) == []
    assert [e.summary for e in store.journal()] == [f"edit {one[:8]}: text", f"remember {one[:8]}"]
    assert texts(store.list_recent()) == ["two"]
