from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from houkai import MemoryStore, ModelMismatch
from houkai.ops import reembed as module
from houkai.search import in_file
from houkai.storage import vectors
from houkai.testing import HashingEmbedder
from tests.ops.changing import OLD, New, check_whole, fill
from tests.support import start


@pytest.fixture
def old(path: Path) -> Iterator[MemoryStore]:
    """Open a store with the old model and ten memories."""
    with MemoryStore(path, embedder=OLD) as store:
        yield fill(store)


def test_meanwhile_the_old_model_serves_and_the_new_one_goes_by_words(
    old: MemoryStore, path: Path
) -> None:
    """For hours of embedding the file would be unusable to every agent."""
    new = New()
    checked: list[str] = []

    def meanwhile(texts: Sequence[str]) -> None:
        if checked:
            return
        checked.append("once")
        (hit, *_) = old.recall("topic4", mode="semantic")
        assert hit.memory.text.endswith("topic4")
        assert old.stats()["reembedding"] == "hashing-256"
        old.remember("written in between about topic77")
        with MemoryStore(path, embedder=New()) as other:
            with pytest.warns(UserWarning, match=r"words only.*being changed over"):
                (found, *_) = other.recall("topic4")
            assert found.memory.text.endswith("topic4")
            with pytest.raises(ModelMismatch) as error:
                other.recall("topic4", mode="semantic")
            assert "being changed over" in error.value.hint
            with pytest.raises(ModelMismatch):
                other.remember("a vector of the coming model too early")

    new.before = meanwhile
    with MemoryStore(path, embedder=OLD) as third:
        third.reembed(new, batch_size=3)
        check_whole(third, new)
        (hit, *_) = third.recall("topic77", mode="semantic")
        assert hit.memory.text == "written in between about topic77"


def test_the_old_model_is_refused_afterwards_and_recalls_by_words(
    old: MemoryStore, path: Path
) -> None:
    """Two models in one file would rank by cosines between unrelated spaces."""
    with MemoryStore(path, embedder=New()) as other:
        other.reembed()
    with pytest.raises(ModelMismatch, match="hashing-256"):
        old.remember("one more of the old kind")
    with pytest.raises(ModelMismatch):
        old.recall("topic2", mode="semantic")
    with pytest.warns(UserWarning, match="words only"):
        (hit, *_) = old.recall("topic2")
    assert hit.memory.text.endswith("topic2")
    assert old.count() == 10


def test_a_change_over_between_embedding_a_query_and_reading_goes_by_words(
    old: MemoryStore, path: Path
) -> None:
    """A vector of 384 numbers would meet stored ones of 256 and end in a traceback."""

    class Late(HashingEmbedder):
        def query(self, text: str) -> Any:
            vector = super().query(text)
            if text == "topic5":
                with MemoryStore(path, embedder=New()) as other:
                    other.reembed()
            return vector

    with MemoryStore(path, embedder=Late()) as store:
        with pytest.warns(UserWarning, match="words only"):
            (hit, *_) = store.recall("topic5")
        assert hit.memory.text.endswith("topic5")


def test_a_change_over_between_embedding_a_text_and_writing_refuses_it(
    old: MemoryStore, path: Path
) -> None:
    """A vector of the old model would be stored as one of the new."""

    class Late(HashingEmbedder):
        def passages(self, texts: Sequence[str]) -> list[Any]:
            found = super().passages(texts)
            with MemoryStore(path, embedder=New()) as other:
                other.reembed()
            return found

    with MemoryStore(path, embedder=Late()) as store, pytest.raises(ModelMismatch):
        store.remember("too late")
    with MemoryStore(path, embedder=New()) as store:
        check_whole(store, New())
        assert store.count() == 10


def test_while_the_index_fills_a_single_recall_is_whole(
    old: MemoryStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until vec0 holds every sketch, a one-shot command would find only what is in it."""

    monkeypatch.setattr(in_file, "EXACT", 0)
    monkeypatch.setattr(module, "SLICE", 4)
    fill = vectors.fill_index
    seen: list[int] = []

    def watched(connection: apsw.Connection, limit: int) -> bool:
        more = fill(connection, limit)
        seen.append(connection.execute("select count(*) from memory_vec").get)
        return more

    def look() -> None:
        with MemoryStore(path, embedder=New()) as fresh:
            (hit, *_) = fresh.recall("topic0", mode="semantic")
            assert hit.memory.text.endswith("topic0")
            fresh.remember(f"written while it fills, {len(seen)}")

    monkeypatch.setattr(vectors, "fill_index", watched)
    monkeypatch.setattr(module, "sleep", lambda _: look())
    old.reembed(New())
    assert seen[0] == 4
    assert len(seen) >= 4
    check_whole(old, New())


def test_transactions_are_short_enough_for_others(path: Path) -> None:
    """A change of model would make every other agent wait, or fail as busy."""
    number = 1_500
    with MemoryStore(path, embedder=OLD) as store:
        store.remember_many([f"note {n} on topic{n}" for n in range(number)], batch_size=1000)
    waits: list[float] = []
    stop = threading.Event()

    def write() -> None:
        with MemoryStore(path, embedder=OLD) as other:
            memory = other.list_recent(1)[0]
            pinned = False
            while not stop.is_set():
                begun = time.perf_counter()
                pinned = not pinned
                other.edit(memory.id, pinned=pinned)
                waits.append(time.perf_counter() - begun)
                time.sleep(0.005)

    thread = threading.Thread(target=write)
    thread.start()
    new = New()
    with MemoryStore(path, embedder=OLD) as store:
        store.reembed(new)
        stop.set()
        thread.join()
        check_whole(store, new)
    assert len(waits) > 10
    assert max(waits) < 1.0


WORK = """
import sys, time, warnings
from houkai import MemoryStore, ModelMismatch
from houkai.testing import HashingEmbedder

warnings.simplefilter("ignore")
with MemoryStore(sys.argv[1], embedder=HashingEmbedder()) as store:
    print("ready", flush=True)
    number = 0
    while True:
        try:
            store.remember(f"worker text {number} about subject{number}")
        except ModelMismatch:
            print("refused", number, flush=True)
            break
        print("kept", number, flush=True)
        assert store.recall("topic3")[0].memory.text.endswith("topic3"), "lost"
        number += 1
"""


def test_another_process_writes_and_recalls_meanwhile_and_nothing_is_lost(path: Path) -> None:
    """An acknowledged memory would be missing, or unfindable by meaning, after the change."""
    with MemoryStore(path, embedder=OLD) as store:
        store.remember_many([f"note {n} speaks of topic{n}" for n in range(200)])
    worker = start(WORK, str(path))
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    assert worker.stdout.readline() == "kept 0\n"
    new = New()
    new.before = lambda texts: time.sleep(0.01)
    with MemoryStore(path, embedder=OLD) as store:
        store.reembed(new, batch_size=8)
        out, complaint = worker.communicate(timeout=60)
        assert worker.returncode == 0, complaint
        *kept, last = out.splitlines()
        assert last.startswith("refused")
        numbers = [0, *(int(line.split()[1]) for line in kept)]
        assert len(numbers) > 3
        store.reembed()
        check_whole(store, new)
        assert store.count() == 200 + len(numbers)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for number in (numbers[0], numbers[len(numbers) // 2], numbers[-1]):
                (hit, *_) = store.recall(f"subject{number}", mode="semantic")
                assert hit.memory.text == f"worker text {number} about subject{number}"
