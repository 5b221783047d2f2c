"""The dense channel against brute force, cold and warm, below and above the exact limit."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import apsw
import numpy as np
import pytest
from numpy.typing import NDArray

from houkai import MemoryStore
from houkai.search import dense, in_file, resident, sketches
from houkai.search.in_file import InFile
from houkai.search.resident import Resident
from tests.conftest import Opener
from tests.support import run

DIM = 128
TOPICS = 12


class Clusters:
    """Vectors around a few topics, as real texts' are; the same for the same text."""

    name = "clusters"
    dim = DIM
    fingerprint = "clusters-1"

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the vector of a text, which begins with its topic."""
        return _vector(text)

    def passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return a window for each paragraph of a text."""
        return [np.stack([self.query(part) for part in text.split("\n")]) for text in texts]


@cache
def _vector(text: str) -> NDArray[np.float32]:
    vector = 1.2 * _noise(text.partition(" ")[0]) + _noise(text)
    unit: NDArray[np.float32] = (vector / np.linalg.norm(vector)).astype(np.float32)
    return unit


def _noise(text: str) -> NDArray[np.float64]:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(DIM)


EMBEDDER = Clusters()


def fill(store: MemoryStore, count: int) -> None:
    """Store texts of several topics, tags and windows."""
    store.remember_many(
        [
            {
                "text": f"topic{n % TOPICS} text {n}" + (f"\ntopic{n % 5} more {n}" * (n % 7 == 0)),
                "tags": [f"tag{n % 3}", f"rare{n % 97}"],
            }
            for n in range(count)
        ],
        batch_size=2_000,
    )


def brute_force(store: MemoryStore, query: str, **given: Any) -> dict[str, float]:
    """Return the cosine of every eligible memory, best window first, in double precision."""
    wanted = EMBEDDER.query(query).astype(np.float64)
    return {
        memory.id: max(
            float(EMBEDDER.query(part).astype(np.float64) @ wanted)
            for part in memory.text.split("\n")
        )
        for memory in store.list_recent(None, **given)
    }


def overlap(store: MemoryStore, query: str, k: int, **given: Any) -> float:
    """Return the share of the true best k that recall finds; its cosines must be exact."""
    truth = brute_force(store, query, **given)
    best = sorted(truth.values(), reverse=True)[:k]
    hits = store.recall(query, k, mode="semantic", touch=False, explain=True, **given)
    for hit in hits:
        assert hit.explain["cosine"] == pytest.approx(truth[hit.memory.id], abs=2e-3)
    assert len(hits) == len(best)
    threshold = best[-1] - 2e-3
    return sum(truth[hit.memory.id] >= threshold for hit in hits) / len(best)


@pytest.mark.parametrize("size", [1, 10, 319, 700])
def test_small_files_are_searched_exactly(size: int, open_store: Opener) -> None:
    """Below the limit there is no reason to miss anything."""
    store = open_store(":memory:", embedder=EMBEDDER)
    fill(store, size)
    for n in range(10):
        for given in ({}, {"tag": "tag1"}, {"tag": "rare5"}):
            if store.list_recent(1, **given):
                assert overlap(store, f"topic{n % TOPICS} question {n}", 10, **given) == 1.0


KEPT = {"in the file": InFile, "whole": Resident, "in bytes": Resident, "as signs": Resident}
"""Where the vectors are: in the file, or in RAM as they are, in a byte each, as their signs."""


@pytest.mark.parametrize("size", [800, 2_500])
@pytest.mark.parametrize("kept", list(KEPT))
def test_large_files_miss_next_to_nothing(
    size: int, kept: str, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Signs choose what is scored; nearly all of the true best must be among it."""
    for module in (in_file, resident):
        monkeypatch.setattr(module, "EXACT", 100)
    monkeypatch.setattr(resident, "WHOLE", 10_000 if kept == "whole" else 100)
    monkeypatch.setattr(resident, "HOLD", 100 if kept == "as signs" else 10_000)
    store = open_store(":memory:", embedder=EMBEDDER)
    fill(store, size)
    held = KEPT[kept]()
    monkeypatch.setattr(type(store), "sketches", lambda _: held)
    found = [
        overlap(store, f"topic{n % TOPICS} question {n}", 10, **given)
        for n in range(12)
        for given in ({}, {"tag": "tag1"}, {"tag": "rare5"})
    ]
    assert np.mean(found) >= 0.97
    assert min(found) >= 0.7
    if isinstance(held, Resident):  # all vectors of a very large file would be read, each time
        assert (held._shelf.count == 0) == (kept == "as signs")


def test_few_dimensions_are_scored_exactly(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three signs tell nothing apart, so every vector is looked at."""
    for module in (in_file, resident):
        monkeypatch.setattr(module, "EXACT", 20)
    monkeypatch.setattr(sketches, "FLOOR", 10)
    rows = {f"text {n}": [float(np.cos(n)), float(np.sin(n)), 0.1 * n] for n in range(200)}
    store = open_store(":memory:", embedder=lambda given: [rows[text] for text in given])
    store.remember_many(list(rows))
    for _ in range(2):
        for n in range(0, 200, 17):
            query = np.array(rows[f"text {n}"]) / np.linalg.norm(rows[f"text {n}"])
            truth = {t: float(np.array(v) @ query / np.linalg.norm(v)) for t, v in rows.items()}
            hits = store.recall(f"text {n}", 5, mode="semantic", touch=False)
            best = sorted(truth.values(), reverse=True)[:5]
            assert [truth[hit.memory.text] for hit in hits] == pytest.approx(best, abs=2e-3)


def test_a_memory_is_as_near_as_its_best_window(open_store: Opener) -> None:
    """A long text answers by one paragraph, and comes once."""
    store = open_store(":memory:", embedder=EMBEDDER)
    long = store.remember("topic1 one\ntopic2 two\ntopic3 three")
    short = store.remember("topic2 only")
    hits = store.recall("topic2 two", mode="semantic", explain=True)
    assert [hit.memory.id for hit in hits] == [long.id, short.id]
    assert hits[0].explain["cosine"] == pytest.approx(1.0, abs=2e-3)


Change = Any
CHANGES: dict[str, tuple[Change, str | None]] = {
    "remember": (lambda s, id: s.remember("topic9 fresh"), "topic9 fresh"),
    "edit": (lambda s, id: s.edit(id, text="topic9 fresh"), "topic9 fresh"),
    "forget": (lambda s, id: s.forget(id), None),
    "undo": (lambda s, id: (s.forget(id), s.undo_last()), "topic0 first"),
    "many": (
        lambda s, id: s.remember_many([f"topic9 fresh {n}" for n in range(150)]),
        "topic9 fresh 3",
    ),
    "nuke": (lambda s, id: s.nuke(), None),
    "link only": (lambda s, id: s.link(id, s.list_recent(1)[0].id), "topic0 first"),
}


@pytest.mark.parametrize("name", list(CHANGES))
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "sketched"])
def test_a_warm_store_sees_what_another_wrote(
    name: str, exact: bool, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that runs for days must know at once what the others learnt and forgot."""
    if not exact:
        for module in (in_file, resident):
            monkeypatch.setattr(module, "EXACT", 50)
    warm, other = (open_store(embedder=EMBEDDER) for _ in range(2))
    id = warm.remember("topic0 first").id
    fill(warm, 400)
    for _ in range(3):
        assert warm.recall("topic0 first", 1, mode="semantic")[0].memory.id == id
    change, text = CHANGES[name]
    change(other, id)
    query = text or "topic0 first"
    found = [hit.memory.text for hit in warm.recall(query, 3, mode="semantic")]
    if text is None:
        assert "topic0 first" not in found
    else:
        assert found[0] == text
    assert len(found) == min(3, warm.count())


def test_a_warm_store_sees_what_another_process_wrote(open_store: Opener, path: Any) -> None:
    """The same, across processes and past the patch that a small change allows."""
    store = open_store()
    fill(store, 200)
    store.recall("warm up")
    store.recall("warm up")
    code = """
import sys
from houkai import MemoryStore
from houkai.testing import HashingEmbedder
with MemoryStore(sys.argv[1], embedder=HashingEmbedder(64)) as store:
    store.remember_many([f"zebra number {n}" for n in range(2_500)], batch_size=2_500)
    store.remember("quetzal feathers")
    store.forget(store.list_recent(None)[-1].id)
"""
    run(code, str(path))
    assert store.recall("quetzal feathers", 1, mode="semantic")[0].memory.text == "quetzal feathers"
    assert store.recall("zebra number 77", 1)[0].memory.text == "zebra number 77"
    assert len({hit.memory.id for hit in store.recall("zebra", 500)}) == 500


def test_a_snapshot_older_than_the_copy_is_served_its_own(open_store: Opener) -> None:
    """A recall that began before a write must not see half of it in the copy."""
    store = open_store(embedder=EMBEDDER)
    fill(store, 60)
    held = Resident()
    vector = EMBEDDER.query("topic1 question")

    def near(connection: apsw.Connection) -> set[int]:
        return set(held.at(connection).near(vector, store.where(), 1_000).pk.tolist())

    with store.read() as old:
        before = near(old)
        store.remember("topic1 later")
        with store.read() as new:
            later = near(new)
        again = near(old)
    assert again == before
    assert len(later) == len(before) + 1


def test_long_texts_are_found_alike_cold_and_warm(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of hundreds of windows near the question hid all others from a process that stays,
    and the likeness of a memory to its collection was that of another window.
    """
    for module in (in_file, resident):
        monkeypatch.setattr(module, "EXACT", 300)
    store = open_store(embedder=EMBEDDER)
    texts = ["\n".join(f"topic{n % 5} {n} {part}" for part in range(n % 9 + 1)) for n in range(290)]
    store.remember_many([*texts, "\n".join(f"topic1 long {part}" for part in range(1_300))])
    mean = EMBEDDER.query("topic2 mean")
    where = store.where()
    for query in ("topic1 long", "topic3 17 2"):
        probe = sketches.Probe(EMBEDDER.query(query), mean)
        with store.read() as connection:
            cold, warm = (
                dense.search(kind().at(connection), probe, where) for kind in (InFile, Resident)
            )
        assert warm.pk.tolist() == cold.pk.tolist()
        assert np.allclose(warm.cosine, cold.cosine, atol=1e-6)
        assert np.allclose(warm.common, cold.common, atol=1e-6)


@pytest.mark.parametrize("kind", [InFile, Resident])
def test_one_long_text_does_not_hide_the_others(
    kind: type[InFile | Resident], open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its windows alone would fill the circle around a question that is about it."""
    for module in (in_file, resident):
        monkeypatch.setattr(module, "EXACT", 100)
    store = open_store(embedder=EMBEDDER)
    store.remember_many(["\n".join(f"topic1 long {part}" for part in range(3_000))])
    fill(store, 700)
    while store._lags():
        store.db.settle()
    probe = sketches.Probe(EMBEDDER.query("topic1 long"))
    with store.read() as connection:
        found = dense.search(kind().at(connection), probe, store.where())
    assert len(found.pk) > 150
