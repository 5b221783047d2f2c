"""Curation: merging memories, reading their versions, and tidying tags."""

from __future__ import annotations

from typing import Any

import pytest

from houkai import InputError, Link, MemoryStore, NotFound, TagRename, limits
from houkai.ops import meaning
from tests.conftest import Opener
from tests.support import contents


def test_merge_keeps_the_better_of_both(store: MemoryStore) -> None:
    """What the absorbed memory knew beyond its text would be lost with it."""
    a = store.remember("one", tags=["x", "y"], importance=0.2, source="mine", entities=["Ann"])
    b = store.remember(
        "two", "episodic", ["y", "z"], 0.9, "theirs", pinned=True, entities=["Bob", "Ann"]
    )
    merged = store.merge(a.id, b.id)
    assert merged.text == "one\n\ntwo"
    assert (merged.id, merged.type, merged.source) == (a.id, "semantic", "mine")
    assert (merged.tags, merged.entities) == (["x", "y", "z"], ["Ann", "Bob"])
    assert (merged.importance, merged.pinned) == (0.9, True)
    assert store.get(a.id) == merged
    assert store.get(b.id) is None


@pytest.mark.parametrize(("one", "other"), [("trusted", "untrusted"), ("untrusted", "reported")])
def test_merge_launders_no_trust(store: MemoryStore, one: Any, other: Any) -> None:
    """Text from outside would become the user's own by being merged into it."""
    a, b = store.remember("one", trust=one), store.remember("two", trust=other)
    assert store.merge(a.id, b.id).trust == "untrusted"


def test_merged_text_is_found_and_embedded(store: MemoryStore) -> None:
    """A merged memory with the old vector is not found by its new half."""
    a, b = store.remember("apples grow"), store.remember("violins sound")
    merged = store.merge(a.id, b.id, separator=" ~ ")
    assert merged.text == "apples grow ~ violins sound"
    assert store.find_by_content_hash("APPLES grow ~ violins sound") == merged
    hits = store.recall("violins sound", mode="semantic")
    assert [hit.memory.id for hit in hits] == [a.id]
    assert hits[0].score > 0.5


def test_merge_repoints_every_link(store: MemoryStore) -> None:
    """A link to the absorbed memory is somebody's statement about what is now the target."""
    a, b, c = (store.remember(text).id for text in ("one", "two", "three"))
    store.link(c, b, "causes")
    store.link(b, c, "fixes")
    store.link(a, c, "fixes")
    store.link(a, b)
    store.link(b, a, "refines")
    store.merge(a, b)
    assert sorted(store.get(a).links, key=lambda link: link.rel) == [Link(c, "fixes")]  # type: ignore[union-attr]
    assert store.get(c).links == [Link(a, "causes")]  # type: ignore[union-attr]


def test_merge_repoints_marks(store: MemoryStore) -> None:
    """What the absorbed memory had superseded would be hidden by nothing, or turn up again."""
    a, b, old = (store.remember(text, pinned=text == "old").id for text in ("one", "two", "old"))
    store.supersede(old, b)
    merged = store.merge(a, b)
    assert store.get(old).superseded_by == a  # type: ignore[union-attr]
    assert merged.links == [Link(old, "supersedes")]
    assert merged.pinned
    store.restore(old)
    assert store.get(a).links == []  # type: ignore[union-attr]
    assert not store.get(a).pinned  # type: ignore[union-attr]


@pytest.mark.parametrize("hidden", ["target", "other", "both", "target by other", "by way of"])
def test_merged_is_hidden_only_if_both_were(store: MemoryStore, hidden: str) -> None:
    """Merging a live memory into a hidden one would hide it without a word."""
    a, b, c = (store.remember(text).id for text in ("one", "two", "three"))
    marks = {
        "target": [(a, c)],
        "other": [(b, c)],
        "both": [(a, c), (b, c)],
        "target by other": [(a, b)],
        "by way of": [(a, c), (c, b)],
    }
    for old, new in marks[hidden]:
        store.supersede(old, new)
    merged = store.merge(a, b)
    assert (merged.superseded_by is not None) is (hidden == "both")
    assert a in {m.id for m in store.list_recent()} or hidden == "both"
    stale = {link.to for m in store.list_recent(include_superseded=True) for link in m.links}
    assert stale == {m.id for m in store.list_recent(include_superseded=True) if m.superseded_by}


def test_merge_up_a_chain_keeps_what_is_above(store: MemoryStore) -> None:
    """The outdated half of a chain must stay outdated when two of its links become one."""
    a, b, top = (store.remember(text).id for text in ("one", "two", "top"))
    store.supersede(a, b)
    store.supersede(b, top)
    merged = store.merge(a, b)
    assert merged.superseded_by == top
    assert store.get(top).links == [Link(a, "supersedes")]  # type: ignore[union-attr]


def test_merge_is_one_operation(store: MemoryStore) -> None:
    """A merge that is half undone has lost a memory."""
    a, b, c = (store.remember(text, tags=[text]).id for text in ("one", "two", "three"))
    store.supersede(c, b)
    store.link(c, b, "causes")
    before = contents(store)
    store.merge(a, b)
    after = contents(store)
    store.undo_last()
    assert contents(store) == before
    store.redo()
    assert contents(store) == after


def test_merge_refuses(store: MemoryStore) -> None:
    """A merge that cannot be done must change nothing."""
    full = [f"tag {n}" for n in range(limits.TAGS)]
    a, b = store.remember("one", tags=full), store.remember("two", tags=["one more"])
    before = contents(store)
    with pytest.raises(InputError, match="differ"):
        store.merge(a.id, a.id)
    with pytest.raises(NotFound):
        store.merge(a.id, "nowhere")
    with pytest.raises(InputError, match=str(limits.TAGS)):
        store.merge(a.id, b.id)
    big = store.remember("x" * (limits.TEXT_BYTES - 3))
    with pytest.raises(InputError, match="limit"):
        store.merge(b.id, big.id)
    store.forget(big.id)
    assert contents(store) == before


def test_merge_begins_anew_after_a_rivals_edit(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit made while the joined text was being embedded would be lost."""
    store, rival = open_store(), open_store()
    a, b = store.remember("one"), store.remember("two")
    embed, edits = meaning.embed, iter(["two, really"])

    def slow(*given: Any) -> Any:
        done = embed(*given)
        for text in edits:
            rival.edit(b.id, text=text)
        return done

    monkeypatch.setattr("houkai.ops.curation.meaning.embed", slow)
    assert store.merge(a.id, b.id).text == "one\n\ntwo, really"


def test_versions_are_what_was_said_before(store: MemoryStore, clock: Any) -> None:
    """A version that shows the present text hides the one that was replaced."""
    a = store.remember("first", tags=["x"], importance=0.1, source="s").id
    assert store.versions(a) == []
    clock.advance(10)
    store.edit(a, text="second", tags=["y"])
    store.edit(a, pinned=True)
    store.edit(a, importance=0.9)
    found = store.versions(a)
    assert [(v.text, v.tags, v.importance) for v in found] == [
        ("first", ["x"], 0.1),
        ("second", ["y"], 0.1),
    ]
    assert (found[0].ts, found[0].source, found[0].type) == (clock.now, "s", "semantic")
    assert found[0].operation == 2
    assert store.versions("nowhere") == []


def test_tags_are_counted(store: MemoryStore) -> None:
    """A tag that only hidden memories carry is not in use."""
    store.remember("one", tags=["b", "a"])
    old = store.remember("two", tags=["b", "old"])
    new = store.remember("three", tags=["a"])
    store.supersede(old.id, new.id)
    assert store.list_tags() == [("a", 2), ("b", 1)]
    assert store.list_tags(include_superseded=True) == [("a", 2), ("b", 2), ("old", 1)]


def test_tags_are_renamed_in_place(store: MemoryStore) -> None:
    """The order of tags is their author's; a memory that has both names keeps one."""
    a = store.remember("one", tags=["x", "old", "y"])
    b = store.remember("two", tags=["new", "x", "old"])
    store.remember("three", tags=["x"])
    store.supersede(b.id, a.id)
    assert store.rename_tag(" old ", "new") == TagRename(2, "new")
    assert store.get(a.id).tags == ["x", "new", "y"]  # type: ignore[union-attr]
    assert store.get(b.id).tags == ["new", "x"]  # type: ignore[union-attr]
    assert store.rename_tag("old", "new").changed == 0
    assert store.rename_tag("new", "new").changed == 0


def test_tags_are_merged_and_deleted(store: MemoryStore) -> None:
    """Curating tags must never delete a memory."""
    a = store.remember("one", tags=["x", "y", "z"])
    b = store.remember("two", tags=["y"])
    assert store.merge_tags(["x", "y"], "xy").changed == 2
    assert store.get(a.id).tags == ["xy", "z"]  # type: ignore[union-attr]
    assert store.merge_tags(["xy", "z"], "z").changed == 2
    deleted = store.delete_tag("z")
    assert (deleted.changed, deleted.tag) == (2, "z")
    assert store.get(b.id).tags == []  # type: ignore[union-attr]
    assert store.list_tags() == []


def test_a_renamed_tag_is_found(store: MemoryStore) -> None:
    """A filter or a word search by the new name must find what bore the old one."""
    a = store.remember("one", tags=["oldname"])
    store.rename_tag("oldname", "newname")
    assert [m.id for m in store.list_recent(tag="newname")] == [a.id]
    assert store.list_recent(tag="oldname") == []
    assert [hit.memory.id for hit in store.recall("newname", k=1)] == [a.id]


@pytest.mark.parametrize("change", ["rename", "merge", "delete"])
def test_a_change_of_tags_is_undone_as_one(store: MemoryStore, change: str) -> None:
    """Two hundred edits, of which an undo takes back one, cannot be taken back."""
    for n in range(5):
        store.remember(f"memory {n}", tags=["x", "y"][: n % 3])
    before = contents(store)
    calls = {
        "rename": lambda: store.rename_tag("x", "z"),
        "merge": lambda: store.merge_tags(["x", "y"], "z"),
        "delete": lambda: store.delete_tag("x"),
    }
    calls[change]()
    assert contents(store) != before
    store.undo_last()
    assert contents(store) == before


def test_tags_of_other_collections_stay(open_store: Opener) -> None:
    """One project's housekeeping must not rewrite another's."""
    mine, theirs = open_store(), open_store(collection="theirs")
    mine.remember("one", tags=["x"])
    theirs.remember("two", tags=["x"])
    assert mine.delete_tag("x").changed == 1
    assert theirs.list_tags() == [("x", 1)]


@pytest.mark.parametrize("bad", ["", "  ", "x" * (limits.TAG_CHARS + 1), None, 3])
def test_tags_that_no_memory_may_carry_are_refused(store: MemoryStore, bad: Any) -> None:
    """A tag that `remember` refuses must not come in by renaming."""
    store.remember("one", tags=["x"])
    with pytest.raises(InputError):
        store.rename_tag("x", bad)
    with pytest.raises(InputError):
        store.merge_tags(["x"], bad)
    with pytest.raises(InputError):
        store.merge_tags("x", "y")  # type: ignore[arg-type]
    assert store.list_tags() == [("x", 1)]
