"""The trash: aside and back again with everything, or gone for good."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from houkai import Diverged, InputError, Link, MemoryStore
from houkai.ops.trash import DAY_S
from tests.conftest import Opener
from tests.support import Clock, contents, dump_of


def tangled(store: MemoryStore) -> tuple[str, str, str]:
    """Store three memories: the second supersedes the first, and is linked with the third."""
    a = store.remember("first secret", pinned=True, tags=["x"]).id
    b = store.remember("second secret", entities=["Ann"]).id
    c = store.remember("third").id
    store.supersede(a, b)
    store.link(b, c, "causes")
    store.link(c, b, "fixes")
    return a, b, c


def test_trashed_is_gone_for_all_else(store: MemoryStore) -> None:
    """A memory in the trash that is still recalled was not thrown away."""
    a, b, c = tangled(store)
    assert store.trash(b) is True
    assert store.get(b) is None
    assert {m.id for m in store.list_recent()} == {a, c}
    assert b not in {hit.memory.id for hit in store.recall("second secret")}
    assert store.get(c).links == []  # type: ignore[union-attr]
    assert store.trash(b) is False
    assert store.trash("nowhere") is False


def test_the_trash_tells_what_when_and_who(store: MemoryStore, clock: Clock) -> None:
    """Whoever empties the trash must see what goes."""
    _, b, c = tangled(store)
    whole = store.get(b)
    assert whole is not None
    store.as_actor("tidy").trash(b)
    clock.advance(5)
    store.trash(c)
    first, second = store.trash_list()
    assert (first.memory_id, first.actor, first.collection) == (b, "tidy", "default")
    assert first.memory == whole.to_dict()
    assert second.deleted_at - first.deleted_at == pytest.approx(5, abs=1)


def test_many_are_put_aside_and_brought_back_as_one(store: MemoryStore) -> None:
    """Who throws three away by mistake must not have to undo three times."""
    a, b, c = tangled(store)
    before = contents(store)
    assert store.trash_many([c, "none", a, b, c]) == [c, a, b]
    assert contents(store) == {}
    assert (store.journal(1)[0].op, store.journal(1)[0].changes) == ("trash", 9)
    assert {entry.memory_id for entry in store.trash_list()} == {a, b, c}
    store.undo_last()
    assert (contents(store), store.trash_list()) == (before, [])
    assert store.trash_many([]) == []


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_went_together_comes_back_tied(order: tuple[int, ...], store: MemoryStore) -> None:
    """The links among them are known to each, or the second to come back would be alone."""
    all_three = tangled(store)
    before = contents(store)
    store.trash_many(all_three)
    for at in order:
        store.trash_restore(all_three[at])
    assert contents(store) == before


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_many_come_back_as_one(order: tuple[int, ...], store: MemoryStore) -> None:
    """What went alone knows nothing of what had gone before: only together are they tied again."""
    all_three = tangled(store)
    before = contents(store)
    for id in all_three:
        store.trash(id)
    there = dump_of(store)["memory"]
    wanted = [all_three[at] for at in order]
    assert store.trash_restore_many([wanted[0], "none", *wanted]) == wanted
    assert contents(store) == before
    store.undo_last()
    assert dump_of(store)["memory"] == there
    assert {entry.memory_id for entry in store.trash_list()} == set(all_three)
    assert store.trash_restore_many([]) == []
    with pytest.raises(InputError, match=r"^memory_ids must be a list of ids, got 'abc'\.$"):
        store.trash_restore_many("abc")  # type: ignore[arg-type]


def test_restore_brings_everything_back(store: MemoryStore) -> None:
    """A memory that comes back without its ties has lost what it meant."""
    _, b, _ = tangled(store)
    before = contents(store)
    store.trash(b)
    restored = store.trash_restore(b)
    assert contents(store) == before
    assert restored == store.get(b)
    assert store.trash_list() == []
    assert store.trash_restore(b) is None
    assert store.trash_restore("nowhere") is None
    assert "second secret" in [hit.memory.text for hit in store.recall("second secret")]


def test_restore_ties_to_what_lives(store: MemoryStore) -> None:
    """A tie to a memory that is gone meanwhile must not keep the rest from coming back."""
    a, b, c = tangled(store)
    d = store.remember("fourth").id
    store.link(b, d)
    store.trash(b)
    store.forget(c)
    store.supersede(a, d)
    restored = store.trash_restore(b)
    assert restored is not None
    assert restored.links == [Link(d, "related")]
    assert store.get(a).superseded_by == d  # type: ignore[union-attr]
    assert not restored.pinned


def test_restore_below_a_superseder_that_is_gone(store: MemoryStore) -> None:
    """A memory that comes back hidden by nothing could never be seen again."""
    a, b, _ = tangled(store)
    store.trash(a)
    store.forget(b)
    restored = store.trash_restore(a)
    assert restored is not None
    assert restored.superseded_by is None
    assert restored.pinned


def test_restore_closes_no_circle(store: MemoryStore) -> None:
    """Two memories that came to supersede each other would both be hidden."""
    a, b, c = tangled(store)
    store.supersede(b, c)
    store.trash(b)
    store.supersede(c, a)
    restored = store.trash_restore(b)
    assert restored is not None
    shown = [m.id for m in store.list_recent()]
    assert shown, "every memory is hidden"
    assert store.restore(restored.id) or restored.superseded_by is None


def test_a_live_memory_is_not_overwritten(open_store: Opener) -> None:
    """A memory that came back by another way is newer than what the trash holds."""
    store = open_store()
    a = store.remember("one").id
    store.trash(a)
    image = {"collection": "default", "text": "imported", "type": "semantic",
             "importance": 0.5, "created_at": 1.0}  # fmt: skip
    store.write("import", lambda tx: tx.put("memory", a, image))
    assert store.trash_restore(a) is None
    assert store.get(a).text == "imported"  # type: ignore[union-attr]
    assert len(store.trash_list()) == 1
    store.trash_purge(a)
    assert [m.text for m in store.state_at("now")] == ["imported"]
    assert store.history(a)[-1].after is not None


def test_undo_and_redo_go_through_the_trash(store: MemoryStore) -> None:
    """The trash must hold exactly what is aside now, whatever was undone."""
    _, b, _ = tangled(store)
    before = contents(store)
    store.trash(b)
    trashed, listed = contents(store), store.trash_list()
    store.undo_last()
    assert (contents(store), store.trash_list()) == (before, [])
    store.redo()
    assert (contents(store), store.trash_list()) == (trashed, listed)
    store.trash_restore(b)
    store.undo_last()
    assert (contents(store), store.trash_list()) == (trashed, listed)
    store.redo()
    assert (contents(store), store.trash_list()) == (before, [])


def test_the_trash_outlives_pruning(store: MemoryStore) -> None:
    """Compacting the journal is no reason to lose what can still be restored."""
    _, b, _ = tangled(store)
    before, vectors = contents(store), len(dump_of(store)["embedding"])
    store.trash(b)
    store.prune_journal(keep_last=0)
    assert len(dump_of(store)["embedding"]) == vectors
    store.trash_restore(b)
    assert contents(store) == before
    assert [hit.memory.id for hit in store.recall("second secret", 1, mode="semantic")] == [b]


def test_purge_by_id_by_age_or_all(store: MemoryStore, clock: Clock) -> None:
    """A purge that takes more than it was told cannot be taken back."""
    ids = [store.remember(f"memory {n}").id for n in range(4)]
    for id in ids:
        store.trash(id)
        clock.advance(DAY_S)
    assert store.trash_purge("nowhere") == 0
    assert store.trash_purge(ids[2]) == 1
    assert store.trash_purge(older_than_days=3.5) == 1
    assert [entry.memory_id for entry in store.trash_list()] == [ids[1], ids[3]]
    assert store.trash_purge_expired(0) == store.trash_purge_expired(-1) == 0
    assert store.trash_purge_expired(2.5) == 1
    assert store.trash_purge_expired(1, now=clock.now) == 0
    assert store.trash_purge() == 1
    assert store.trash_purge() == 0
    assert store.trash_list() == []


@pytest.mark.parametrize(
    "bad",
    [{"memory_id": "x", "older_than_days": 1}, {"older_than_days": -1}, {"older_than_days": "1d"}],
)
def test_purge_refuses_what_it_does_not_understand(store: MemoryStore, bad: Any) -> None:
    """A misread argument must not become 'everything'."""
    store.trash(store.remember("one").id)
    with pytest.raises(InputError):
        store.trash_purge(**bad)
    assert len(store.trash_list()) == 1


def test_purged_is_gone_from_every_row(file_store: MemoryStore) -> None:
    """Whoever purges a secret expects that no table remembers it."""
    store = file_store
    _, b, _ = tangled(store)
    store.edit(b, text="second secret reworded")
    store.recall("second")
    store.db.settle()
    store.trash(b)
    store.undo_last()
    store.redo()
    assert "second" in str(dump_of(store))
    vectors = store.stats()["unembedded"]
    assert store.trash_purge(b) == 1
    rows = dump_of(store)
    kept = {name: part for name, part in rows.items() if not name.startswith(("memory_", "past_"))}
    assert "second" not in str(kept)
    assert "Ann" not in str(kept)
    assert len(rows["embedding"]) == 2
    assert b not in {row[0] for row in rows["touch"]}
    assert store.stats()["unembedded"] == vectors


def test_purge_spares_what_others_say(store: MemoryStore) -> None:
    """Two memories with one text share its vector."""
    a, b = store.remember("same text").id, store.remember("same text").id
    old = store.remember("other text").id
    store.edit(old, text="third text")
    c = store.remember("other text").id
    for id in (a, c):
        store.trash(id)
    store.trash_purge()
    assert store.get(b).text == "same text"  # type: ignore[union-attr]
    assert store.recall("same text", 1, mode="semantic")[0].memory.id == b
    store.undo_last(memory_id=old)
    assert store.stats()["unembedded"] == 0


def test_the_chain_stays_whole_and_undo_refuses(store: MemoryStore) -> None:
    """Erasing must not look like tampering, and undoing it must not half succeed."""
    _, b, c = tangled(store)
    store.trash(b)
    store.trash_purge(b)
    assert store.verify_journal() is None
    before = contents(store)
    for entry in store.journal(2):
        with pytest.raises(Diverged, match="purged"):
            store.undo(entry)
    with pytest.raises(Diverged, match="purged"):
        store.undo_last()
    assert contents(store) == before
    assert all(entry.before is None and entry.after is None for entry in store.history(b)[:1])
    store.edit(c, text="third, edited")
    assert store.undo_last(memory_id=c) is not None


def test_each_collection_has_its_trash(open_store: Opener) -> None:
    """Emptying one project's trash must not empty another's."""
    mine, theirs = open_store(), open_store(collection="theirs")
    a, b = mine.remember("one").id, theirs.remember("two").id
    assert mine.trash(b) is False
    mine.trash(a)
    theirs.trash(b)
    assert [entry.memory_id for entry in mine.trash_list()] == [a]
    assert mine.trash_restore(b) is None
    assert mine.trash_purge() == 1
    assert theirs.trash_restore(b) is not None


def test_a_text_without_vectors_is_embedded_on_its_way_back(store: MemoryStore) -> None:
    """A memory trashed under another model would come back unfindable by meaning."""
    a = store.remember("lonely text").id
    store.trash(a)
    store.db.write(lambda connection: connection.execute("delete from embedding"))
    store.trash_restore(a)
    assert store.recall("lonely text", 1, mode="semantic")[0].memory.id == a
