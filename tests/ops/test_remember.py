"""Storing memories: defaults, order, expiry, the idempotent write, and edits in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from houkai import Memory, MemoryStore, NotFound, RememberItem
from houkai.text import content_hash
from tests.conftest import Opener
from tests.support import Clock, contents, plain, texts


def test_defaults_are_the_contract(store: MemoryStore, clock: Clock) -> None:
    """A caller who gives only a text relies on these."""
    memory = store.remember("  hello  ")
    assert memory == Memory(
        id=memory.id,
        text="hello",
        type="semantic",
        importance=0.5,
        created_at=clock.now,
        content_hash=content_hash("hello"),
        collection="default",
    )
    assert store.get(memory.id) == memory


def test_every_field_is_kept(store: MemoryStore, clock: Clock) -> None:
    """A field that is taken and dropped is worse than one that is refused."""
    given: dict[str, Any] = {
        "type": "procedural", "tags": ["b", "a"], "importance": 0.25, "source": "file.md",
        "polarity": -1, "expires_at": clock.now + 9, "pinned": True, "trust": "reported",
        "valid_from": 5.0, "valid_until": clock.now + 50, "created_at": 1234.5, "author": "user",
        "position": 7, "entities": ["Ada", "Turing"],
    }  # fmt: skip
    memory = store.remember("hello", **given)
    for found in (memory, store.get(memory.id), store.state_at("now")[0]):
        assert found is not None
        assert {name: getattr(found, name) for name in given} == given


def test_by_position_as_in_the_peer(store: MemoryStore) -> None:
    """Existing calls pass these five without names."""
    memory = store.remember("hello", "feedback", ("a",), 0.75, "chat")
    assert (memory.type, memory.tags, memory.importance, memory.source) == (
        "feedback",
        ["a"],
        0.75,
        "chat",
    )


def test_names_lose_blanks_and_repeats_but_no_order(store: MemoryStore) -> None:
    """Tags are a set to most, but people see them in the order they gave."""
    memory = store.remember("x", tags=[" b ", "a", "b", "a b"], entities=("Ada", "Ada"))
    assert memory.tags == ["b", "a", "a b"]
    assert memory.entities == ["Ada"]


def test_a_lifetime_counts_from_the_stores_clock(store: MemoryStore, clock: Clock) -> None:
    """A test, an import and an agent with a wrong clock all bring their own."""
    assert store.remember("a", ttl_seconds=60).expires_at == clock.now + 60
    assert store.remember("b", ttl_seconds="2h").expires_at == clock.now + 7200
    assert store.remember("c", expires_at="7d").expires_at == clock.now + 7 * 86400
    assert store.remember("d", expires_at=0).expires_at is None
    assert store.remember("e", created_at="1d").created_at == clock.now - 86400


def test_the_next_position_follows_the_source(store: MemoryStore) -> None:
    """The turns of a conversation come back in order, whoever adds the next one."""
    first = store.remember_many([{"text": f"turn {n}", "source": "chat"} for n in range(3)])
    assert [memory.position for memory in first] == [0, 1, 2]
    assert store.remember("placed", source="chat", position=10).position == 10
    assert store.remember("next", source="chat").position == 11
    assert store.remember("elsewhere", source="other").position == 0
    assert store.remember("nowhere").position is None


def test_importance_may_be_judged(open_store: Opener) -> None:
    """A judge is asked only where the caller said nothing."""
    seen: list[tuple[str, str, list[str]]] = []

    def judge(text: str, type: str, tags: list[str]) -> float:
        seen.append((text, type, tags))
        return 0.9

    store = open_store(importance_fn=judge)
    assert store.remember("a", "episodic", ["t"]).importance == 0.9
    assert store.remember("b", importance=0.1).importance == 0.1
    assert [m.importance for m in store.remember_many(["c", {"text": "d", "importance": 0}])] == [
        0.9,
        0.0,
    ]
    assert seen == [("a", "episodic", ["t"]), ("c", "semantic", [])]


@pytest.mark.parametrize("judged", [2, -0.1, float("nan"), "high"])
def test_a_bad_judgement_stores_nothing(judged: Any, open_store: Opener) -> None:
    """A model's answer is no better than a caller's."""
    store = open_store(importance_fn=lambda *_: judged)
    with pytest.raises(ValueError, match="importance"):
        store.remember("a")
    assert store.count() == 0


ITEM_KINDS: list[Callable[[str], Any]] = [
    lambda text: text,
    lambda text: {"text": text},
    RememberItem,
]


@pytest.mark.parametrize("made", ITEM_KINDS)
def test_items_may_be_texts_mappings_or_records(made: Any, store: MemoryStore) -> None:
    """Each is natural to some caller."""
    assert texts(store.remember_many(made(text) for text in ("one", "two"))) == ["one", "two"]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_many_come_back_in_order_whatever_the_batch(size: int, store: MemoryStore) -> None:
    """A caller pairs the answers with its items by place."""
    given = [f"text {n}" for n in range(7)]
    made = store.remember_many(given, batch_size=size)
    assert texts(made) == given
    assert plain(made) == contents(store)


def test_idempotent_returns_what_says_the_same(store: MemoryStore) -> None:
    """An agent that repeats itself must not fill the store."""
    first = store.remember("Hello  World", tags=["a"])
    again = store.remember("hello world", tags=["b"], importance=0.9, idempotent=True)
    assert again.id == first.id
    assert again.tags == ["a"]
    assert store.count() == 1
    found = store.get(first.id)
    assert found is not None
    assert found.access_count == 1
    assert store.remember("hello world!", idempotent=True).id != first.id


def test_idempotent_in_a_list_collapses_repeats(store: MemoryStore) -> None:
    """One entry comes back for each item all the same."""
    made = store.remember_many(["a", "b", "A ", "a"], idempotent=True, batch_size=2)
    assert [memory.id for memory in made[2:]] == [made[0].id] * 2
    assert store.count() == 2


HIDDEN: dict[str, Callable[[MemoryStore, Memory, Clock], object]] = {
    "expired": lambda s, m, c: (s.edit(m.id, expires_at=c.now + 5), c.advance(10)),
    "retired": lambda s, m, c: s.edit(m.id, valid_until=c.now - 5),
    "not yet valid": lambda s, m, c: s.edit(m.id, valid_from=c.now + 500),
    "superseded": lambda s, m, c: s.supersede(m.id, s.remember("hello, newer").id),
    "forgotten": lambda s, m, c: s.forget(m.id),
}


@pytest.mark.parametrize("how", list(HIDDEN))
def test_idempotent_looks_past_what_is_hidden(how: str, store: MemoryStore, clock: Clock) -> None:
    """A fact that nobody can recall any more is not there to stand for the new one."""
    old = store.remember("hello")
    HIDDEN[how](store, old, clock)
    fresh = store.remember("hello", idempotent=True)
    assert fresh.id != old.id
    assert fresh.id in [hit.memory.id for hit in store.recall("hello")]


def test_a_store_without_idempotent_keeps_both(store: MemoryStore) -> None:
    """Saying a thing twice may be the point."""
    assert store.remember("hello").id != store.remember("hello").id


def test_edit_changes_only_what_is_given(store: MemoryStore) -> None:
    """Every other field, and the id, stay."""
    memory = store.remember("hello", tags=["a"], source="s", author="u", importance=0.9)
    edited = store.edit(memory.id, importance=0.1)
    assert edited == Memory(**{**memory.__dict__, "importance": 0.1})
    assert store.get(memory.id) == edited


CLEARED: list[tuple[dict[str, Any], str, Any]] = [
    ({"source": None}, "source", None),
    ({"author": None}, "author", None),
    ({"position": None}, "position", None),
    ({"tags": []}, "tags", []),
    ({"entities": ()}, "entities", []),
    ({"expires_at": 0}, "expires_at", None),
    ({"valid_from": 0}, "valid_from", None),
    ({"valid_until": 0.0}, "valid_until", None),
    ({"pinned": False}, "pinned", False),
    ({"polarity": 0}, "polarity", 0),
    ({"source": " "}, "source", None),
]


@pytest.mark.parametrize(("change", "name", "left"), CLEARED)
def test_edit_clears(
    change: dict[str, Any], name: str, left: Any, store: MemoryStore, clock: Clock
) -> None:
    """What may be absent must be removable again."""
    memory = store.remember(
        "hello", tags=["a"], source="s", author="u", entities=["E"], expires_at=clock.now + 9,
        valid_from=5.0, valid_until=clock.now + 5, pinned=True, polarity=1,
    )  # fmt: skip
    assert getattr(store.edit(memory.id, **change), name) == left
    found = store.get(memory.id)
    assert found is not None
    assert getattr(found, name) == left


def test_edit_keeps_the_moment_it_was_learnt(store: MemoryStore, clock: Clock) -> None:
    """0 stands for absent, and no memory is without a moment."""
    memory = store.remember("hello")
    clock.advance(100)
    assert store.edit(memory.id, created_at=0).created_at == memory.created_at
    assert store.edit(memory.id, created_at=50.0).created_at == 50.0


def test_edit_checks_validity_against_the_stored_end(store: MemoryStore) -> None:
    """A half-changed interval may end before it begins."""
    memory = store.remember("hello", valid_from=100.0, valid_until=200.0)
    with pytest.raises(ValueError, match="valid_until"):
        store.edit(memory.id, valid_from=300.0)
    assert store.edit(memory.id, valid_from=300.0, valid_until=400.0).valid_from == 300.0


def test_edit_of_a_text_is_found_by_the_new_one(store: MemoryStore) -> None:
    """Words and meaning must follow the text, and forget the old one."""
    memory = store.remember("zebra stripes")
    store.remember_many(["other things", "more things"])
    edited = store.edit(memory.id, text="  elephant trunk ")
    assert edited.text == "elephant trunk"
    assert edited.content_hash == content_hash("elephant trunk")
    assert store.recall("elephant")[0].memory.id == memory.id
    assert store.find_by_content_hash("zebra stripes") is None
    with store.read() as connection:
        words = "select count(*) from memory_fts where memory_fts match ?"
        assert connection.execute(words, ("zebra",)).get == 0


def test_edit_of_nothing_known_is_not_found(store: MemoryStore) -> None:
    """The peer raises KeyError, and so do we."""
    with pytest.raises(NotFound, match="no-such-id"):
        store.edit("no-such-id", importance=0.5)
    with pytest.raises(KeyError):
        store.edit("no-such-id", text="x")
