"""Reading without ranking: by id, by prefix, by content, newest first and page by page."""

from __future__ import annotations

import math
from typing import Any

import pytest

from houkai import InputError, MemoryStore, NotFound
from tests.support import EVERYTHING, Clock, contents, texts


@pytest.fixture
def filled(store: MemoryStore, clock: Clock) -> MemoryStore:
    """Return a store with one memory for each way to be filtered."""
    store.remember("plain", importance=0.5)
    clock.advance(10)
    store.remember("tagged", tags=["a", "b"], importance=0.9, type="episodic")
    clock.advance(10)
    store.remember("sourced", source="s", author="user", trust="reported")
    clock.advance(10)
    store.remember("doubtful", trust="untrusted", importance=0.1)
    store.remember("short-lived", ttl_seconds=5)
    store.remember("past fact", valid_until=clock.now - 100)
    store.remember("coming fact", valid_from=clock.now + 100)
    old = store.remember("replaced")
    store.supersede(old.id, store.remember("replacing").id)
    clock.advance(10)
    return store


def test_newest_first_and_hidden_left_out(filled: MemoryStore) -> None:
    """A listing shows what is live, in the order it was learnt."""
    assert texts(filled.list_recent(100)) == [
        "replacing",
        "doubtful",
        "sourced",
        "tagged",
        "plain",
    ]
    assert texts(filled.list_recent(2)) == ["replacing", "doubtful"]
    assert filled.list_recent(0) == []
    assert len(filled.list_recent(None, **EVERYTHING)) == filled.count() == 9


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"tag": "a"}, {"tagged"}),
    ({"tag": "A"}, set()),
    ({"tag": "*"}, set()),
    ({"type": "episodic"}, {"tagged"}),
    ({"min_importance": 0.9}, {"tagged"}),
    ({"min_importance": 0}, {"plain", "tagged", "sourced", "doubtful", "replacing"}),
    ({"source": "s"}, {"sourced"}),
    ({"author": "user"}, {"sourced"}),
    ({"min_trust": "reported"}, {"plain", "tagged", "sourced", "replacing"}),
    ({"min_trust": "trusted"}, {"plain", "tagged", "replacing"}),
    ({"min_trust": "untrusted"}, {"plain", "tagged", "sourced", "doubtful", "replacing"}),
    ({"since": "25s", "until": "15s"}, {"sourced"}),
    ({"include_superseded": True, "min_importance": 0.5},
     {"plain", "tagged", "sourced", "replacing", "replaced"}),
    ({"include_expired": True, "since": "15s"}, {"doubtful", "short-lived", "replacing"}),
    ({"include_retired": True, "since": "15s"},
     {"doubtful", "past fact", "coming fact", "replacing"}),
    ({"tag": "a", "type": "semantic"}, set()),
]  # fmt: skip


@pytest.mark.parametrize(("given", "wanted"), FILTERS)
def test_filters(given: dict[str, Any], wanted: set[str], filled: MemoryStore) -> None:
    """Each filter lets through exactly what it names, alone and together."""
    assert set(texts(filled.list_recent(None, **given))) == wanted


def test_valid_at_asks_about_the_world_then(filled: MemoryStore, clock: Clock) -> None:
    """What was true at a moment may be over, or only coming."""
    before, after = clock.now - 500, clock.now + 500
    assert "past fact" in texts(filled.list_recent(None, valid_at=before))
    assert "coming fact" in texts(filled.list_recent(None, valid_at=after))
    assert "coming fact" not in texts(filled.list_recent(None, valid_at=before))


def test_bounds_of_time_are_as_promised(store: MemoryStore, clock: Clock) -> None:
    """Since and until include their moment; validity includes its start but not its end."""
    at = clock.now
    store.remember("now", valid_from=at, valid_until=at + 10, expires_at=at + 20)
    assert len(store.list_recent(since=at, until=at)) == 1
    assert store.list_recent(since=at + 0.001) == []
    assert store.list_recent(until=at - 0.001) == []
    assert len(store.list_recent(valid_at=at)) == 1
    assert len(store.list_recent(valid_at=at + 9.999)) == 1
    assert store.list_recent(valid_at=at + 10) == []
    clock.advance(20)
    assert store.list_recent(valid_at=at) == []
    assert len(store.list_recent(valid_at=at, include_expired=True)) == 1


@pytest.mark.parametrize("page", [1, 2, 3, 7, 50])
def test_pages_cover_everything_once(page: int, store: MemoryStore, clock: Clock) -> None:
    """Memories stored in the same instant must neither repeat nor vanish between pages."""
    for step in range(4):
        store.remember_many([f"{step} {n}" for n in range(5)])
        clock.advance(step % 2)
    seen: list[str] = []
    before: str | None = None
    while found := store.list_recent(page, before=before):
        seen += [memory.id for memory in found]
        before = found[-1].id
    assert seen == [memory.id for memory in store.list_recent(None)]
    assert len(set(seen)) == 20


def test_a_page_goes_on_where_it_was_when_more_arrives(store: MemoryStore, clock: Clock) -> None:
    """New memories come before the first page, and do not shift the next one."""
    store.remember_many(["a", "b", "c"])
    first = store.list_recent(2)
    clock.advance(1)
    store.remember("d")
    assert texts(store.list_recent(2, before=first[-1].id)) == ["a"]


def test_a_moment_is_a_cursor_too(filled: MemoryStore, clock: Clock) -> None:
    """The peer's cursor is the last created_at, strictly before."""
    last = filled.list_recent(3)[-1]
    assert texts(filled.list_recent(None, before=last.created_at)) == ["tagged", "plain"]
    assert texts(filled.list_recent(None, before="35s")) == ["plain"]


def test_a_cursor_that_is_gone_says_so(store: MemoryStore) -> None:
    """Starting over from the top would show the same page again."""
    memory = store.remember("a")
    store.forget(memory.id)
    with pytest.raises(NotFound, match=memory.id):
        store.list_recent(before=memory.id)


def test_get_finds_hidden_ones_and_only_whole_ids(filled: MemoryStore) -> None:
    """An id that was once shown must always lead back to its memory."""
    for id, fields in contents(filled).items():
        found = filled.get(id)
        assert found is not None
        assert found.text == fields["text"]
        assert filled.get(id[:-1]) is None
    assert filled.get("no-such-id") is None


def test_find_id_takes_any_unique_beginning(store: MemoryStore) -> None:
    """People copy the first digits that a listing shows."""
    ids = [memory.id for memory in store.remember_many([f"{n}" for n in range(20)])]
    for id in ids:
        unique = next(n for n in range(1, 37) if sum(o.startswith(id[:n]) for o in ids) == 1)
        assert store.find_id(id[:unique]) == id
        assert store.find_id(f"  {id} ") == id
    with pytest.raises(NotFound):
        store.find_id("zz")


def test_find_id_says_when_several_fit(store: MemoryStore) -> None:
    """Choosing one of them would change the wrong memory."""
    ids = [memory.id for memory in store.remember_many([f"{n}" for n in range(40)])]
    shared = next(digit for digit in "0123456789abcdef" if sum(i[0] == digit for i in ids) > 1)
    with pytest.raises(InputError, match="Several memories") as caught:
        store.find_id(shared)
    assert "more characters" in caught.value.hint


def test_wildcards_in_ids_are_letters(store: MemoryStore) -> None:
    """A percent sign must not find everything."""
    store.remember("a")
    for wild in ("%", "_", "*", "?", "["):
        with pytest.raises(NotFound):
            store.find_id(wild)
        assert store.get(wild) is None


def test_find_by_content_ignores_case_and_space(store: MemoryStore, clock: Clock) -> None:
    """It answers whether a text is known, as the idempotent write asks it."""
    memory = store.remember("Hello  World", ttl_seconds=60)
    found = store.find_by_content_hash(" hello world ")
    assert found is not None
    assert found.id == memory.id
    assert store.find_by_content_hash("hello") is None
    clock.advance(100)
    assert store.find_by_content_hash("hello world") is None


def test_a_limit_has_no_upper_bound(store: MemoryStore) -> None:
    """The library lists as much as there is; only wires have a bound."""
    store.remember("a")
    assert len(store.list_recent(2**53)) == 1
    with pytest.raises(InputError, match="limit"):
        store.list_recent(math.inf)  # type: ignore[arg-type]


def test_stats_count_what_is_there(filled: MemoryStore) -> None:
    """Numbers that disagree with the listing would be worse than none."""
    told = filled.stats()
    assert told["count"] == filled.count() == 9
    assert told["by_type"] == {"semantic": 8, "episodic": 1}
    assert told["operations"] == len(filled.journal(None))
    assert told["links"] == 1
    assert (told["collections"], told["collection_names"]) == (1, ["default"])
    assert told["unembedded"] == 0
