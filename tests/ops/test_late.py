"""Token vectors in a file: they come and go with their texts, and recall uses those it should."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from houkai import MemoryStore
from houkai.embed import default
from houkai.ops.doctor import examine, repair
from houkai.ops.salvage import salvage
from houkai.search.blend import MEASURED
from houkai.search.late import TOP
from tests.agreement import disagreements
from tests.conftest import Opener
from tests.ops.changing import OLD, rows
from tests.support import Clock

TEA = "Anna drinks green tea in the morning"
COFFEE = "Ben roasts his own coffee beans"
BOAT = "The ferry to the island leaves at noon"


class WithoutTokens:
    """The same model seen through an embedder that gives no tokens."""

    name, dim, fingerprint = default().name, default().dim, default().fingerprint
    passages, query = default().passages, default().query


@pytest.fixture
def store(path: Path, clock: Clock) -> Iterator[MemoryStore]:
    """Return a store with the bundled model and three memories, held against itself at the end."""
    with MemoryStore(path, embedder=default(), clock=clock) as opened:
        opened.remember_many([TEA, COFFEE, BOAT])
        yield opened
    with MemoryStore(path, embedder=default(), clock=clock) as again:
        assert not disagreements(again)


def stored(store: MemoryStore) -> dict[bytes, bytes]:
    """Return the tokens in a file by the hash of their text."""
    return dict(
        rows(
            store,
            "select e.text_hash, t.vectors from token t join embedding e on e.pk = t.embedding",
        )
    )


def told(store: MemoryStore, query: str, **options: Any) -> dict[str, float]:
    """Return what the second stage gave each memory."""
    hits = store.recall(query, explain=True, touch=False, **options)
    return {hit.memory.text: hit.explain["late"] for hit in hits}


def test_a_write_stores_what_the_model_says_of_its_words(store: MemoryStore) -> None:
    """Bytes that are not the text's would make recall worse than no second stage."""
    (wanted,) = default().tokens([TEA])
    (kept,) = rows(
        store,
        """select t.count, t.vectors from token t join embedding e on e.pk = t.embedding
           join memory m on m.text_hash = e.text_hash where m.text = ?""",
        TEA,
    )
    assert kept[0] == len(wanted.tokens) == 5
    found = np.frombuffer(kept[1], np.int8).reshape(5, 64)
    assert np.abs(found.astype(int) - wanted.tokens).max() <= 1


def test_words_that_meet_are_worth_more(store: MemoryStore) -> None:
    """The addend is told, bounded, and part of the score."""
    late = told(store, "who likes a cup of tea?")
    assert max(late, key=late.__getitem__) == TEA
    assert 0 <= min(late.values()) < late[TEA] <= MEASURED.late * 1.02
    (best, *_) = store.recall("who likes a cup of tea?", explain=True)
    with MemoryStore(store.db.path, embedder=WithoutTokens(), clock=store.settings.clock) as plain:
        (first, *_) = plain.recall("who likes a cup of tea?")
    assert best.score == pytest.approx(first.score + late[TEA], abs=1e-3)


def test_only_the_best_of_the_first_stage_come_in(store: MemoryStore) -> None:
    """Reading the words of every candidate would cost more than they are worth."""
    store.remember_many([f"cup number {n} holds {n % 7} spoons of tea" for n in range(60)])
    hits = store.recall("a cup of tea", k=63, explain=True)
    first = [hit.score - hit.explain["late"] for hit in hits]
    looked_at = [hit.explain["late"] > 0 for hit in hits]
    assert looked_at == [True] * TOP + [False] * 13
    assert min(first[:TOP]) > max(first[TOP:]) - 2e-4


@pytest.mark.parametrize("options", [{"mode": "semantic"}, {"fusion": "rrf"},
                                     {"fusion": "weighted"}], ids=str)  # fmt: skip
def test_the_seeds_formulas_stay_the_seeds(store: MemoryStore, options: dict[str, Any]) -> None:
    """Their scores are promised to the letter."""
    (hit, *_) = store.recall("tea", explain=True, **options)
    assert "late" not in hit.explain


def test_an_embedder_without_tokens_has_no_second_stage(path: Path, clock: Clock) -> None:
    """A user's own model must work as before, on its own file and on one with tokens."""
    with MemoryStore(path, embedder=WithoutTokens(), clock=clock) as plain:
        plain.remember_many([TEA, COFFEE])
        assert stored(plain) == {}
        assert set(told(plain, "tea").values()) == {0.0}
        with MemoryStore(path, embedder=default(), clock=clock) as full:
            assert set(told(full, "tea").values()) == {0.0}
            full.remember(BOAT)
            assert len(stored(full)) == 1
        assert set(told(plain, "tea").values()) == {0.0}


def test_a_memory_without_tokens_gets_the_mean_of_the_others(path: Path, clock: Clock) -> None:
    """Nothing would put it behind whatever was stored by another embedder."""
    with MemoryStore(path, embedder=WithoutTokens(), clock=clock) as plain:
        plain.remember(BOAT)
    with MemoryStore(path, embedder=default(), clock=clock) as store:
        store.remember_many([TEA, COFFEE])
        late = told(store, "who likes a cup of tea?")
        assert late[BOAT] == pytest.approx((late[TEA] + late[COFFEE]) / 2, abs=2e-4)


def test_a_text_that_tells_nothing_meets_nothing(store: MemoryStore) -> None:
    """It has no words to meet, unlike one whose tokens are unknown."""
    store.remember("What is it?")
    late = told(store, "who likes a cup of tea? what is it?")
    assert late["What is it?"] == 0 < late[BOAT]


def test_what_the_model_cannot_read_has_no_second_stage(store: MemoryStore) -> None:
    """Its tokens of a foreign script are noise, as its vectors are."""
    assert set(told(store, "誰が緑茶を飲みますか").values()) == {0.0}
    half = told(store, "green tea 緑茶を飲む")
    assert 0 < half[TEA] < told(store, "green tea")[TEA]


def test_a_question_of_stop_words_meets_nothing(store: MemoryStore) -> None:
    """A mean over no tokens is no number."""
    assert set(told(store, "who is it").values()) == {0.0}


def test_undo_needs_no_model(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back has its own tokens again, not those of what replaced it."""
    before = told(store, "a cup of tea")
    id = store.recall("a cup of tea", touch=False)[0].memory.id
    store.edit(id, text="Anna swims in the lake")
    edited = told(store, "a cup of tea")
    assert edited["Anna swims in the lake"] < before[TEA]
    kept = stored(store)
    assert len(kept) == 4
    monkeypatch.setattr(type(store.embedder), "tokens", None)
    store.undo_last()
    assert told(store, "a cup of tea") == before
    store.redo()
    assert told(store, "a cup of tea") == edited
    store.forget(id)
    assert TEA not in told(store, "a cup of tea")
    store.undo_last()
    assert told(store, "a cup of tea") == edited
    assert stored(store) == kept


def test_as_of_uses_the_words_of_then(store: MemoryStore, clock: Clock) -> None:
    """The new text's tokens would rank a text that nobody had said yet."""
    before = told(store, "a cup of tea")
    id = store.recall("a cup of tea", touch=False)[0].memory.id
    then = store.now()
    clock.advance(60)
    store.edit(id, text="Anna swims in the lake")
    assert told(store, "a cup of tea", as_of=then) == before


NOTHING: list[dict[str, Any]] = [
    {"source": "nowhere"}, {"collection": "empty"}, {"min_cosine": 1}, {"as_of": 1.0},
    {"as_of": 1.0, "collection": "*"}, {"min_relevance": 1, "source": "nowhere"},
]  # fmt: skip


@pytest.mark.parametrize("options", NOTHING)
def test_no_candidate_is_no_answer(options: dict[str, Any], store: MemoryStore) -> None:
    """A filter that lets nothing through would end in an error of SQLite's."""
    assert store.recall("a cup of tea", **options) == []
    assert not store.recall_pack("a cup of tea", **options).items


def test_candidates_without_any_vector_rank_by_words() -> None:
    """A text that is embedded later would take the whole recall down until then."""
    with MemoryStore(":memory:", embedder=default()) as store:
        store.remember_many([{"text": BOAT, "source": "harbour"}, TEA])
        lost = "text_hash in (select text_hash from memory where source = 'harbour')"
        store.db.write(lambda connection: connection.execute(f"delete from embedding where {lost}"))
        assert store.recall("the ferry", source="harbour")[0].memory.text == BOAT


def test_what_is_purged_leaves_no_token(store: MemoryStore) -> None:
    """Token vectors tell what a text said."""
    id = store.recall("a cup of tea", touch=False)[0].memory.id
    kept = stored(store)
    store.trash(id)
    assert stored(store) == kept
    store.trash_purge(id)
    assert len(stored(store)) == 2
    assert not rows(store, "select 1 from token where embedding not in (select pk from embedding)")


def test_pruning_drops_the_tokens_of_what_it_forgets(store: MemoryStore, clock: Clock) -> None:
    """They would stay for ever, one set for each text that was ever edited."""
    store.edit(store.recall("tea", touch=False)[0].memory.id, text="Anna swims in the lake")
    assert len(stored(store)) == 4
    clock.advance(60)
    store.prune_journal(before=store.now())
    assert len(stored(store)) == 3


def test_reembedding_gives_and_takes_tokens(store: MemoryStore) -> None:
    """A file that changed its model would compare words of two spaces."""
    kept = stored(store)
    store.reembed(OLD)
    assert stored(store) == {}
    assert set(told(store, "tea").values()) == {0.0}
    store.reembed(default())
    assert stored(store).keys() == kept.keys()
    assert told(store, "a cup of tea")[TEA] > 0


def test_salvage_brings_tokens_along(store: MemoryStore, path: Path, open_store: Opener) -> None:
    """A rescued file would rank worse than the damaged one did."""
    kept, late = stored(store), told(store, "a cup of tea")
    store.close()
    target = path.with_name("salvaged.db")
    salvage(path, target)
    with open_store(target, embedder=default()) as saved:
        assert stored(saved) == kept
        assert told(saved, "a cup of tea") == late
        assert not disagreements(saved)


@pytest.mark.parametrize("damage", ["zeroblob(length(vectors))", "substr(vectors, 2)"])
def test_doctor_finds_tokens_that_are_none(
    store: MemoryStore, path: Path, open_store: Opener, damage: str
) -> None:
    """Damaged tokens would rank by noise; the text is embedded anew instead."""
    kept = stored(store)
    store.db.write(
        lambda connection: connection.execute(f"update token set vectors = {damage}").get
    )
    store.close()
    repair(path)
    with open_store(path, embedder=default()) as again:
        assert stored(again) == {}
        again.reembed()
        assert stored(again).keys() == kept.keys()


def test_a_deep_look_finds_a_changed_digit(store: MemoryStore, path: Path) -> None:
    """A bit that flips in one token leaves it of unit length, or nearly."""
    store.close()
    assert all(check.ok for check in examine(path, deep=True))
    with MemoryStore(path, embedder=default()) as again:
        ((pk, held),) = rows(again, "select embedding, vectors from token limit 1")
        changed = bytes([*held[:9], held[9] ^ 4, *held[10:]])
        again.db.write(
            lambda connection: (
                connection.execute(
                    "update token set vectors = ? where embedding = ?", (changed, pk)
                ).get
            )
        )
    assert {check.name for check in examine(path, deep=True) if not check.ok} == {"meaning"}
