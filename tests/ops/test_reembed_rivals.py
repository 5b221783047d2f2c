from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from houkai import MemoryStore, ModelMismatch
from houkai import text as words
from houkai.ops import reembed as module
from houkai.search.resident import HeldView
from tests.ops.changing import OLD, New, check_whole, fill, model_of, rows


@pytest.fixture
def old(path: Path) -> Iterator[MemoryStore]:
    """Open a store with the old model and ten memories."""
    with MemoryStore(path, embedder=OLD) as store:
        yield fill(store)


def test_the_last_call_decides_which_model_comes(old: MemoryStore, path: Path) -> None:
    """Two runs towards two models would undo each other's work for ever."""
    first, second = New(128), New(256)

    def overtaken(texts: Sequence[str]) -> None:
        first.before = lambda texts: None
        with MemoryStore(path, embedder=OLD) as other:
            other.reembed(second)

    first.before = overtaken
    with pytest.raises(ModelMismatch, match="Another process"):
        old.reembed(first, batch_size=3)
    with MemoryStore(path, embedder=second) as store:
        check_whole(store, second)


def test_what_is_erased_meanwhile_leaves_no_vector(old: MemoryStore, path: Path) -> None:
    """A vector tells much of its text, so one that comes after a purge would undo the purge."""
    new = New()
    gone = old.list_recent(1)[0]

    def purge(texts: Sequence[str]) -> None:
        if gone.text in texts and old.get(gone.id):
            old.trash(gone.id)
            assert old.trash_purge(gone.id) == 1

    new.before = purge
    with MemoryStore(path, embedder=OLD) as other:
        other.reembed(new)
        new.before = lambda texts: None
        check_whole(other, new)
        hash = words.text_hash(gone.text)
        assert rows(other, "select count(*) from embedding where text_hash = ?", hash) == [(0,)]


def test_a_text_that_moves_meanwhile_is_not_lost(old: MemoryStore, path: Path) -> None:
    """An edit in the wrong moment would leave both of its versions without vectors."""
    new = New()
    edited = old.list_recent(1)[0]

    def edit(texts: Sequence[str]) -> None:
        if edited.text in texts and old.get(edited.id).text == edited.text:
            old.edit(edited.id, text="another wording of it")

    new.before = edit
    with MemoryStore(path, embedder=OLD) as other:
        other.reembed(new)
        new.before = lambda texts: None
        check_whole(other, new)
        other.undo_last(memory_id=edited.id)
        check_whole(other, new)


def test_two_runs_towards_one_model_share_the_work(old: MemoryStore, path: Path) -> None:
    """A second terminal would fail, or write every vector twice."""
    first, second = New(), New()

    def overtaken(texts: Sequence[str]) -> None:
        first.before = lambda texts: None
        with MemoryStore(path, embedder=OLD) as other:
            assert other.reembed(second).switched

    first.before = overtaken
    old.reembed(first, batch_size=3)
    check_whole(old, first)


def test_writers_that_never_pause_do_not_put_it_off_for_ever(old: MemoryStore, path: Path) -> None:
    """A busy file could never change its model; nor may the last texts be forgotten."""
    new = New()
    with MemoryStore(path, embedder=OLD) as writer:

        def busy(texts: Sequence[str]) -> None:
            if model_of(old) == OLD.name:
                writer.remember(f"yet another text, number {len(new.seen)} of many")

        new.before = busy
        done = old.reembed(new)
    assert done.switched
    check_whole(old, new)
    assert old.count() == 10 + module.TRIES
    # It went in unembedded, and other stores must learn that it is there now.
    (hit, *_) = old.recall("yet another text", mode="semantic")
    assert hit.memory.text.startswith("yet another text")


def test_a_warm_store_sees_vectors_that_came_after_the_change(old: MemoryStore, path: Path) -> None:
    """Its copy of the sketches is patched from the journal, where late vectors do not show."""
    new = New()
    with MemoryStore(path, embedder=new) as warm:
        writer = MemoryStore(path, embedder=OLD)
        added: list[str] = []

        def late(texts: Sequence[str]) -> None:
            if model_of(old) == OLD.name:
                added.append(writer.remember(f"late text number {len(new.seen)}").text)
            else:
                writer.close()
                for _ in range(3):
                    warm.recall("topic1", mode="semantic")

        new.before = late
        old.reembed(new)
        texts = [hit.memory.text for hit in warm.recall("late text", k=10, mode="semantic")]
        assert len(added) == module.TRIES
        assert set(added) <= set(texts)
        with warm.read() as connection:
            assert isinstance(warm.sketches().at(connection), HeldView)


def test_a_warm_store_reads_anew_when_its_model_comes_back(old: MemoryStore, path: Path) -> None:
    """Its copy of the sketches would name vectors that are gone, though no memory has changed."""
    for _ in range(2):
        old.recall("topic1", mode="semantic")
    with MemoryStore(path, embedder=New()) as other:
        other.reembed()
        other.reembed(OLD)
    (hit, *_) = old.recall("topic6", mode="semantic")
    assert hit.memory.text.endswith("topic6")
