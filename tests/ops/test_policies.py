"""What remembering does about conflicts, decided before anything is written."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from houkai import ConflictError, InputError, Memory, MemoryStore
from houkai.ops import policies
from tests.conftest import Opener
from tests.ops.angles import at_angle
from tests.support import contents


@pytest.fixture
def store(open_store: Opener) -> MemoryStore:
    """Return a store whose texts end in the angle of their vector, in degrees."""
    return open_store(":memory:", embedder=at_angle)


def test_ignore_is_the_default(store: MemoryStore) -> None:
    """A write that is slowed down or refused unasked would surprise every caller."""
    store.remember("one 0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.remember("two 1")
    assert store.count() == 2


def test_raise_writes_nothing(store: MemoryStore) -> None:
    """A refused write that leaves a row, a vector or a journal line was not refused."""
    old = store.remember("we deploy on friday 0")
    before, journal = contents(store), store.journal()
    with pytest.raises(ConflictError) as refused:
        store.remember("we never deploy on friday 10", on_conflict="raise")
    (conflict,) = refused.value.conflicts
    assert (conflict.b, conflict.reason) == (old, "negation_diff")
    assert conflict.a.text == "we never deploy on friday 10"
    assert old.id[:8] in str(refused.value)
    assert contents(store) == before
    assert store.journal() == journal
    store.remember("we garden 90", on_conflict="raise")
    assert store.count() == 2


def test_warn_writes_and_says_so_once(store: MemoryStore) -> None:
    """A warning for each of twelve doubles is twelve times as easy to overlook."""
    for angle in range(4):
        store.remember(f"text {angle}")
    with pytest.warns(UserWarning, match="4 conflicts") as said:
        made = store.remember("another 4", on_conflict="warn")
    assert len(said) == 1
    assert said[0].filename == __file__
    assert made.superseded_by is None
    assert store.count() == 5


def test_supersede_is_one_operation(store: MemoryStore) -> None:
    """An undo that brings back half of it leaves a memory hidden by one that is gone."""
    a, b = store.remember("one 0", pinned=True), store.remember("two 5")
    before = contents(store)
    new = store.remember("three 3", on_conflict="supersede")
    assert {link.to for link in new.links} == {a.id, b.id}
    assert new.pinned
    assert [m.text for m in store.list_recent()] == ["three 3"]
    assert store.journal(1)[0].changes == 5
    store.undo_last()
    assert contents(store) == before


def test_the_store_has_a_policy_and_a_function(open_store: Opener) -> None:
    """What a store was opened with must hold for calls that say nothing."""
    store = open_store(
        ":memory:",
        embedder=at_angle,
        conflict_policy="raise",
        contradiction_fn=lambda a, b: a.text[0] != b.text[0],
    )
    store.remember("red 0")
    with pytest.raises(ConflictError) as refused:
        store.remember("blue 1")
    assert refused.value.conflicts[0].reason == "custom_fn"
    with pytest.raises(ConflictError) as refused:
        store.remember("blue 1", contradiction_fn=lambda a, b: False)
    assert refused.value.conflicts[0].reason == "similarity"
    store.remember("blue 1", on_conflict="ignore")
    with pytest.raises(InputError, match="on_conflict must be one of"):
        store.remember("x 2", on_conflict="rasie")  # type: ignore[arg-type]


def test_a_repeat_is_no_conflict_when_idempotent(store: MemoryStore) -> None:
    """An agent that replays its notes must get them back, not an error."""
    old = store.remember("one 0")
    again = store.remember("ONE  0", idempotent=True, on_conflict="raise")
    assert again.id == old.id
    assert store.count() == 1


def test_what_is_hidden_from_the_start_conflicts_with_nothing(store: MemoryStore) -> None:
    """An old fact, imported with its end, must not hide the present one."""
    now = store.remember("we use mysql 0")
    store.remember("we use postgres 1", valid_until=1_000.0, on_conflict="supersede")
    assert store.get(now.id) == now


def test_text_from_outside_does_not_hide_what_the_user_said(store: MemoryStore) -> None:
    """A web page that an agent reads could otherwise delete its user's rules."""
    rule = store.remember("never push to main 0", pinned=True)
    page = store.remember("page about pushing 1", trust="untrusted")
    with pytest.warns(UserWarning, match="less trusted"):
        made = store.remember("always push 2", trust="reported", on_conflict="supersede")
    assert store.get(rule.id) == rule
    assert store.get(page.id).superseded_by == made.id  # type: ignore[union-attr]
    assert not made.pinned


@pytest.mark.parametrize("batch_size", [1, 2])
def test_an_earlier_item_from_outside_hides_nothing(store: MemoryStore, batch_size: int) -> None:
    """Being first in a list is no reason to be believed."""
    page = {"text": "page 0", "trust": "untrusted"}
    with pytest.warns(UserWarning, match="1 conflict"):
        store.remember_many([page, "user 1"], batch_size=batch_size, on_conflict="supersede")
    assert {m.text for m in store.list_recent()} == {"page 0", "user 1"}


def test_many_refuse_raise(store: MemoryStore, open_store: Opener) -> None:
    """Half a batch stored and half refused is a state nobody asked for."""
    with pytest.raises(InputError, match="many items"):
        store.remember_many(["a 0"], on_conflict="raise")
    strict = open_store(":memory:", embedder=at_angle, conflict_policy="raise")
    with pytest.raises(InputError):
        strict.remember_many(["a 0"])
    assert store.count() == strict.count() == 0


@pytest.mark.parametrize("batch_size", [1, 2, 128])
def test_earlier_items_win(store: MemoryStore, batch_size: int) -> None:
    """How the batches fall must not decide which of two doubles is shown."""
    stored = store.remember("stored 0")
    made = store.remember_many(
        ["first 1", "second 2", "far 90", "third 3", "far 91"],
        batch_size=batch_size,
        on_conflict="supersede",
    )
    assert [m.text for m in made] == ["first 1", "second 2", "far 90", "third 3", "far 91"]
    winners = {m.text: m.superseded_by for m in made}
    assert winners["first 1"] is winners["far 90"] is None
    assert winners["second 2"] == winners["third 3"] == made[0].id
    assert winners["far 91"] == made[2].id
    assert store.get(stored.id).superseded_by == made[0].id  # type: ignore[union-attr]
    assert [store.get(m.id).superseded_by for m in made] == [m.superseded_by for m in made]  # type: ignore[union-attr]
    store.undo_last()
    assert [m.text for m in store.list_recent()] == ["stored 0"]


def test_many_warn_once(store: MemoryStore) -> None:
    """One call, one note, however many batches it took."""
    store.remember("stored 0")
    with pytest.warns(UserWarning, match="3 conflicts") as said:
        store.remember_many(["first 1", "second 2", "far 90"], batch_size=1, on_conflict="warn")
    assert len(said) == 1
    assert store.count() == 4


@pytest.mark.parametrize("policy", ["raise", "supersede"])
def test_a_conflict_that_slips_in_is_seen(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch, policy: Any
) -> None:
    """Two agents that learn the same at once would otherwise both store it."""
    store, rival = open_store(embedder=at_angle), open_store(embedder=at_angle)
    look = policies.Guard.look

    def slow(guard: policies.Guard, *given: Any) -> policies.Look:
        seen = look(guard, *given)
        if guard.store is store:
            rival.remember("theirs 1")
        return seen

    monkeypatch.setattr(policies.Guard, "look", slow)
    if policy == "raise":
        with pytest.raises(ConflictError):
            store.remember("mine 0", on_conflict="raise")
        assert [m.text for m in store.list_recent()] == ["theirs 1"]
    else:
        store.remember("mine 0", on_conflict="supersede")
        assert [m.text for m in store.list_recent()] == ["mine 0"]


def test_a_conflict_that_went_away_is_forgotten(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write must not be refused for what has been forgotten or reworded meanwhile."""
    store, rival = open_store(embedder=at_angle), open_store(embedder=at_angle)
    gone, reworded = store.remember("gone 1"), store.remember("reworded 2")
    look = policies.Guard.look

    def slow(guard: policies.Guard, *given: Any) -> policies.Look:
        seen = look(guard, *given)
        rival.forget(gone.id)
        rival.edit(reworded.id, text="reworded 100")
        return seen

    monkeypatch.setattr(policies.Guard, "look", slow)
    made = store.remember("mine 0", on_conflict="supersede")
    assert made.links == []
    assert store.get(reworded.id).superseded_by is None  # type: ignore[union-attr]


def test_a_callers_function_is_not_asked_under_the_lock(open_store: Opener) -> None:
    """A function that asks a language model would keep every other process waiting."""
    store = open_store(embedder=at_angle)
    store.remember_many(["stored 0", "stored 1"])
    held = []

    def ask(a: Memory, b: Memory) -> bool:
        with open_store(embedder=at_angle) as other:
            other.remember(f"meanwhile {90 + 20 * len(held)}")
        held.append((a.text, b.text))
        return False

    store.remember_many(["new 2", "new 3"], on_conflict="supersede", contradiction_fn=ask)
    assert len(held) == len(set(held)) == 5
