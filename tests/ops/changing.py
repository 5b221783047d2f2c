"""What the tests of re-embedding share: two models, and a look at everything in the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw
import numpy as np

from houkai import MemoryStore
from houkai.storage import reembedding, vectors
from houkai.testing import HashingEmbedder
from tests.support import caught_up

OLD = HashingEmbedder()


class New(HashingEmbedder):
    """Another model: other dimensions, and a record of the texts it was given."""

    def __init__(self, dim: int = 256) -> None:
        super().__init__(dim)
        self.seen: list[str] = []
        self.before: Callable[[Sequence[str]], None] = lambda texts: None

    def passages(self, texts: Sequence[str]) -> list[Any]:
        """Return vectors, after whatever the test wants to happen first."""
        self.before(texts)
        self.seen.extend(texts)
        return super().passages(texts)


class Windowed(New):
    """A model whose windows are a text's words."""

    def passages(self, texts: Sequence[str]) -> list[Any]:
        """Return a vector for each word."""
        return [np.concatenate([self.query(w)[None] for w in t.split()]) for t in texts]


def fill(store: MemoryStore) -> MemoryStore:
    """Store ten memories and return the store."""
    store.remember_many([f"note {n} speaks of topic{n}" for n in range(10)])
    return store


def model_of(store: MemoryStore) -> str:
    """Return the name of the model of the file."""
    return str(store.stats()["model"])


def rows(store: MemoryStore, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return rows of the file."""
    with store.read() as connection:
        return connection.execute(sql, values).fetchall()


def check_whole(store: MemoryStore, embedder: Any) -> None:
    """Fail unless every text has exactly this model's vectors and every index agrees."""
    with caught_up(store).read() as connection:
        model = vectors.current_model(connection)
        assert model is not None
        assert (model.fingerprint, model.dim) == (embedder.fingerprint, embedder.dim)
        assert model.coming is None
        assert vectors.is_filled(connection)
        models = connection.execute("select group_concat(distinct model) from embedding").get
        assert models in (None, str(model.pk))
        for source in reembedding.SOURCES:
            assert reembedding.unembedded(connection, model.pk, source, source.first) == []
        _check_vectors(connection, embedder)
        # FTS5 checks a warm connection against the segments that it knew at its last query.
        for index in ("memory_fts", "past_fts"):
            connection.execute(f"select 1 from {index} where {index} match 'a'").fetchall()
        assert connection.pragma("integrity_check") == "ok"


def _check_vectors(connection: apsw.Connection, embedder: Any) -> None:
    for hash, text in connection.execute("select text_hash, text from memory").fetchall():
        stored = connection.execute("select vector from embedding where text_hash = ?", (hash,))
        vector = np.frombuffer(stored.get, "<f2").astype(np.float32)
        assert np.allclose(vector, embedder.passages([text])[0][0], atol=2e-3)
    indexed = connection.execute("select rowid from memory_vec").fetchall()
    expected = connection.execute(
        """select m.pk * 8192 + e.window from memory m
           join embedding e on e.text_hash = m.text_hash"""
    ).fetchall()
    assert sorted(indexed) == sorted(expected)
