"""The lexical channel where it may not look at every match: filtered, and in a large file."""

from __future__ import annotations

import random

import pytest

from houkai import MemoryStore
from houkai.search import lexical
from houkai.search.in_file import InFile
from houkai.search.lexical import Lexicon
from houkai.search.query import understand
from houkai.search.resident import Resident
from houkai.search.sketches import Sketches
from houkai.storage.eligible import Filter
from houkai.testing import HashingEmbedder
from tests.conftest import Opener

WORDS = [f"{a}{b}ndor" for a in "bdfgkmpr" for b in "aeiou"]
HELD: dict[str, Sketches] = {"in the file": InFile(), "in RAM": Resident()}


@pytest.fixture
def filled(open_store: Opener) -> MemoryStore:
    """A store of 600 short texts, whose later words are rarer, under tags of 3 % to 50 %."""
    chance = random.Random(3)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    store = open_store(":memory:", embedder=HashingEmbedder(8))
    store.remember_many(
        [
            {
                "text": f"{' '.join(chance.choices(WORDS, weights, k=8))} n{n}",
                "tags": [f"t{share}" for share in (2, 7, 30) if n % share == 0],
            }
            for n in range(600)
        ]
    )
    return store


def found(store: MemoryStore, held: Sketches, query: str, where: Filter) -> dict[int, float]:
    """Return the scores of up to 100 memories."""
    with store.read() as connection:
        return Lexicon(held.at(connection), understand(query), where).search(100)


@pytest.mark.parametrize("held", list(HELD))
@pytest.mark.parametrize("some", [0, 50, 4_000], ids=["none few", "some few", "all few"])
@pytest.mark.parametrize("tag", ["t2", "t7", "t30"])
def test_a_filter_takes_nothing_from_the_scores(
    tag: str, some: int, held: str, filled: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Among the eligible, the best must be the best, with the scores they have without a filter."""
    monkeypatch.setattr(lexical, "SOME", some)
    monkeypatch.setattr(lexical, "SHARE", 0.0)
    chance = random.Random(5)
    sketches = type(HELD[held])()
    for _ in range(12):
        query = " ".join(chance.sample(WORDS, 3))
        where = filled.where(tag=tag)
        with filled.read() as connection:
            everything = Lexicon(InFile().at(connection), understand(query), filled.where())
            allowed = InFile().at(connection)._listed(where, None).tolist()
            scores = everything.search(10_000)
        wanted = {pk: score for pk, score in scores.items() if pk in allowed}
        got = found(filled, sketches, query, where)
        assert len(got) == min(100, len(wanted))
        assert list(got.values()) == pytest.approx(sorted(wanted.values(), reverse=True)[:100])
        assert got.items() <= wanted.items()


def test_a_large_file_ranks_what_holds_a_rarer_word(
    filled: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores stay BM25's, the order too; only what holds nothing but common words is left out."""
    query = "bandor bendor mandor kundor"
    full = found(filled, InFile(), query, filled.where())
    monkeypatch.setattr(lexical, "GATE", 60)
    monkeypatch.setattr(lexical, "DEPTH", 20)
    with filled.read() as connection:
        words = Lexicon(InFile().at(connection), understand(query), filled.where())
        gated = words.search(20)
        texts = dict(connection.execute("select pk, text from memory").fetchall())  # type: ignore[arg-type]
    rarer = {"mandor", "kundor"}
    assert gated
    assert all(rarer & set(str(texts[pk]).split()) for pk in gated)
    assert list(gated) == [pk for pk in full if rarer & set(str(texts[pk]).split())][:20]
    for pk, score in gated.items():
        assert score == pytest.approx(full[pk], rel=1e-9)


def test_common_words_alone_are_ranked_in_a_large_file(
    filled: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question of nothing but common words has its answers all the same."""
    full = found(filled, InFile(), "bandor bendor", filled.where())
    monkeypatch.setattr(lexical, "GATE", 10)
    assert found(filled, InFile(), "bandor bendor", filled.where()) == pytest.approx(full)


@pytest.mark.parametrize("gate", [10, 10_000])
def test_held_terms_and_their_weights_do_not_depend_on_the_size(
    gate: int, filled: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a large file counts come from the vocabulary and rows by another way: the same ones."""
    with filled.read() as connection:
        view = InFile().at(connection)
        pks = view._listed(filled.where(), None)
        plain = Lexicon(view, understand("bandor dundor rundor nothing"), filled.where()).held(pks)
        monkeypatch.setattr(lexical, "GATE", gate)
        monkeypatch.setattr(lexical, "LONG", 20)
        other = Lexicon(view, understand("bandor dundor rundor nothing"), filled.where()).held(pks)
    assert (plain[0] == other[0]).all()
    assert plain[1].tolist() == other[1].tolist()
    assert plain[0].any(axis=0).tolist() == [True, True, True, False]
