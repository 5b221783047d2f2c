"""Names that few memories carry and links of the best bring candidates, and weigh a little."""

from __future__ import annotations

import pytest

from houkai import MemoryStore
from houkai.search.names import COMMON
from tests.conftest import Opener
from tests.support import Clock

FILLER = [f"filler text number {number} about nothing at all" for number in range(30)]


def told(store: MemoryStore, query: str, part: str, **options: object) -> dict[str, float]:
    """Return what one part of the blend gave each memory that got something."""
    hits = store.recall(query, 50, explain=True, touch=False, **options)  # type: ignore[call-overload]
    return {hit.memory.id: hit.explain[part] for hit in hits if hit.explain[part]}


@pytest.mark.parametrize(
    "query", ["kubernetes", "kubern", "what about control?", "CONTROL", "is Kubernetes control ok"]
)
def test_a_name_is_met_whole_by_its_beginning_or_by_a_later_word(
    query: str, store: MemoryStore
) -> None:
    """A tag says what a memory is about in a word that its text may lack."""
    store.remember_many(FILLER)
    tagged = store.remember("the thing restarts at night", tags=["kubernetes"]).id
    named = store.remember("it listens on 6443", entities=["kubernetes-control-plane"]).id
    found = told(store, query, "entity")
    assert found.keys() <= {tagged, named}
    assert named in found


def test_a_rare_name_weighs_more_than_one_that_many_carry(store: MemoryStore) -> None:
    """Each carrier gets one by the number of carriers."""
    rare = store.remember("one", tags=["zebra"]).id
    shared = [store.remember(text, tags=["yak"]).id for text in ("two", "three")]
    found = told(store, "zebra yak", "entity")
    assert found[rare] == pytest.approx(0.1)
    assert [found[id] for id in shared] == pytest.approx([0.05, 0.05])


def test_a_name_that_very_many_carry_is_no_name(store: MemoryStore) -> None:
    """A tag on everything tells nothing, and would make every memory a candidate."""
    store.remember_many([{"text": text, "tags": ["work"]} for text in FILLER * (COMMON // 30 + 1)])
    assert told(store, "work", "entity") == {}


def test_a_name_that_another_collection_is_full_of_stays_a_name(open_store: Opener) -> None:
    """What one project tags everything with is rare in the next, whose memories come later."""
    with open_store(collection="full") as other:
        other.remember_many([{"text": t, "tags": ["work"]} for t in FILLER * (COMMON // 30 + 1)])
    store = open_store()
    kept = store.remember("one", tags=["work"]).id
    assert told(store, "work", "entity").keys() == {kept}
    store.edit(kept, tags=["play"])
    assert told(store, "work", "entity", as_of=store.journal(2)[1].ts).keys() == {kept}


def test_names_respect_the_filter(store: MemoryStore) -> None:
    """A name must not bring back what a filter keeps out."""
    store.remember("one", tags=["zebra"], type="episodic")
    kept = store.remember("two", tags=["zebra"], type="semantic").id
    assert told(store, "zebra", "entity", type="semantic").keys() == {kept}


def test_a_name_is_as_rare_as_the_filter_leaves_it(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What most carriers of a name are must not hide the one that was asked for."""
    many = [{"text": text, "tags": ["zebra"], "source": "log"} for text in FILLER * 4]
    store.remember_many(many)  # type: ignore[arg-type]
    kept = store.remember("one", tags=["zebra"], source="notes").id
    assert len(many) > COMMON
    found = told(store, "zebra", "entity", source="notes")
    assert found == {kept: pytest.approx(0.1)}
    then = store.journal(1)[0].ts
    store.edit(kept, tags=[])
    assert told(store, "zebra", "entity", source="notes") == {}
    assert told(store, "zebra", "entity", source="notes", as_of=then) == found
    monkeypatch.setattr("houkai.search.names.FILTERED_REACH", len(many))
    assert told(store, "zebra", "entity", source="notes", as_of=then) == found
    monkeypatch.setattr("houkai.search.names.FILTERED_REACH", len(many) - 1)
    assert told(store, "zebra", "entity", source="notes", as_of=then) == {}


def test_hidden_carriers_of_a_name_do_not_count(store: MemoryStore) -> None:
    """A name whose carriers were all superseded but one is the name of that one."""
    for text in FILLER * 4:
        store.remember(text, tags=["zebra"], expires_at=store.now() + 1)
    kept = store.remember("one", tags=["zebra"]).id
    assert told(store, "zebra", "entity", now=store.now() + 2) == {kept: pytest.approx(0.1)}


def test_what_the_best_is_linked_to_competes(store: MemoryStore) -> None:
    """A cause is often said in other words than its effect, and the link knows it."""
    store.remember_many(FILLER)
    effect = store.remember("the zebra enclosure flooded").id
    cause = store.remember("a pipe burst upstairs").id
    store.link(cause, effect, "causes")
    found = told(store, "zebra enclosure flooded", "linked")
    assert found[cause] > found.get(effect, 0.0)
    store.unlink(cause, effect)
    assert told(store, "zebra enclosure flooded", "linked") == {}


def test_links_respect_the_filter(store: MemoryStore) -> None:
    """A link must not lead to what is expired or of another type."""
    best = store.remember("the zebra enclosure flooded", type="semantic").id
    other = store.remember("a pipe burst", type="episodic").id
    store.link(other, best, "causes")
    assert told(store, "zebra enclosure", "linked", type="semantic") == {}


def test_names_and_links_are_as_they_were(clock: Clock, open_store: Opener) -> None:
    """A recall of the past ranks by the tags and links of that moment, and by no later ones."""
    store = open_store(clock=clock)
    best = store.remember("the zebra enclosure flooded", tags=["gnu"]).id
    other = store.remember("a pipe burst").id
    store.link(other, best, "causes")
    then = store.journal(1)[0].ts
    clock.advance(60)
    store.unlink(other, best)
    store.edit(best, tags=["okapi"])
    parted = store.journal(1)[0].ts
    clock.advance(60)
    store.edit(best, text="the zebra enclosure flooded again")
    past = {"as_of": then}
    assert told(store, "zebra enclosure", "linked", as_of=parted) == {}
    assert told(store, "zebra enclosure", "linked", **past).keys() >= {other}
    assert told(store, "zebra enclosure", "linked") == {}
    assert told(store, "gnu", "entity", **past).keys() == {best}
    assert told(store, "gnu", "entity") == {}
    assert told(store, "okapi", "entity").keys() == {best}
    assert told(store, "okapi", "entity", **past) == {}


def test_a_neighbour_is_who_it_was(clock: Clock, open_store: Opener) -> None:
    """Of two at one place of a source, the same one must lend after the other was edited."""
    store = open_store(clock=clock)
    place = {"source": "chat", "position": 1}
    store.remember("zebra zebra enclosure", **place)
    clock.advance(60)
    other = store.remember("something else", **place).id
    store.remember("yes", source="chat", position=2)
    clock.advance(60)
    before, then = told(store, "zebra enclosure", "neighbour"), store.journal(1)[0].ts
    store.edit(other, tags=["changed"])
    assert before
    assert told(store, "zebra enclosure", "neighbour", as_of=then) == pytest.approx(
        before, abs=5e-3
    )
