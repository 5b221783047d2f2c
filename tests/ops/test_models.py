"""Which embedders fit a file: any callable, any width, but never two models in one space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from houkai import InputError, MemoryStore, ModelMismatch
from houkai.testing import HashingEmbedder
from tests.agreement import disagreements
from tests.conftest import Opener
from tests.support import contents, texts


class Letters:
    """A plain callable whose vectors count letters, in as many slots as it is given."""

    def __init__(self, dim: int, kind: Any = list) -> None:
        self.width = dim
        self.kind = kind
        self.calls = 0

    def __call__(self, given: list[str]) -> Any:
        self.calls += 1
        assert isinstance(given, list)
        rows = [[0.1 + sum(ord(c) % self.width == n for c in text) for n in range(self.width)]
                for text in given]  # fmt: skip
        return np.array(rows, np.float64) if self.kind is np else [self.kind(row) for row in rows]


@pytest.mark.parametrize("kind", [list, tuple, np, np.array], ids=["list", "tuple", "2d", "rows"])
@pytest.mark.parametrize("dim", [3, 8, 100])
def test_any_callable_of_any_width_will_do(dim: int, kind: Any, open_store: Opener) -> None:
    """People bring the model they have; its width need not be a multiple of anything."""
    store = open_store(embedder=Letters(dim, kind))
    made = store.remember_many(["aaaa", "bbbb", "cccc", "abab"])
    for mode in ("semantic", "hybrid"):
        assert store.recall("aaaa", mode=mode)[0].memory.id == made[0].id
        assert len(store.recall("zz", mode=mode)) == 4
    store.edit(made[1].id, text="dddd")
    store.forget(made[0].id)
    store.undo_last()
    assert store.recall("aaaa", k=1)[0].memory.id == made[0].id
    assert disagreements(store) == []


def test_a_callable_is_known_again_by_its_name(open_store: Opener) -> None:
    """Opening a file anew with the same function must not look like another model."""
    with open_store(embedder=Letters(8)) as store:
        store.remember("aaaa")
    with open_store(embedder=Letters(8)) as again:
        assert again.recall("aaaa", mode="semantic")
        again.remember("bbbb")


def test_a_callable_of_another_width_is_another_model(open_store: Opener) -> None:
    """Only its first vector tells; by then it must still be refused, not mixed in."""
    with open_store(embedder=Letters(8)) as store:
        store.remember("aaaa")
    other = open_store(embedder=Letters(16))
    with pytest.raises(ModelMismatch):
        other.recall("aaaa", mode="semantic")
    with pytest.raises(ModelMismatch):
        open_store(embedder=Letters(16)).remember("bbbb")
    assert texts(other.list_recent()) == ["aaaa"]


class Bad:
    """A callable that returns something wrong after a number of good answers."""

    def __init__(self, answer: Any, good: int = 0) -> None:
        self.answer, self.good = answer, good

    def __call__(self, given: Sequence[str]) -> Any:
        if self.good:
            self.good -= 1
            return [[1.0, 2.0, 3.0] for _ in given]
        return self.answer


WRONG: list[Any] = [
    None, [], [[1.0, 2.0, 3.0]] * 3, [[]], [[0.0, 0.0, 0.0]], [[1.0, float("nan"), 0.0]],
    [[1.0, float("inf"), 0.0]], [["a", "b", "c"]], [[[1.0]]], 5, [[1.0, 2.0]], [None],
]  # fmt: skip


@pytest.mark.parametrize("answer", WRONG, ids=range(len(WRONG)))
def test_what_is_no_vector_is_refused(answer: Any, open_store: Opener) -> None:
    """A NaN that is stored once poisons every recall from then on."""
    store = open_store(embedder=Bad(answer, good=1))
    store.remember("first")
    with pytest.raises(InputError, match="embedder"):
        store.remember("second")
    assert texts(store.list_recent()) == ["first"]
    assert disagreements(store) == []


def test_an_embedder_that_fails_leaves_nothing(open_store: Opener) -> None:
    """A model server that is down must not cost half a batch."""

    def failing(given: list[str]) -> Any:
        raise ConnectionError("no route to the model")

    store = open_store(embedder=failing)
    with pytest.raises(ConnectionError):
        store.remember_many(["a", "b"])
    assert store.count() == 0


def test_texts_that_are_known_are_not_embedded_again(open_store: Opener) -> None:
    """A model call costs time and perhaps money; equal texts have equal vectors."""
    embedder = Letters(8)
    store = open_store(embedder=embedder)
    memory = store.remember("aaaa")
    calls = embedder.calls
    store.remember("aaaa")
    store.remember_many(["aaaa", "aaaa"])
    store.edit(memory.id, importance=0.9)
    store.forget(memory.id)
    store.undo_last()
    store.edit(memory.id, text="bbbb")
    store.undo_last()
    assert embedder.calls == calls + 1
    assert disagreements(store) == []


def test_a_text_of_an_earlier_session_keeps_its_vectors(open_store: Opener) -> None:
    """A text that this store has not met is embedded without a look whether the file knows it."""
    open_store().remember("said in an earlier session")
    later = open_store()
    later.remember("the model is known from here on")
    later.remember("said in an earlier session")
    with later.read() as connection:
        assert connection.execute("select count(*) from embedding").get == 2
    assert disagreements(later) == []


@pytest.fixture
def foreign(open_store: Opener) -> MemoryStore:
    """Return a store opened with another model than its file's."""
    with open_store() as store:
        store.remember("zebra stripes", tags=["a"])
        store.remember("lion mane")
    return open_store(embedder=HashingEmbedder(32))


def test_another_model_cannot_search_by_meaning(foreign: MemoryStore) -> None:
    """Vectors of two models compare to noise, which looks like an answer."""
    with pytest.raises(ModelMismatch, match=r"hashing-64.*hashing-32") as caught:
        foreign.recall("zebra", mode="semantic")
    assert "reembed" in caught.value.hint


def test_another_model_still_finds_words_and_says_so(foreign: MemoryStore) -> None:
    """Half an answer with a warning beats none, and beats one without a warning."""
    with pytest.warns(UserWarning, match="by words only") as told:
        hits = foreign.recall("zebra")
    assert texts(hit.memory for hit in hits) == ["zebra stripes"]
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="by words only"):
        assert foreign.recall("nothing of this") == []


def test_another_model_writes_no_text(foreign: MemoryStore) -> None:
    """A vector of another model in the file could never be told apart again."""
    held = contents(foreign)
    for write in (
        lambda: foreign.remember("new"),
        lambda: foreign.remember_many(["new"]),
        lambda: foreign.edit(next(iter(held)), text="new"),
    ):
        with pytest.raises(ModelMismatch):
            write()
    assert contents(foreign) == held


def test_another_model_may_do_what_needs_none(foreign: MemoryStore) -> None:
    """Reading, tagging, forgetting and undoing do not ask the model."""
    first, second = foreign.list_recent()
    foreign.edit(first.id, tags=["b"], importance=0.9)
    foreign.link(first.id, second.id)
    foreign.forget(second.id)
    foreign.undo_last()
    assert foreign.count() == 2
    assert disagreements(foreign) == []


@pytest.mark.parametrize("wrong", [5, "no-such-model", object(), [1]])
def test_what_is_no_embedder_is_refused(wrong: Any, open_store: Opener) -> None:
    """A wrong argument must be named when the store is opened."""
    with pytest.raises(InputError, match="embedder"):
        open_store(embedder=wrong)
