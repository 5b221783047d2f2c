from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from houkai import InputError, MemoryStore, ModelMismatch, NotReady
from houkai.ops import reembed as module
from houkai.search.sketches import InFile
from houkai.storage import reembedding, vectors
from houkai.testing import HashingEmbedder

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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the memory file is to be."""
    return tmp_path / "memory.db"


@pytest.fixture
def old(path: Path) -> Iterator[MemoryStore]:
    """Open a store with the old model and ten memories."""
    with MemoryStore(path, embedder=OLD) as store:
        store.remember_many([f"note {n} speaks of topic{n}" for n in range(10)])
        yield store


def model_of(store: MemoryStore) -> str:
    """Return the name of the model of the file."""
    return str(store.stats()["model"])


def rows(store: MemoryStore, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return rows of the file."""
    with store.read() as connection:
        return connection.execute(sql, values).fetchall()


def check_whole(store: MemoryStore, embedder: Any) -> None:
    """Fail unless every text has exactly this model's vectors and every index agrees."""
    with store.read() as connection:
        model = vectors.current_model(connection)
        assert model is not None
        assert model.fingerprint == embedder.fingerprint
        assert model.dim == embedder.dim
        assert vectors.is_filled(connection)
        assert connection.execute("select group_concat(distinct model) from embedding").get == str(
            model.pk
        )
        for source in reembedding.SOURCES:
            assert reembedding.unembedded(connection, model.pk, source, 0, 5)[1] == {}
        texts = connection.execute("select text_hash, text from memory").fetchall()
        for hash, text in texts:
            stored = connection.execute("select vector from embedding where text_hash = ?", (hash,))
            vector = np.frombuffer(stored.get, "<f2").astype(np.float32)
            assert np.allclose(vector, embedder.query(text), atol=2e-3)
        indexed = connection.execute("select rowid from memory_vec").fetchall()
        expected = connection.execute(
            """select m.pk * 8192 + e.window from memory m
               join embedding e on e.text_hash = m.text_hash"""
        ).fetchall()
        assert sorted(indexed) == sorted(expected)
        assert (
            connection.execute("select key from meta where key in ('reembed', 'indexed')").get
            is None
        )
        # FTS5 checks a warm connection against the segments that it knew at its last query.
        connection.execute("select 1 from memory_fts where memory_fts match 'a'").fetchall()
        connection.execute("select 1 from past_fts where past_fts match 'a'").fetchall()
        assert connection.pragma("integrity_check") == "ok"


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
    check_whole(old, new)
    for text in ("a pelican lands on the pier", edited.text):
        (hit, *_) = old.recall(text, mode="semantic")
        assert hit.memory.text == text
    old.redo()
    check_whole(old, new)


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

    class Windowed(New):
        def passages(self, texts: Sequence[str]) -> list[Any]:
            return [np.concatenate([self.query(w)[None] for w in t.split()]) for t in texts]

    new = Windowed()
    with MemoryStore(path, embedder=OLD) as store:
        store.remember("alpha beta gamma delta")
        store.reembed(new)
        assert rows(store, "select count(*) from embedding") == [(4,)]
        assert rows(store, "select count(*) from memory_vec") == [(4,)]
        for word in ("alpha", "delta"):
            (hit,) = store.recall(word, mode="semantic")
            assert hit.score > 0.99


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

    class Windowed(New):
        def passages(self, texts: Sequence[str]) -> list[Any]:
            return [np.concatenate([self.query(w)[None] for w in t.split()]) for t in texts]

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

        def late(texts: Sequence[str]) -> None:
            if model_of(old) == OLD.name:
                writer.remember(f"late text number {len(new.seen)}")
            else:
                writer.close()
                for _ in range(3):
                    warm.recall("topic1", mode="semantic")

        new.before = late
        old.reembed(new)
        texts = [hit.memory.text for hit in warm.recall("late text", k=10, mode="semantic")]
        assert f"late text number {10 + module.TRIES - 1}" in texts
        assert isinstance(warm.sketches(), InFile) is False


def test_while_the_index_fills_a_single_recall_is_whole(
    old: MemoryStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until vec0 holds every sketch, a one-shot command would find only what is in it."""
    from houkai.search import sketches

    monkeypatch.setattr(sketches, "EXACT", 0)
    monkeypatch.setattr(module, "SLICE", 4)
    fill = vectors.fill_index
    seen: list[int] = []

    def watched(connection: apsw.Connection, limit: int) -> bool:
        more = fill(connection, limit)
        seen.append(connection.execute("select count(*) from memory_vec").get)
        return more

    def look() -> None:
        with MemoryStore(path, embedder=New()) as fresh:
            (hit, *_) = fresh.recall("topic9", mode="semantic")
            assert hit.memory.text.endswith("topic9")
            fresh.remember(f"written while it fills, {len(seen)}")

    monkeypatch.setattr(vectors, "fill_index", watched)
    monkeypatch.setattr(module.time, "sleep", lambda _: look())
    old.reembed(New())
    assert seen[0] == 4
    assert len(seen) >= 4
    check_whole(old, New())


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
    old.reembed()
    check_whole(old, New())


def test_transactions_are_short_enough_for_others(path: Path) -> None:
    """A change of model would make every other agent wait, or fail as busy."""
    number = 4_000
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
    assert len(waits) > 20
    assert max(waits) < 1.0


def test_in_memory(path: Path) -> None:
    """A store in RAM has one connection's rules and would break on a second reader."""
    with MemoryStore(":memory:", embedder=OLD) as store:
        store.remember_many(["one topic1", "two topic2"])
        store.reembed(New())
        check_whole(store, New())


RUN = """
import sys, time
from houkai import MemoryStore
from houkai.testing import HashingEmbedder

class Slow(HashingEmbedder):
    def passages(self, texts):
        time.sleep(0.01)
        return super().passages(texts)

with MemoryStore(sys.argv[1], embedder=HashingEmbedder()) as store:
    print(store.reembed(Slow(256), batch_size=4, progress=lambda *n: print(*n, flush=True)))
"""


def test_killed_at_any_moment_it_goes_on_where_it_was(path: Path) -> None:
    """A laptop that is closed would lose the vectors of a night, or a half-changed file."""
    with MemoryStore(path, embedder=OLD) as store:
        texts = [f"note {n} speaks of topic{n}" for n in range(120)]
        store.remember_many(texts)
        old_text = store.edit(store.list_recent(1)[0].id, text="edited once")
        assert old_text
    done = 0
    for after in (1, 4, 9, 15, 22):
        run = subprocess.Popen(
            [sys.executable, "-c", RUN, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert run.stdout is not None
        lines = iter(run.stdout.readline, "")
        first = next(lines)
        assert int(first.split()[0]) >= done
        for line in lines:
            done = int(line.split()[0])
            if done >= after * 4:
                break
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        run.stdout.close()
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
    worker = subprocess.Popen(
        [sys.executable, "-c", WORK, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    assert worker.stdout.readline() == "kept 0\n"
    new = New()
    new.before = lambda texts: time.sleep(0.01)
    with MemoryStore(path, embedder=OLD) as store:
        store.reembed(new, batch_size=8)
        out, _ = worker.communicate(timeout=60)
        assert worker.returncode == 0
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
