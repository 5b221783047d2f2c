from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from houkai import MemoryStore, NotReady
from houkai.embed import adapt
from houkai.ops import reembed as module
from houkai.storage import indexing, reembedding, vectors
from tests.ops.changing import OLD, New, Windowed, check_whole, fill, model_of, rows
from tests.support import start


@pytest.fixture
def old(path: Path) -> Iterator[MemoryStore]:
    """Open a store with the old model and ten memories."""
    with MemoryStore(path, embedder=OLD) as store:
        yield fill(store)


def test_a_failure_keeps_what_was_done_and_the_next_run_goes_on(old: MemoryStore) -> None:
    """A provider that fails after an hour would cost the hour."""
    new = New()

    def fail_later(texts: Sequence[str]) -> None:
        if len(new.seen) >= 6:
            raise NotReady("the provider is gone")

    new.before = fail_later
    with pytest.raises(NotReady, match="the provider is gone"):
        old.reembed(new, batch_size=3)
    assert len(new.seen) == 6
    assert old.recall("topic1", mode="semantic")[0].memory.text.endswith("topic1")
    new.seen.clear()
    new.before = lambda texts: None
    told: list[tuple[int, int]] = []
    done = old.reembed(new, progress=lambda *now: told.append(now))
    assert len(new.seen) == done.embedded == 4
    assert told[0] == (6, 10)
    check_whole(old, new)


def test_leftovers_of_every_model_go_and_whole_texts_at_a_time(
    old: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a text's windows would count as its vectors when the old model comes back."""
    monkeypatch.setattr(module, "SLICE", 3)
    half = Windowed(128)
    old.reembed(half)
    assert rows(old, "select count(*) from embedding") == [(50,)]
    new = New()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAUSE_S", 0)
        drop = reembedding.drop_leftovers
        calls: list[int] = []

        def killed(*given: Any, **named: Any) -> Any:
            if calls:
                raise KeyboardInterrupt
            calls.append(1)
            return drop(*given, **named)

        patch.setattr(reembedding, "drop_leftovers", killed)
        with pytest.raises(KeyboardInterrupt):
            old.reembed(new)
    left = rows(
        old,
        """select count(*), count(distinct text_hash) from embedding
           where model <> (select value from meta where key = 'model')""",
    )
    assert left == [(35, 7)]
    done = old.reembed(half)
    assert done.embedded == 3
    assert rows(old, "select count(*) from embedding") == [(50,)]


def test_a_killed_filling_is_finished_by_the_next_run(
    old: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index would stay half full for ever, and every one-shot recall slow."""
    with monkeypatch.context() as patch:
        patch.setattr(vectors, "fill_index", lambda connection, limit: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            old.reembed(New())
    forgotten = old.list_recent(1)[0]
    old.forget(forgotten.id)
    old.undo_last()
    assert old.reembed(New()).embedded == 0
    check_whole(old, New())


@pytest.mark.parametrize("more", ["memories since", "nothing else"])
def test_a_killed_filling_is_finished_in_quiet_moments(
    old: MemoryStore, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    """Nobody reembeds twice; until it is finished, recall reads every sketch of the file."""
    with monkeypatch.context() as patch:
        patch.setattr(vectors, "fill_index", lambda connection, limit: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            old.reembed(New())
    monkeypatch.setattr(indexing, "SLICE", 4)
    if more == "memories since":
        old.forget(old.list_recent(1)[0].id)
        old.undo_last()
    old.db.settle()
    left = rows(old, "select key from meta where key in ('indexed', 'deferred')")
    assert left == []
    missing = rows(
        old,
        """select pk from memory where not exists (select 1 from memory_vec_rowids
             where rowid >= pk * 8192 and rowid < (pk + 1) * 8192)""",
    )
    assert missing == []


EPOCH = "select value from meta where key = 'vector_epoch'"


@pytest.mark.parametrize("step", ["renew_index", "drop_leftovers"])
def test_whoever_changes_vectors_tells_every_copy(old: MemoryStore, step: str) -> None:
    """SQLite gives the number of a deleted vector again; a copy in RAM would go by the old one."""
    if step == "renew_index":
        change: Callable[[Any], Any] = vectors.renew_index
    else:
        change = partial(reembedding.drop_leftovers, after=b"", limit=10)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reembedding, "drop_leftovers", lambda *_, **__: (None, 0))
            old.reembed(New())
            old.reembed(OLD)
    ((before,),) = rows(old, EPOCH)
    ((last,),) = rows(old, "select max(pk) from embedding")
    old.db.write(change)
    assert rows(old, EPOCH) != [(before,)]
    assert (rows(old, "select max(pk) from embedding") != [(last,)]) == (step == "drop_leftovers")


def test_leftovers_go_without_a_word_while_their_numbers_are_not_given_again(
    old: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each slice of them would have every open process read a large file whole, over and over."""
    monkeypatch.setattr(module, "SLICE", 2)
    told: list[Any] = []
    drop = reembedding.drop_leftovers

    def dropping(*given: Any, **named: Any) -> Any:
        told.extend(rows(old, EPOCH))
        return drop(*given, **named)

    monkeypatch.setattr(reembedding, "drop_leftovers", dropping)
    assert old.reembed(New()).dropped == 10
    told.extend(rows(old, EPOCH))
    assert len(told) == 7
    assert len(set(told)) == 1


RUN = """
import sys, time
from houkai import MemoryStore
from houkai.ops import reembed
from houkai.testing import HashingEmbedder

class Slow(HashingEmbedder):
    def passages(self, texts):
        time.sleep(0.004)
        return super().passages(texts)

reembed.SLICE = 10
with MemoryStore(sys.argv[1], embedder=HashingEmbedder()) as store:
    store.reembed(Slow(256), batch_size=4, progress=lambda *n: print(*n, flush=True))
"""


def killed(path: Path, when: Callable[[int], bool], after_s: float = 0.0) -> int:
    """Kill a run once so many texts are done, and return how many were when it began."""
    run = start(RUN, str(path))
    assert run.stdout is not None
    first = -1
    for line in iter(run.stdout.readline, ""):
        done = int(line.split()[0])
        first = done if first < 0 else first
        if when(done):
            break
    time.sleep(after_s)
    run.kill()
    run.communicate()
    return first


def test_killed_in_the_middle_it_goes_on_where_it_was(path: Path) -> None:
    """A laptop that is closed would lose the vectors of a night."""
    with MemoryStore(path, embedder=OLD) as store:
        texts = [f"note {n} speaks of topic{n}" for n in range(120)]
        store.remember_many(texts)
        store.edit(store.list_recent(1)[0].id, text="edited once")
    done = 0
    for stop in (4, 32, 72):
        assert killed(path, lambda now, stop=stop: now >= stop) >= done
        done = stop
        with MemoryStore(path, embedder=OLD) as store:
            assert store.count() == 120
            assert store.recall("topic50", mode="semantic")[0].memory.text.endswith("topic50")
    new = New()
    with MemoryStore(path, embedder=OLD) as store:
        result = store.reembed(new)
        assert result.texts == 121
        assert result.embedded <= 121 - done
        check_whole(store, new)
        store.undo_last()
        assert {memory.text for memory in store.list_recent(None)} == set(texts)
        check_whole(store, new)


def test_killed_at_any_moment_the_file_has_one_model_and_all_of_it(path: Path) -> None:
    """A kill while the file changes over would leave it between two models."""
    with MemoryStore(path, embedder=OLD) as store:
        store.remember_many([f"note {n} speaks of topic{n}" for n in range(60)])
    moments = random.Random(3)
    new = New()
    for _ in range(6):
        killed(path, lambda now: now >= 56, moments.uniform(0.0, 0.15))
        with MemoryStore(path, embedder=OLD) as store:
            store.embedder = OLD if model_of(store) == OLD.name else adapt(new)
            (hit, *_) = store.recall("topic40", mode="semantic")
            assert hit.memory.text.endswith("topic40")
            store.undo_last()
            store.redo()
            assert store.count() == 60
            store.reembed(OLD)
            check_whole(store, OLD)
