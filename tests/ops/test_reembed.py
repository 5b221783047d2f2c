from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from houkai import InputError, MemoryStore, ModelMismatch
from houkai.testing import HashingEmbedder
from tests.ops.changing import OLD, New, Windowed, check_whole, fill, rows


@pytest.fixture
def old(path: Path) -> Iterator[MemoryStore]:
    """Open a store with the old model and ten memories."""
    with MemoryStore(path, embedder=OLD) as store:
        yield fill(store)


def test_a_file_changes_its_model(old: MemoryStore) -> None:
    """A user could never leave the model of the first day."""
    told: list[tuple[int, int]] = []
    new = New()
    done = old.reembed(new, batch_size=4, progress=lambda *now: told.append(now))
    assert (done.model, done.dim, done.texts, done.embedded) == ("hashing-256", 256, 10, 10)
    assert (done.dropped, done.switched) == (10, True)
    assert told == [(0, 10), (4, 10), (8, 10), (10, 10)]
    check_whole(old, new)
    (hit, *_) = old.recall("topic7", mode="semantic")
    assert hit.memory.text == "note 7 speaks of topic7"
    old.remember("written with the new model")
    check_whole(old, new)


def test_the_store_without_an_embedder_means_its_own(old: MemoryStore, path: Path) -> None:
    """Whoever sets HOUKAI_EMBEDDER and runs `houkai reembed` would get the old model again."""
    new = New()
    with MemoryStore(path, embedder=new) as store:
        assert store.reembed().model == new.name
        check_whole(store, new)


def test_a_second_run_has_nothing_to_do(old: MemoryStore) -> None:
    """A script that runs it every night would pay for every text every night."""
    new = New()
    old.reembed(new)
    new.seen.clear()
    done = old.reembed()
    assert (done.texts, done.embedded, done.dropped, done.switched) == (10, 0, 0, False)
    assert new.seen == []


def test_an_empty_file_takes_the_model(path: Path) -> None:
    """Choosing a model before the first memory would fail."""
    new = New()
    with MemoryStore(path, embedder=OLD) as store:
        assert store.reembed(new).texts == 0
        store.remember("the first")
        check_whole(store, new)


def test_a_callable_that_does_not_know_its_dimension(old: MemoryStore) -> None:
    """A model must have a dimension before it can be entered, so this would fail at once."""
    inner = HashingEmbedder(128)

    def mine(texts: list[str]) -> list[Any]:
        return [inner.query(text) for text in texts]

    done = old.reembed(mine)
    assert done.dim == 128
    assert old.recall("topic3", mode="semantic")[0].memory.text.endswith("topic3")


def test_a_bad_embedder_or_batch_changes_nothing(old: MemoryStore) -> None:
    """A typing error would leave a model coming that nobody wants."""
    with pytest.raises(InputError, match="minilm, openai:MODEL, ollama:MODEL"):
        old.reembed("opnai:m")
    with pytest.raises(InputError, match="batch_size"):
        old.reembed(New(), batch_size=0)
    assert old.stats()["reembedding"] is None
    check_whole(old, OLD)


def test_undo_brings_back_texts_with_vectors_of_the_new_model(old: MemoryStore) -> None:
    """An undo after the change would need the model, or restore what no recall can find."""
    edited = old.list_recent(1)[0]
    old.edit(edited.id, text="rewritten beyond recognition")
    gone = old.remember("a pelican lands on the pier")
    old.forget(gone.id)
    new = New()
    assert old.reembed(new).texts == 12
    new.before = lambda texts: pytest.fail("the model was asked")
    old.undo_last(memory_id=gone.id)
    old.undo_last(memory_id=edited.id)
    check_whole(old, New())
    for text in ("a pelican lands on the pier", edited.text):
        (hit, *_) = old.recall(text, mode="semantic")
        assert hit.memory.text == text
    old.redo()
    check_whole(old, New())


def test_the_trash_is_restored_without_the_model(old: MemoryStore) -> None:
    """What outlives the journal in the trash would need the model when it comes back."""
    memory = old.list_recent(1)[0]
    old.trash(memory.id)
    old.prune_journal(keep_last=0)
    new = New()
    assert old.reembed(new).texts == 10
    new.before = lambda texts: pytest.fail("the model was asked")
    assert old.trash_restore(memory.id)
    assert old.recall(memory.text, mode="semantic")[0].memory.id == memory.id
    check_whole(old, New())


def test_recall_as_of_an_earlier_moment_still_finds_by_meaning(old: MemoryStore) -> None:
    """Replaced versions would lose their vectors with the old model."""
    memory = old.remember("the harbour closes at dusk")
    then = old.now()
    time.sleep(0.002)
    old.edit(memory.id, text="something else entirely")
    old.reembed(New())
    (hit, *_) = old.recall("the harbour closes", mode="semantic", as_of=then)
    assert hit.memory.text == "the harbour closes at dusk"


def test_long_texts_take_all_their_windows_along(path: Path) -> None:
    """A text would be found by its first window only."""

    new = Windowed()
    with MemoryStore(path, embedder=OLD) as store:
        store.remember("alpha beta gamma delta")
        store.reembed(new)
        assert rows(store, "select count(*) from embedding") == [(4,)]
        assert rows(store, "select count(*) from memory_vec") == [(4,)]
        for word in ("alpha", "delta"):
            (hit,) = store.recall(word, mode="semantic")
            assert hit.score > 0.99


def test_a_vector_of_another_length_than_the_files_is_refused(path: Path) -> None:
    """A callable that changes its dimension, but not its name, would fill the file with noise."""
    with MemoryStore(path, embedder=lambda texts: [[1.0] * 64] * len(texts)) as store:
        made = store.embedder.name
        store.remember("first")

    def renamed(texts: list[str]) -> list[Any]:
        return [[1.0] * 32] * len(texts)

    renamed.name = made  # type: ignore[attr-defined]
    with MemoryStore(path, embedder=renamed) as store:
        with pytest.raises(ModelMismatch, match="32 dimensions"):
            store.remember("second")
        with pytest.raises(ModelMismatch, match="32 dimensions"):
            store.recall("first", mode="semantic")


def test_in_memory(path: Path) -> None:
    """A store in RAM has one connection's rules and would break on a second reader."""
    with MemoryStore(":memory:", embedder=OLD) as store:
        store.remember_many(["one topic1", "two topic2"])
        store.reembed(New())
        check_whole(store, New())
