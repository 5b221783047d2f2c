"""Filters decide before ranking does: k come back whenever k are eligible, however rare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from houkai import MemoryStore
from houkai.search import in_file, resident
from tests.conftest import Opener
from tests.support import Clock

CROWD, RARE, K = 1_000, 10, 5
Scene = Callable[[MemoryStore, Clock], dict[str, Any]]


def crowd(store: MemoryStore, count: int = CROWD, **fields: Any) -> None:
    """Store many memories that fit the question as well as the rare ones do."""
    store.remember_many(
        [{"text": f"the alpha report number {n}", **fields} for n in range(count)], batch_size=1_000
    )


def rare(store: MemoryStore, count: int = RARE, **fields: Any) -> None:
    """Store the few that a filter is to find."""
    store.remember_many([{"text": f"an alpha note {n}", **fields} for n in range(count)])


def tagged(store: MemoryStore, clock: Clock) -> dict[str, Any]:
    """Ten carry the tag, among a thousand."""
    crowd(store)
    rare(store, tags=["rare"])
    return {"tag": "rare"}


def trusted(store: MemoryStore, clock: Clock) -> dict[str, Any]:
    """Few are trusted, among many from outside."""
    crowd(store, trust="untrusted")
    rare(store)
    return {"min_trust": "trusted"}


def live(store: MemoryStore, clock: Clock) -> dict[str, Any]:
    """Few are live, among many that were superseded."""
    rare(store)
    crowd(store, 200)
    newest = store.list_recent(1)[0].id
    for memory in store.list_recent(None, until=clock.now):
        if "report" in memory.text and memory.id != newest:
            store.supersede(memory.id, newest)
    return {}


def unexpired(store: MemoryStore, clock: Clock) -> dict[str, Any]:
    """Few are unexpired."""
    rare(store)
    crowd(store, ttl_seconds=5)
    clock.advance(10)
    return {}


def valid(store: MemoryStore, clock: Clock) -> dict[str, Any]:
    """Few are true now."""
    rare(store)
    crowd(store, valid_until=clock.now - 5)
    return {}


def valid_then(store: MemoryStore, clock: Clock) -> dict[str, Any]:
    """Few were true at the moment asked about."""
    rare(store, valid_until=clock.now - 500)
    crowd(store, valid_from=clock.now - 400)
    return {"valid_at": clock.now - 600}


def sourced(store: MemoryStore, clock: Clock) -> dict[str, Any]:
    """Few are from the source."""
    crowd(store, source="other")
    rare(store, source="here")
    return {"source": "here"}


def recent(store: MemoryStore, clock: Clock) -> dict[str, Any]:
    """Few are recent."""
    crowd(store)
    clock.advance(1_000)
    rare(store)
    return {"since": "500s"}


def important(store: MemoryStore, clock: Clock) -> dict[str, Any]:
    """Few are important, of one type and by one author."""
    crowd(store, importance=0.2)
    rare(store, importance=0.9, type="feedback", author="user")
    return {"min_importance": 0.8, "type": "feedback", "author": "user"}


def elsewhere(store: MemoryStore, clock: Clock) -> dict[str, Any]:
    """Few are in this collection."""
    other = store.as_actor("lib")
    other.collection = "other"
    crowd(other)
    rare(store)
    return {}


SCENES: list[Scene] = [tagged, trusted, live, unexpired, valid, valid_then, sourced, recent,
                       important, elsewhere]  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "sketched"])
def test_k_come_back_when_k_are_eligible(
    scene: Scene,
    exact: bool,
    open_store: Opener,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A filter applied after the search returns a handful, or nothing, and says nothing."""
    if not exact:
        for module in (in_file, resident):
            monkeypatch.setattr(module, "EXACT", 50)
    store = open_store(":memory:")
    given = scene(store, clock)
    for options in ({}, {"mode": "semantic"}, {"fusion": "weighted"}, {"fusion": "rrf"}):
        for _ in range(2):  # a cold recall asks the file, a warm one the copy in RAM
            hits = store.recall("the alpha report", K, touch=False, **given, **options)
            assert len(hits) == K, options
            wrong = [hit.memory.text for hit in hits if "note" not in hit.memory.text]
            assert len(wrong) <= (scene is live), wrong
        hits = store.recall("the alpha report", 10 * RARE, touch=False, **given, **options)
        assert len(hits) == RARE + (scene is live)


def test_nothing_eligible_is_nothing(store: MemoryStore) -> None:
    """Filling up with what was filtered out would be worse than an empty answer."""
    crowd(store, 50, trust="untrusted")
    assert store.recall("the alpha report", min_trust="trusted") == []
    assert store.recall("the alpha report", tag="none") == []
    assert store.recall("the alpha report", since="9999-01-01") == []
