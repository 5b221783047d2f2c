"""Recall as a caller sees it: how many, which, in what shape, and what a bad call gets."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from houkai import ExpandSpec, HybridWeights, InputError, MemoryStore
from houkai.search.query import understand
from tests.conftest import Opener
from tests.support import Clock, contents, dump_of, texts

MODES: list[dict[str, Any]] = [
    {},
    {"mode": "semantic"},
    {"fusion": "weighted"},
    {"fusion": "rrf"},
    {"weights": HybridWeights(cosine=0, lexical=1, recency=0, importance=0)},
    {"graph": 0.5},
    {"diversity": 0.5},
    {"dedup_threshold": 0.95},
]
every_mode = pytest.mark.parametrize("mode", MODES, ids=str)


def recalled(store: MemoryStore, query: str, k: int = 5, **options: Any) -> list[str]:
    """Return the texts of a recall that touches nothing."""
    return texts(hit.memory for hit in store.recall(query, k, touch=False, **options))


@pytest.fixture
def animals(store: MemoryStore) -> MemoryStore:
    """Return a store of sentences that share words."""
    store.remember_many([
        "the zebra runs over the plain", "a lion sleeps under a tree", "zebra and lion both drink",
        "elephants remember everything", "the tree is an acacia", "nothing of this kind at all",
    ])  # fmt: skip
    return store


@every_mode
def test_the_best_comes_first_and_scores_fall(mode: dict[str, Any], animals: MemoryStore) -> None:
    """The first hit is what an agent reads, if it reads one."""
    hits = animals.recall("the zebra runs over the plain", k=4, **mode)
    assert hits[0].memory.text == "the zebra runs over the plain"
    assert len(hits) == 4
    if "diversity" not in mode:
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@every_mode
@pytest.mark.parametrize(("k", "count"), [(0, 0), (-1, 0), (-(10**9), 0), (1, 1), (6, 6),
                                          (7, 6), (1_000_000, 6)])  # fmt: skip
def test_k_is_an_upper_bound(
    k: int, count: int, mode: dict[str, Any], animals: MemoryStore
) -> None:
    """However many are asked for, there are only so many; and none is a fair wish."""
    assert len(animals.recall("zebra lion tree", k, **mode)) == count


@every_mode
def test_an_empty_store_answers_nothing(mode: dict[str, Any], store: MemoryStore) -> None:
    """The first recall of a new agent must not be an error."""
    assert store.recall("anything", **mode) == []
    store.forget(store.remember("anything").id)
    assert store.recall("anything", **mode) == []


def test_shapes(animals: MemoryStore) -> None:
    """Callers unpack pairs, or triples when they ask for reasons."""
    memory, score = animals.recall("zebra")[0]
    assert "zebra" in memory.text
    assert isinstance(score, float)
    memory, score, told = animals.recall("zebra", explain=True)[0]
    assert told["mode"] == "hybrid"
    assert told["fusion"] == "blend"
    assert told["score"] == pytest.approx(score, abs=1e-4)
    semantic = animals.recall("zebra", mode="semantic", explain=True)[0].explain
    assert set(semantic) == {"mode", "cosine", "polarity", "score"}
    weighted = animals.recall("zebra", fusion="weighted", explain=True)[0].explain
    assert set(weighted) == {"mode", "fusion", "cosine", "lexical", "recency", "importance",
                             "polarity", "weights", "score"}  # fmt: skip
    rrf = animals.recall("zebra", fusion="rrf", explain=True)[0].explain
    assert set(rrf) == {"mode", "fusion", "rrf_k", "polarity", "signals", "score"}
    assert set(rrf["signals"]) == {"cosine", "lexical", "recency", "importance"}
    assert set(rrf["signals"]["cosine"]) == {"rank", "contribution"}


def test_weights_alone_mean_the_seeds_sum(animals: MemoryStore) -> None:
    """Code written for the seed passes weights and expects its formula."""
    told = animals.recall("zebra", weights=HybridWeights(), explain=True)[0].explain
    assert told["fusion"] == "weighted"
    named = animals.recall("zebra", fusion="weighted", touch=False)
    assert animals.recall("zebra", weights=HybridWeights(), touch=False) == named


def test_touch_counts_what_was_returned(animals: MemoryStore, clock: Clock) -> None:
    """Access feeds decay; browsing with touch=False must not."""
    clock.advance(50)
    found = [hit.memory.id for hit in animals.recall("zebra", k=2)]
    animals.recall("zebra", k=2)
    animals.recall("zebra", k=6, touch=False)
    counts = {memory.id: memory.access_count for memory in animals.list_recent(None)}
    assert {id: count for id, count in counts.items() if count} == dict.fromkeys(found, 2)
    memory = animals.get(found[0])
    assert memory is not None
    assert memory.last_accessed == clock.now


def test_touches_reach_the_file(open_store: Opener) -> None:
    """Counts are written lazily, but they are written, and two processes' add up."""
    with open_store() as store:
        id = store.remember("hello").id
        with open_store() as other:
            for _ in range(3):
                store.recall("hello")
                other.recall("hello")
    with open_store() as again:
        found = again.get(id)
        assert found is not None
        assert found.access_count == 6
        assert [entry.op for entry in again.journal()] == ["remember"]


@pytest.mark.parametrize("value", [0, 0.3, 0.999])
def test_min_cosine_may_leave_nothing(value: float, animals: MemoryStore) -> None:
    """An honest answer to a question about nothing known is none."""
    hits = animals.recall("zebra runs", k=10, min_cosine=value, explain=True, fusion="weighted")
    assert all(hit.explain["cosine"] >= value - 1e-4 for hit in hits)
    assert animals.recall("qqq www", min_cosine=0.999) == []


BAD: list[tuple[dict[str, Any], str]] = [
    ({"weights": "x"}, "weights"),
    ({"weights": {"cosine": 1}}, "weights"),
    ({"weights": HybridWeights(0, 0, 0, 0)}, "weights"),
    ({"weights": HybridWeights(cosine=math.nan)}, "weights.cosine"),
    ({"weights": HybridWeights(cosine="1")}, "weights.cosine"),  # type: ignore[arg-type]
    ({"weights": HybridWeights(lexical=10**400)}, "weights.lexical"),
    ({"weights": HybridWeights(importance=1.7e308)}, "weights.importance"),
    ({"weights": HybridWeights(decay_rate=-0.1)}, "weights.decay_rate"),
    ({"weights": HybridWeights(graph=-1)}, "weights.graph"),
    ({"weights": HybridWeights(recency_basis="never")}, "recency_basis"),  # type: ignore[arg-type]
    ({"expand": "refines"}, "expand"),
    ({"expand": 1}, "expand"),
    ({"expand": ExpandSpec(depth=99)}, "depth"),
    ({"expand": ExpandSpec(rels=("bogus",))}, "rels"),  # type: ignore[arg-type]
    ({"expand": ExpandSpec(score=math.nan)}, "score"),
    ({"reranker": lambda _query, _memories: [1.0]}, "reranker"),
    ({"reranker": lambda _query, memories: [math.nan] * len(memories)}, "reranker"),
    ({"reranker": lambda _query, memories: ["x"] * len(memories)}, "reranker"),
    ({"reranker": lambda _query, memories: None}, "reranker"),
    ({"reranker": "x"}, "reranker"),
    ({"no_such_option": 1}, "no_such_option"),
]


@pytest.mark.parametrize(("options", "named"), BAD)
def test_bad_options_are_refused_by_name(
    options: dict[str, Any], named: str, animals: MemoryStore
) -> None:
    """A knob that is mistyped and ignored would never be missed."""
    before = dump_of(animals)
    with pytest.raises(InputError, match=named):
        animals.recall("zebra", **options)
    assert dump_of(animals) == before


def test_a_store_opened_with_bad_weights_says_so(open_store: Opener) -> None:
    """Better when it is opened than at some later recall."""
    for weights in ("x", HybridWeights(0, 0, 0, 0), HybridWeights(lexical=math.inf)):
        with pytest.raises(InputError, match="hybrid_weights"):
            open_store(":memory:", hybrid_weights=weights)


def test_a_reranker_has_the_last_word(animals: MemoryStore) -> None:
    """It sees the question and the candidates, and its order is the answer's."""
    seen: list[Any] = []

    def shortest(query: str, memories: list[Any]) -> list[float]:
        seen.append((query, len(memories)))
        return [-len(memory.text) for memory in memories]

    hits = animals.recall("zebra lion", k=2, reranker=shortest, explain=True)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert seen == [("zebra lion", 6)]
    assert set(hits[0].explain["rerank"]) == {
        "first_stage_score", "first_stage_rank", "score", "rank",
    }  # fmt: skip


def test_a_reranker_may_use_the_store(animals: MemoryStore) -> None:
    """A callback that reads or writes must neither wait for itself nor see half a write."""

    def writing(query: str, memories: list[Any]) -> list[float]:
        animals.remember(f"asked about {query}")
        return [1.0] * len(memories)

    assert animals.recall("zebra", reranker=writing)
    assert animals.count() == 7


HOSTILE = [
    "AND", "OR NOT", "zebra AND", "NEAR(zebra lion, 2)", '"', '""', '"zebra', "zebra*", "*",
    "^zebra", "text:zebra", "{text}:zebra", "text : zebra", "-zebra", "+zebra", "(zebra",
    "zebra)", "()", "zebra OR lion", "a" * 5000, "zebra\0lion", "'; drop table tag; --", "%", "_",
    "\\", "\u202e", "👨\u200d👩\u200d👧", "e\u0301", "שלום עולם", "日本語", "日", "ﬁﬂ", "½ ² Ⅷ",
    "..", "\u200b", "--", "@#$%^&*()", "scope1", "scope : scope1", "memory_fts", "rowid", "rank",
    "the of and", "?", "zebra " * 2000,
]  # fmt: skip


@every_mode
def test_no_query_is_a_query_language(mode: dict[str, Any], animals: MemoryStore) -> None:
    """Agents paste code, stack traces and other people's syntax."""
    for query in HOSTILE:
        hits = animals.recall(query, k=10, touch=False, **mode)
        assert len(hits) <= 6
        assert all(math.isfinite(hit.score) for hit in hits), query
    assert recalled(animals, "text:zebra", **mode)[0].find("zebra") >= 0


def random_query(chance: random.Random) -> str:
    """Return letters from anywhere in Unicode, mixed with what FTS5 could stumble over."""
    blocks = [(32, 127), (0, 256), (0x300, 0x370), (0x590, 0x700), (0x3040, 0x3100),
              (0x4E00, 0x9FFF), (0x1F300, 0x1FAFF), (0, 0x110000)]  # fmt: skip
    pieces = ['"', "'", "*", "NEAR(", ")", " AND ", ":", "-", "^", "zebra", "text:", "\0"]
    signs: list[str] = []
    for _ in range(chance.randint(1, 24)):
        low, high = chance.choice(blocks)
        code = chance.randrange(low, high)
        sign = "x" if 0xD800 <= code < 0xE000 else chr(code)
        signs.append(chance.choice(pieces) if chance.random() < 0.2 else sign)
    return "".join(signs)


def test_ten_thousand_random_queries_never_fail(file_store: MemoryStore) -> None:
    """No text may break the words' side of recall, whatever letters it is made of."""
    chance = random.Random(7)
    file_store.remember_many([random_query(chance).strip() or "x" for _ in range(50)])
    file_store.remember("zebra crossing")
    found = 0
    with file_store.read() as connection:
        for scope in (None, 1) * 5_000:
            match = understand(random_query(chance)).match(scope)
            sql = "select count(*) from memory_fts where memory_fts match ?"
            found += connection.execute(sql, (match,)).get if match else 0
    assert found > 1_000
    for query in (random_query(chance) for _ in range(200)):
        if query.strip():
            file_store.recall(query, touch=False)


def test_recall_changes_nothing_it_returns(animals: MemoryStore) -> None:
    """Hits are what is stored, field by field."""
    held = contents(animals)
    for hit in animals.recall("zebra lion tree", k=10, touch=False):
        fields = hit.memory.to_dict()
        assert {name: fields[name] for name in held[hit.memory.id]} == held[hit.memory.id]


def test_equal_memories_come_newest_first(store: MemoryStore, clock: Clock) -> None:
    """Of two that say the same, the later one is the one to believe."""
    ids = []
    for _ in range(4):
        ids.append(store.remember("the same words").id)
        clock.advance(10)
    assert [hit.memory.id for hit in store.recall("the same words")] == ids[::-1]
