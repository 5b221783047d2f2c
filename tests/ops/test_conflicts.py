"""Finding conflicts: the rules one by one, both ends eligible, links until they are resolved."""

from __future__ import annotations

import math
from typing import Any

import pytest

from houkai import Conflict, InputError, Memory, MemoryStore
from houkai.conflict_rules import is_negated, judge, may_conflict
from tests.conftest import Opener
from tests.ops.angles import Windows, at_angle

TOPIC = "deploys run at noon"


@pytest.fixture
def store(open_store: Opener) -> MemoryStore:
    """Return a store whose texts end in the angle of their vector, in degrees."""
    return open_store(":memory:", embedder=at_angle)


def told(conflicts: list[Conflict]) -> list[tuple[str, str, str, str]]:
    """Return kind, reason and both texts of each conflict."""
    return [(c.kind, c.reason, c.a.text, c.b.text) for c in conflicts]


def test_similar_texts_are_duplicates(store: MemoryStore) -> None:
    """Nobody tidies a memory that does not know its doubles."""
    a = store.remember("one 0")
    b = store.remember("two 20")
    store.remember("three 90")
    found = store.find_conflicts()
    assert told(found) == [("duplicate", "similarity", "one 0", "two 20")]
    assert found[0].similarity == pytest.approx(math.cos(math.radians(20)), abs=0.001)
    assert (found[0].a, found[0].b) == (a, b)


def test_threshold_is_inclusive_and_as_shown(store: MemoryStore) -> None:
    """A pair shown as .9397 must be found when .9397 is asked for."""
    a = store.remember("one 0").id
    store.remember("two 20")
    shown = store.find_conflicts()[0].similarity
    for subject in (None, a):
        assert len(store.find_conflicts(subject, threshold=shown)) == 1
        assert store.find_conflicts(subject, threshold=shown + 0.0001) == []


def test_default_threshold_is_the_stores(open_store: Opener) -> None:
    """A store that was opened stricter must not report what it would not refuse."""
    store = open_store(":memory:", embedder=at_angle, conflict_threshold=0.99)
    store.remember("one 0")
    store.remember("two 20")
    assert store.find_conflicts() == []
    with pytest.raises(InputError, match="conflict_threshold"):
        open_store(":memory:", conflict_threshold=2)


def test_types_never_conflict_across(store: MemoryStore) -> None:
    """An event and the rule drawn from it say nearly the same, on purpose."""
    store.remember("one 0", "episodic")
    store.remember("two 1", "semantic")
    assert store.find_conflicts() == []


@pytest.mark.parametrize(
    ("mine", "theirs", "number"),
    [(["x"], ["y"], 0), (["x"], ["y", "x"], 1), ([], ["y"], 1), ([], [], 1)],
)
def test_tags_tell_topics_apart(
    store: MemoryStore, mine: list[str], theirs: list[str], number: int
) -> None:
    """The same sentence about two projects is no duplicate; an untagged one may be."""
    store.remember("one 0", tags=mine)
    store.remember("two 1", tags=theirs)
    assert len(store.find_conflicts()) == number


@pytest.mark.parametrize(
    ("mine", "theirs", "reason"),
    [(1, -1, "polarity_diff"), (1, 1, "similarity"), (0, -1, "similarity")],
)
def test_opposite_polarity_contradicts(
    store: MemoryStore, mine: Any, theirs: Any, reason: str
) -> None:
    """A preference that turned must not be merged with its opposite as a double."""
    store.remember("one 0", polarity=mine)
    store.remember("two 1", polarity=theirs)
    assert [c.reason for c in store.find_conflicts()] == [reason]


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("we deploy at noon", False),
        ("we do not deploy at noon", True),
        ("we don't deploy", True),
        ("we DON\u2019T deploy", True),
        ("it isn't so that we never deploy", False),
        ("the knot is notable", False),
        ("we cannot deploy", True),
        ("ship without tests", True),
        ("正午にデプロイしない", False),
    ],
)
def test_negation_is_counted_in_english(text: str, negated: bool) -> None:
    """Parity is what tells 'never' from 'not never'; other languages are not understood."""
    assert is_negated(text) is negated


def test_one_negated_side_contradicts(store: MemoryStore) -> None:
    """The commonest contradiction of all."""
    store.remember("we deploy on friday 0")
    store.remember("we never deploy on friday 5")
    assert [c.reason for c in store.find_conflicts()] == ["negation_diff"]


def test_the_stores_function_decides_last(open_store: Opener) -> None:
    """A caller's rule adds to the others; it is not asked where they have spoken."""
    asked = []

    def differ(a: Memory, b: Memory) -> bool:
        asked.append((a.text, b.text))
        return "blue" in a.text + b.text

    store = open_store(":memory:", embedder=at_angle, contradiction_fn=differ)
    store.remember("the door is red 0")
    store.remember("the door is blue 5")
    store.remember("the door is not red 9")
    assert sorted(c.reason for c in store.find_conflicts()) == [
        "custom_fn",
        "negation_diff",
        "negation_diff",
    ]
    assert len(asked) == 1


def test_one_memory_against_all(store: MemoryStore) -> None:
    """Whoever asks about one memory wants it first, whichever is older."""
    store.remember("one 0")
    b = store.remember("two 10")
    store.remember("three 20")
    store.remember("four 90")
    found = store.find_conflicts(b.id)
    assert {c.a.text for c in found} == {"two 10"}
    assert {c.b.text for c in found} == {"one 0", "three 20"}
    assert store.find_conflicts("nowhere") == []


def test_one_memory_among_many_doubles(store: MemoryStore) -> None:
    """A search that stops at its first few hundred hits would leave the rest unresolved."""
    made = store.remember_many([f"text {n / 100}" for n in range(700)])
    assert len(store.find_conflicts(made[350].id)) == 699


def test_long_scans_agree_with_short_ones(open_store: Opener) -> None:
    """A block whose edge is off by one loses the pairs that lie across it."""
    store = open_store(":memory:")
    topics = ["billing cards", "garden roses", "train tickets", "violin lessons"]
    for n in range(120):
        store.remember(f"{topics[n % 4]} note {n // 8}", ["semantic", "episodic"][n % 2])  # type: ignore[arg-type]
    whole = {frozenset((c.a.id, c.b.id)): c.similarity for c in store.find_conflicts()}
    parts: dict[frozenset[str], float] = {}
    for memory in store.list_recent(None):
        for c in store.find_conflicts(memory.id):
            parts[frozenset((c.a.id, c.b.id))] = c.similarity
    assert whole == parts
    assert len(whole) > 100


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_blocks_of_any_size_find_the_same(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """What is found must not depend on how the work is cut."""
    for angle in (0, 5, 50, 54, 100, 105, 107):
        store.remember(f"text {angle}")
    wanted = told(store.find_conflicts())
    monkeypatch.setattr("houkai.search.pairs.BLOCK", block)
    assert sorted(told(store.find_conflicts())) == sorted(wanted)
    assert len(wanted) == 5


def test_hidden_memories_conflict_with_nothing(store: MemoryStore, clock: Any) -> None:
    """A resolved conflict that is told for ever teaches everyone to look away."""
    keep = store.remember("keep 0")
    old = store.remember("old 1")
    expired = store.remember("expired 2", ttl_seconds=60)
    store.remember("retired 3", valid_until=clock.now + 60)
    other = store.remember("other 4").id
    store.supersede(old.id, keep.id)
    clock.advance(120)
    for scan in (store.find_conflicts(), store.find_conflicts(keep.id)):
        assert {c.b.text for c in scan} | {c.a.text for c in scan} == {"keep 0", "other 4"}
    assert store.find_conflicts(old.id) == store.find_conflicts(expired.id) == []
    store.forget(other)
    assert store.find_conflicts() == []


def test_contradicting_links_are_told_until_resolved(store: MemoryStore) -> None:
    """What somebody has marked as a contradiction must not be forgotten for lack of likeness."""
    a, b = store.remember("one 0"), store.remember("two 90", "episodic")
    store.link(b.id, a.id, "contradicts")
    assert told(store.find_conflicts()) == [("contradiction", "link", "one 0", "two 90")]
    assert told(store.find_conflicts(b.id)) == [("contradiction", "link", "two 90", "one 0")]
    for resolve, again in (
        (lambda: store.unlink(b.id, a.id), lambda: store.undo_last()),
        (lambda: store.supersede(a.id, b.id), lambda: store.restore(a.id)),
        (lambda: store.forget(a.id), lambda: store.undo_last()),
    ):
        resolve()
        assert store.find_conflicts() == []
        again()
        assert len(store.find_conflicts()) == 1


def test_a_linked_pair_is_told_once_and_first(store: MemoryStore) -> None:
    """One conflict reported twice would be resolved twice."""
    a, b = store.remember("one 0"), store.remember("two 20")
    store.remember("three 21", polarity=0)
    store.link(a.id, b.id, "contradicts")
    store.link(b.id, a.id, "contradicts")
    found = store.find_conflicts()
    assert [c.reason for c in found] == ["link", "similarity", "similarity"]
    assert found[1].similarity > found[2].similarity
    assert len(store.find_conflicts(limit=1)) == 1


def test_deep_finds_contradictions_that_share_words(open_store: Opener) -> None:
    """Real contradictions are mostly less alike than doubles are."""
    store = open_store(":memory:", embedder=at_angle)
    store.remember("alice deploys the billing service herself 0")
    store.remember("alice never deploys the billing service herself 50")
    store.remember("alice deploys the billing service quickly 130")
    for n in range(15):
        store.remember(f"something else about gardening number{n} {200 + n}", "procedural")
    assert store.find_conflicts() != store.find_conflicts(deep=True)
    deep = [c for c in store.find_conflicts(deep=True) if c.a.type == "semantic"]
    assert [(c.reason, c.similarity) for c in deep] == [
        ("negation_diff", pytest.approx(0.643, abs=0.001))
    ]
    one = store.find_conflicts(deep[0].b.id, deep=True)
    assert [(c.a, c.b) for c in one] == [(deep[0].b, deep[0].a)]


def test_a_passage_does_not_equal_its_document(open_store: Opener) -> None:
    """A note that repeats one passage of a document must not be taken for the document."""
    store = open_store(":memory:", embedder=Windows())
    store.remember("0 90 180")
    store.remember("0")
    store.remember("0 90 181")
    found = store.find_conflicts()
    assert [(c.a.text, c.b.text) for c in found] == [("0 90 180", "0 90 181")]
    assert store.find_conflicts(found[0].a.id) == found


def test_a_memory_without_vectors_is_skipped(store: MemoryStore) -> None:
    """A file whose vectors are gone still has links, and no reason to fail."""
    a, b = store.remember("one 0"), store.remember("two 1")
    store.link(a.id, b.id, "contradicts")
    store.db.write(lambda connection: connection.execute("delete from embedding"))
    assert [(c.reason, c.similarity) for c in store.find_conflicts()] == [("link", 0.0)]
    assert [c.reason for c in store.find_conflicts(a.id, deep=True)] == ["link"]


def test_the_most_similar_are_kept(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of copies must not fill the memory of the machine, nor hide that it was cut."""
    monkeypatch.setattr("houkai.ops.conflicts.CONFLICTS", 3)
    for angle in range(0, 30, 3):
        store.remember(f"text {angle}")
    store.remember("text 0.5")
    with pytest.warns(UserWarning, match="3 most similar"):
        found = store.find_conflicts()
    assert len(found) == 3
    assert found[0].similarity == 1.0


def test_judging_is_pure() -> None:
    """The rules must hold for memories from anywhere, with no file in reach."""
    a, b = Memory("a", "x", tags=["t"]), Memory("b", "not x", tags=["t", "u"])
    assert may_conflict(a, b)
    assert judge(a, b, 0.5, 0.8) is None
    assert judge(a, b, 0.65, 0.8, floor=0.6) == Conflict(
        a, b, 0.65, "contradiction", "negation_diff"
    )
    assert judge(a, a, 0.65, 0.8, floor=0.6) is None
