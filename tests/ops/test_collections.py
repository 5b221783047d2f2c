"""Several collections and actors share one file without seeing or touching each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from houkai import InputError, MemoryStore, NotFound
from tests.agreement import disagreements
from tests.conftest import Opener
from tests.support import contents, dump_of, texts
from tests.transactions.mutators import scene


@pytest.fixture
def pair(open_store: Opener) -> tuple[MemoryStore, MemoryStore]:
    """Return two collections of one file, the first with memories in it."""
    mine, theirs = open_store(collection="mine"), open_store(collection="theirs")
    scene(mine)
    return mine, theirs


def test_reading_sees_only_its_own(pair: tuple[MemoryStore, MemoryStore]) -> None:
    """One project's memories must not leak into another's prompts."""
    mine, theirs = pair
    id = next(iter(contents(mine)))
    assert theirs.list_recent(None, include_superseded=True) == []
    assert theirs.count() == 0
    assert theirs.get(id) is None
    assert theirs.recall("alpha") == []
    assert theirs.recall("alpha", mode="semantic") == []
    assert theirs.find_by_content_hash("beta follows alpha") is None
    assert theirs.state_at("now") == []
    assert theirs.get_at(id, "now") is None
    assert theirs.history(id) == []
    assert theirs.journal() == []
    assert theirs.stats()["count"] == 0
    assert theirs.neighbors(id) == []
    assert theirs.list_tags() == []
    assert theirs.trash_list() == []
    with pytest.raises(NotFound):
        theirs.find_id(id)


WRITES: dict[str, Callable[[MemoryStore, str, str], Any]] = {
    "edit": lambda s, a, b: s.edit(a, text="changed"),
    "forget": lambda s, a, b: s.forget(a),
    "forget_many": lambda s, a, b: s.forget_many([a, b]),
    "nuke": lambda s, a, b: s.nuke(),
    "link": lambda s, a, b: s.link(a, b),
    "unlink": lambda s, a, b: s.unlink(a, b),
    "supersede": lambda s, a, b: s.supersede(a, b),
    "restore": lambda s, a, b: s.restore(a),
    "merge": lambda s, a, b: s.merge(a, b),
    "trash": lambda s, a, b: s.trash(a),
    "trash_many": lambda s, a, b: s.trash_many([a, b]),
    "trash_restore_many": lambda s, a, b: s.trash_restore_many([a, b]),
    "trash_purge": lambda s, a, b: s.trash_purge(),
    "rename_tag": lambda s, a, b: s.rename_tag("greek", "x"),
    "undo": lambda s, a, b: s.undo(1),
    "undo_last": lambda s, a, b: s.undo_last(),
    "undo_last_of_memory": lambda s, a, b: s.undo_last(memory_id=a),
    "undo_since": lambda s, a, b: s.undo_since(0),
    "preview_undo": lambda s, a, b: s.preview_undo(since=0).operations,
    "redo": lambda s, a, b: s.redo(),
}


@pytest.mark.parametrize("name", list(WRITES))
def test_writing_touches_only_its_own(name: str, pair: tuple[MemoryStore, MemoryStore]) -> None:
    """An id or a number from elsewhere must change nothing."""
    mine, theirs = pair
    mine.forget(mine.remember("something to redo").id)
    mine.undo_last()
    one, two = list(contents(mine))[:2]
    before = dump_of(mine)
    try:
        answer = WRITES[name](theirs, one, two)
    except NotFound:
        answer = None
    assert not getattr(answer, "changed", answer)
    assert dump_of(mine) == before


def test_the_same_words_in_both(pair: tuple[MemoryStore, MemoryStore]) -> None:
    """Equal texts share a vector in the file, but not a memory."""
    mine, theirs = pair
    copy = theirs.remember("beta follows alpha", tags=["greek"], idempotent=True)
    assert copy.id not in contents(mine)
    assert [hit.memory.id for hit in theirs.recall("beta alpha")] == [copy.id]
    theirs.forget(copy.id)
    assert "beta follows alpha" in texts(hit.memory for hit in mine.recall("beta alpha"))
    assert disagreements(mine) == []


def test_positions_count_for_each_collection(pair: tuple[MemoryStore, MemoryStore]) -> None:
    """A conversation of the same name elsewhere is another one."""
    mine, theirs = pair
    assert mine.remember("x", source="chat").position == 0
    assert theirs.remember("y", source="chat").position == 0


def test_undo_last_is_each_ones_own(pair: tuple[MemoryStore, MemoryStore]) -> None:
    """The newest operation of the file may be somebody else's."""
    mine, theirs = pair
    held = contents(mine)
    kept = theirs.remember("kept")
    mine.remember("mistaken")
    theirs.remember("newer")
    assert mine.undo_last() is not None
    assert contents(mine) == held
    assert set(texts(theirs.list_recent())) == {"kept", "newer"}
    assert theirs.get(kept.id) is not None


def test_a_filter_may_look_elsewhere(pair: tuple[MemoryStore, MemoryStore]) -> None:
    """A question over all projects names them, or asks for all with a star."""
    mine, theirs = pair
    theirs.remember("alpha elsewhere")
    assert texts(mine.list_recent(collection="theirs")) == ["alpha elsewhere"]
    assert len(mine.list_recent(None, collection="*")) == 4
    found = texts(hit.memory for hit in mine.recall("alpha", k=10, collection="*"))
    assert {"alpha elsewhere", "beta follows alpha"} <= set(found)
    assert texts(h.memory for h in mine.recall("alpha", collection="theirs")) == ["alpha elsewhere"]
    assert mine.list_recent(collection="no such collection") == []
    assert mine.recall("alpha", collection="no such collection") == []


def test_pages_of_all_collections_cover_everything(pair: tuple[MemoryStore, MemoryStore]) -> None:
    """The cursor may be a memory of another collection."""
    mine, theirs = pair
    theirs.remember_many(["one", "two"])
    seen: list[str] = []
    before: str | None = None
    while found := mine.list_recent(1, before=before, collection="*"):
        seen.append(found[0].id)
        before = found[0].id
    assert sorted(seen) == sorted(m.id for m in mine.list_recent(None, collection="*"))


@pytest.mark.parametrize("name", ["a", "with space", "ümläut 日本", "x'; drop table tag; --", "%"])
def test_any_name_will_do(name: str, open_store: Opener) -> None:
    """The peer refuses short names and names with spaces."""
    with open_store(collection=name) as store:
        store.remember("hello")
        assert store.stats()["collection"] == name
        assert store.recall("hello")
    with open_store(collection=name) as again, open_store() as other:
        assert texts(again.list_recent()) == ["hello"]
        assert other.count() == 0


@pytest.mark.parametrize("name", ["*", " ", "x" * 2000, 5, "\ud800"])
def test_bad_names_are_refused(name: Any, open_store: Opener) -> None:
    """A star means all collections, which is none to store in."""
    with pytest.raises(InputError, match="collection"):
        open_store(collection=name)


def test_actors_share_everything_but_the_name(store: MemoryStore) -> None:
    """A view is for the journal; it must not change the store it was made from."""
    alice = store.as_actor("alice", session="s1")
    bob = alice.as_actor("bob")
    memory = alice.remember("hello")
    bob.edit(memory.id, text="hello there")
    store.remember("mine")
    told = [(entry.op, entry.actor) for entry in reversed(store.journal())]
    assert told == [("remember", "alice"), ("edit", "bob"), ("remember", "lib")]
    assert contents(alice) == contents(bob) == contents(store)
    bob.recall("hello")
    found = alice.get(memory.id)
    assert found is not None
    assert found.access_count == 1
    assert (store.actor, alice.actor, alice.session) == ("lib", "alice", "s1")


@pytest.mark.parametrize("name", ["", " ", 5, None, "\ud800", "x" * 2000])
def test_an_actor_has_a_name(name: Any, store: MemoryStore) -> None:
    """An operation without an actor could not be asked for."""
    with pytest.raises(InputError, match="actor"):
        store.as_actor(name)
