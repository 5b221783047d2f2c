"""Superseding and restoring: marks, links and pins move together and come back."""

from __future__ import annotations

import itertools

import pytest

from houkai import Diverged, InputError, Link, MemoryStore, NotFound
from tests.support import contents


def pinned(store: MemoryStore, *ids: str) -> list[bool]:
    """Return whether each memory is pinned."""
    return [store.get(id).pinned for id in ids]  # type: ignore[union-attr]


def made(store: MemoryStore, number: int, *, pin: bool = False) -> list[str]:
    """Store memories and return their ids; the first is pinned when asked."""
    return [store.remember(f"memory {n}", pinned=pin and n == 0).id for n in range(number)]


def test_supersede_hides_and_links(store: MemoryStore) -> None:
    """A fact that was replaced must not be recalled, and its replacement must lead to it."""
    old, new = made(store, 2)
    assert store.supersede(old, new) is None  # type: ignore[func-returns-value]
    assert [m.id for m in store.list_recent()] == [new]
    hidden = store.get(old)
    assert hidden is not None
    assert hidden.superseded_by == new
    assert hidden.superseded_at == store.journal(1)[0].ts
    assert store.get(new).links == [Link(old, "supersedes")]  # type: ignore[union-attr]
    before = store.journal()
    store.supersede(old, new)
    assert store.journal() == before


def test_restore_takes_all_of_it_back(store: MemoryStore) -> None:
    """A link that stays behind tells of a replacement that no longer holds."""
    old, new = made(store, 2, pin=True)
    before = contents(store)
    store.supersede(old, new)
    assert store.restore(old) is True
    assert contents(store) == before
    assert store.restore(old) is False
    assert store.restore("nowhere") is False


def test_supersede_refuses_the_unknown_and_itself(store: MemoryStore) -> None:
    """A mark that points nowhere hides a memory for good."""
    (a,) = made(store, 1)
    for old, new in ((a, "nowhere"), ("nowhere", a)):
        with pytest.raises(NotFound):
            store.supersede(old, new)
    with pytest.raises(InputError, match="itself"):
        store.supersede(a, a)
    assert store.get(a).superseded_by is None  # type: ignore[union-attr]


@pytest.mark.parametrize("length", [2, 3, 5])
def test_circles_of_any_length_are_refused(store: MemoryStore, length: int) -> None:
    """A circle hides every memory in it."""
    ids = made(store, length)
    for old, new in itertools.pairwise(ids):
        store.supersede(old, new)
    before = store.journal()
    with pytest.raises(InputError, match="cannot supersede") as refused:
        store.supersede(ids[-1], ids[0])
    assert str(refused.value).count(".") == 1
    assert store.journal() == before
    assert [m.id for m in store.list_recent()] == [ids[-1]]


def test_a_new_superseder_takes_the_place_of_another(store: MemoryStore) -> None:
    """Two superseders of one memory would leave a link behind that restore does not know."""
    old, first, second = made(store, 3, pin=True)
    store.supersede(old, first)
    store.supersede(old, second)
    assert store.get(first).links == []  # type: ignore[union-attr]
    assert pinned(store, first, second) == [False, True]
    store.restore(old)
    assert store.get(second).links == []  # type: ignore[union-attr]
    assert pinned(store, old, first, second) == [True, False, False]


def test_a_pin_follows_the_chain_and_comes_back(store: MemoryStore) -> None:
    """A standing instruction that is corrected must stay in the working set, once."""
    a, b, c = made(store, 3, pin=True)
    store.supersede(a, b)
    store.supersede(b, c)
    assert pinned(store, c) == [True]
    store.restore(b)
    assert pinned(store, b, c) == [True, False]
    store.restore(a)
    assert pinned(store, a, b, c) == [True, False, False]


def test_a_pin_of_its_own_stays(store: MemoryStore) -> None:
    """Restoring what a memory replaced must not take the pin that its user gave it."""
    a, b = made(store, 2, pin=True)
    store.edit(b, pinned=True)
    store.supersede(a, b)
    store.restore(a)
    assert pinned(store, a, b) == [True, True]
    store.supersede(a, b)
    store.edit(b, pinned=False)
    store.restore(a)
    assert pinned(store, a, b) == [True, False]


def test_a_carried_pin_that_was_confirmed_stays(store: MemoryStore) -> None:
    """Whoever pins a memory that carries a pin means that memory."""
    a, b = made(store, 2, pin=True)
    store.supersede(a, b)
    store.edit(b, pinned=True)
    store.restore(a)
    assert pinned(store, b) == [True]


def test_a_pin_is_carried_for_several(store: MemoryStore) -> None:
    """Restoring one of two pinned memories must not drop the other's pin from sight."""
    a, b, c = made(store, 3, pin=True)
    store.edit(b, pinned=True)
    store.supersede(a, c)
    store.supersede(b, c)
    store.restore(a)
    assert pinned(store, c) == [True]
    store.restore(b)
    assert pinned(store, c) == [False]


def test_forgetting_the_superseder_frees_what_it_hid(store: MemoryStore) -> None:
    """A dangling mark hides a memory that nothing replaces any more."""
    a, b = made(store, 2, pin=True)
    store.supersede(a, b)
    store.forget(b)
    assert [m.id for m in store.list_recent()] == [a]
    assert pinned(store, a) == [True]
    store.undo_last()
    assert store.get(a).superseded_by == b  # type: ignore[union-attr]


def test_an_undo_makes_no_circle(store: MemoryStore) -> None:
    """Undoing a restore brings a mark back, which may meet one made since."""
    a, b = made(store, 2)
    store.supersede(a, b)
    store.restore(a)
    restored = store.journal(1)[0]
    store.supersede(b, a)
    before = contents(store)
    with pytest.raises(Diverged, match="superseded since"):
        store.undo(restored)
    assert contents(store) == before


def test_an_undo_brings_no_mark_to_nowhere(store: MemoryStore) -> None:
    """Undoing a restore after its superseder was forgotten would hide the memory for good."""
    a, b = made(store, 2)
    store.supersede(a, b)
    store.restore(a)
    restored = store.journal(1)[0]
    store.forget(b)
    with pytest.raises(Diverged, match="gone"):
        store.undo(restored)
    assert store.get(a).superseded_by is None  # type: ignore[union-attr]


def test_an_undo_brings_no_link_to_nowhere(store: MemoryStore) -> None:
    """A link without one of its ends can be neither stored nor followed."""
    a, b = made(store, 2)
    store.link(a, b)
    store.unlink(a, b)
    unlinked = store.journal(1)[0]
    store.forget(b)
    with pytest.raises(Diverged, match="gone") as refused:
        store.undo(unlinked)
    assert refused.value.rows == [f"link {a}|related|{b}"]
    assert store.neighbors(a) == []
