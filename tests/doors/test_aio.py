"""The store for asyncio: the same operations, off the loop, whole or not at all."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import houkai
from houkai import AsyncMemoryStore, Memory, MemoryStore, StorageError
from houkai.notes import listening
from houkai.testing import HashingEmbedder
from tests.support import environment

Body = Callable[[AsyncMemoryStore], Awaitable[Any]]


class Gate(HashingEmbedder):
    """An embedder that waits until the test lets it go on."""

    def __init__(self) -> None:
        super().__init__(64)
        self.entered, self.let_go = threading.Event(), threading.Event()

    def passages(self, texts: Any) -> Any:
        """Tell that a write has begun, and wait."""
        self.entered.set()
        assert self.let_go.wait(20)
        return super().passages(texts)


def within(path: Path | str, body: Body, **options: Any) -> Any:
    """Run a coroutine on a store, and return what it returns."""

    async def main() -> Any:
        options.setdefault("embedder", HashingEmbedder(64))
        async with AsyncMemoryStore(path, **options) as store:
            return await body(store)

    return asyncio.run(main())


def test_it_takes_what_the_store_takes() -> None:
    """AI-Houkai's async store cannot be given an embedder or a reranker."""
    theirs, ours = (inspect.signature(one) for one in (MemoryStore, AsyncMemoryStore))
    assert ours.parameters == theirs.parameters


def test_every_argument_arrives(path: Path) -> None:
    """An argument that the async store forgets to pass on is silently the default."""
    options: dict[str, Any] = {
        "actor": "ann",
        "conflict_policy": "warn",
        "conflict_threshold": 0.7,
        "contradiction_fn": lambda _a, _b: False,
        "hybrid_weights": houkai.HybridWeights(cosine=1.0),
        "reranker": lambda _query, memories: [0.0 for _ in memories],
        "importance_fn": lambda *_: 0.9,
        "journal_enabled": False,
        "clock": lambda: 5.0,
    }

    async def body(store: AsyncMemoryStore) -> None:
        kept = {**vars(store.sync.settings), "actor": store.sync.actor}
        assert {name: kept[name] for name in options} == options
        assert store.sync.collection == "work"
        assert store.sync.db.durability == "normal"

    within(path, body, collection="work", durability="normal", **options)


def test_a_day_of_an_async_program(path: Path) -> None:
    """The way web servers and agent frameworks use a store."""

    async def body(store: AsyncMemoryStore) -> None:
        memory = await store.remember("Anna lands at nine", tags=["travel"])
        assert isinstance(memory, Memory)
        hits = await store.recall("when does Anna land", k=1)
        assert hits[0].memory.id == memory.id
        edited = await store.edit(memory.id, text="Anna lands at ten")
        assert edited.text == "Anna lands at ten"
        await store.undo_last()
        assert (await store.get(memory.id) or edited).text == "Anna lands at nine"
        assert [entry.op for entry in await store.history(memory.id)] == [
            "remember",
            "edit",
            "undo",
        ]

    within(path, body)
    assert [file.name for file in path.parent.iterdir() if file.is_file()] == [path.name]


def test_the_loop_runs_on(path: Path) -> None:
    """A write that blocks the loop blocks every request of a server."""
    gate = Gate()

    async def body(store: AsyncMemoryStore) -> None:
        writing = asyncio.create_task(store.remember("slow"))
        while not gate.entered.is_set():
            await asyncio.sleep(0.001)
        assert await store.count() == 0
        gate.let_go.set()
        await writing
        assert await store.count() == 1

    within(path, body, embedder=gate)


def test_a_cancelled_write_is_done_whole(path: Path) -> None:
    """A timeout must not leave a memory without its vector, or a journal without its memory."""
    gate = Gate()

    async def body(store: AsyncMemoryStore) -> None:
        writing = asyncio.create_task(store.remember("begun"))
        while not gate.entered.is_set():
            await asyncio.sleep(0.001)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        gate.let_go.set()

    within(path, body, embedder=gate)
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
        assert [memory.text for memory in store.list_recent()] == ["begun"]
        assert store.stats()["unembedded"] == 0
        assert [entry.op for entry in store.journal()] == ["remember"]


def test_cancelled_writes_are_never_half_done(path: Path) -> None:
    """Whatever moment the cancellation hits, rows, vectors and journal agree afterwards."""

    async def body(store: AsyncMemoryStore) -> None:
        for delay in range(20):
            tasks = [
                asyncio.create_task(store.remember_many([f"{delay} {n} a", f"{delay} {n} b"]))
                for n in range(4)
            ]
            await asyncio.sleep(delay / 4_000)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    within(path, body)
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
        kept = [memory.text.rpartition(" ")[0] for memory in store.list_recent(None)]
        assert all(kept.count(pair) == 2 for pair in kept)
        assert len(store.journal(None)) == len(kept) // 2
        assert store.stats()["unembedded"] == 0


def test_concurrent_writes_all_arrive(path: Path) -> None:
    """Two hundred tasks at once are an ordinary fan-out."""

    async def body(store: AsyncMemoryStore) -> None:
        made = await asyncio.gather(*(store.remember(f"fact {n}") for n in range(200)))
        assert len({memory.id for memory in made}) == await store.count() == 200

    within(path, body)


def test_closing_waits_for_what_runs(path: Path) -> None:
    """A program that closes at once after a gather must not lose its last writes."""
    gate = Gate()

    async def main() -> None:
        store = AsyncMemoryStore(path, embedder=gate)
        writing = asyncio.create_task(store.remember("last words"))
        while not gate.entered.is_set():
            await asyncio.sleep(0.001)
        closing = asyncio.create_task(store.aclose())
        await asyncio.sleep(0.02)
        assert not closing.done()
        gate.let_go.set()
        await closing
        assert (await writing).text == "last words"
        await store.aclose()
        store.close()
        with pytest.raises(StorageError, match="The store is closed") as refused:
            await store.count()
        assert "AsyncMemoryStore" in refused.value.hint

    asyncio.run(main())


def test_a_view_closes_nothing(path: Path) -> None:
    """A view for one request must not end the store of all requests."""

    async def body(store: AsyncMemoryStore) -> None:
        async with store.as_actor("ann", "session-7") as view:
            memory = await view.remember("x")
        await store.edit(memory.id, text="y")
        assert [entry.actor for entry in await store.history(memory.id)] == ["ann", "lib"]

    within(path, body)


def test_run_takes_any_function(path: Path) -> None:
    """Several steps that belong together change threads once."""

    def both(store: MemoryStore, first: str, *, second: str) -> int:
        store.remember(first)
        store.remember(second)
        return store.count()

    async def body(store: AsyncMemoryStore) -> None:
        assert await store.run(both, "one", second="two") == 2

    within(path, body)


def test_notes_cross_to_the_thread(path: Path) -> None:
    """A listener in the task hears what the operation says on its thread."""
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
        store.remember("Anna lands at nine")

    async def body(store: AsyncMemoryStore) -> None:
        with listening() as heard:
            await store.recall("Anna")
        assert heard[0].startswith("Recall by words only")

    within(path, body, embedder=HashingEmbedder(32))


def test_errors_keep_their_type(path: Path) -> None:
    """A caller's `except InputError` must work across threads."""

    async def body(store: AsyncMemoryStore) -> None:
        with pytest.raises(houkai.InputError, match="importance must be a number"):
            await store.remember("x", importance=2)
        with pytest.raises(TypeError):
            await store.remember()  # type: ignore[call-arg]

    within(path, body)


def test_importing_houkai_leaves_asyncio_alone() -> None:
    """A command that lists memories must not pay for an event loop."""
    code = "import sys, houkai; print('asyncio' in sys.modules, 'AsyncMemoryStore' in dir(houkai))"
    out = subprocess.check_output([sys.executable, "-c", code], env=environment(), text=True)
    assert out.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = houkai.Nothing
