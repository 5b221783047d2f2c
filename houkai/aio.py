"""`AsyncMemoryStore`: the operations of `MemoryStore` as coroutines, run on threads of their own.

Cancelling a task stops its waiting, not the work: a write is then done whole or never begun.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import functools
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from houkai import clock as clocks
from houkai import ops
from houkai.clock import Clock
from houkai.conflict_rules import ConflictFn
from houkai.errors import StorageError
from houkai.handle import ImportanceFn, Reranker, Store
from houkai.model import HybridWeights
from houkai.store import MemoryStore
from houkai.vocabulary import ConflictPolicy, Durability

P = ParamSpec("P")
T = TypeVar("T")
THREADS: Final = 32
"""Enough that concurrent writes share a commit; a thread that waits costs little."""


def offload(
    run: Callable[Concatenate[Store, P], T],
) -> Callable[Concatenate[AsyncMemoryStore, P], Coroutine[Any, Any, T]]:
    """Return an operation as a coroutine method with the same parameters."""

    @functools.wraps(run)
    async def method(store: AsyncMemoryStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await store.run(run, *args, **kwargs)

    return method


class AsyncMemoryStore:
    """Open a memory file like `MemoryStore`, and await its operations.

    Use it in `async with`, or `await store.aclose()` at the end. `sync` is the store itself.
    Raises what `MemoryStore` raises.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        collection: str | None = None,
        *,
        embedder: Any = None,
        actor: str = "lib",
        conflict_policy: ConflictPolicy = "ignore",
        conflict_threshold: float = 0.8,
        contradiction_fn: ConflictFn | None = None,
        hybrid_weights: HybridWeights | None = None,
        reranker: Reranker | None = None,
        importance_fn: ImportanceFn | None = None,
        journal_enabled: bool = True,
        durability: Durability = "full",
        clock: Clock = clocks.now,
    ) -> None:
        self.sync = MemoryStore(
            path,
            collection,
            embedder=embedder,
            actor=actor,
            conflict_policy=conflict_policy,
            conflict_threshold=conflict_threshold,
            contradiction_fn=contradiction_fn,
            hybrid_weights=hybrid_weights,
            reranker=reranker,
            importance_fn=importance_fn,
            journal_enabled=journal_enabled,
            durability=durability,
            clock=clock,
        )
        self._threads = ThreadPoolExecutor(THREADS, "houkai")
        self._owner = True

    async def run(
        self, work: Callable[Concatenate[MemoryStore, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `work(store, ...)` on a thread and return its result.

        Several operations in one `work` cost one change of threads.
        """
        context = contextvars.copy_context()
        call = functools.partial(context.run, work, self.sync, *args, **kwargs)
        loop = asyncio.get_running_loop()
        try:
            waiting = loop.run_in_executor(self._threads, call)
        except RuntimeError as error:
            raise StorageError(
                "The store is closed.", hint="Open a new AsyncMemoryStore."
            ) from error
        return await waiting

    def as_actor(self, name: str, session: str | None = None) -> Self:
        """Return a view of this store whose changes are recorded under another actor.

        The view shares the file and the threads; leaving or closing it does not close the store.
        """
        view = copy.copy(self)
        view.sync = self.sync.as_actor(name, session)
        view._owner = False
        return view

    async def aclose(self) -> None:
        """Let running operations end and close the file; may be repeated."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Do what `aclose` does, where nothing can be awaited."""
        if self._owner:
            self._threads.shutdown(wait=True)
            self.sync.close()

    async def __aenter__(self) -> Self:
        """Return the store."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
        await self.aclose()

    remember = offload(ops.memories.remember)
    remember_many = offload(ops.memories.remember_many)
    edit = offload(ops.memories.edit)
    forget = offload(ops.removal.forget)
    forget_many = offload(ops.removal.forget_many)
    nuke = offload(ops.removal.nuke)

    get = offload(ops.listing.get)
    find_id = offload(ops.listing.find_id)
    find_by_content_hash = offload(ops.listing.find_by_content_hash)
    list_recent = offload(ops.listing.list_recent)
    count = offload(ops.listing.count)
    recall = offload(ops.recall.recall)
    recall_pack = offload(ops.packing.recall_pack)
    auto_context_pack = offload(ops.packing.auto_context_pack)
    eval_recall = offload(ops.evaluate.eval_recall)

    link = offload(ops.links.link)
    unlink = offload(ops.links.unlink)
    neighbors = offload(ops.links.neighbors)
    subgraph = offload(ops.links.subgraph)
    find_path = offload(ops.links.find_path)

    find_conflicts = offload(ops.conflicts.find_conflicts)
    supersede = offload(ops.superseding.supersede)
    restore = offload(ops.superseding.restore)

    merge = offload(ops.curation.merge)
    versions = offload(ops.curation.versions)
    list_tags = offload(ops.tags.list_tags)
    rename_tag = offload(ops.tags.rename_tag)
    merge_tags = offload(ops.tags.merge_tags)
    delete_tag = offload(ops.tags.delete_tag)

    trash = offload(ops.trash.trash)
    trash_many = offload(ops.trash.trash_many)
    trash_list = offload(ops.trash.trash_list)
    trash_restore = offload(ops.trash.trash_restore)
    trash_restore_many = offload(ops.trash.trash_restore_many)
    trash_purge = offload(ops.trash.trash_purge)
    trash_purge_expired = offload(ops.trash.trash_purge_expired)

    history = offload(ops.history.history)
    journal = offload(ops.history.journal)
    operation = offload(ops.history.operation)
    state_at = offload(ops.history.state_at)
    get_at = offload(ops.history.get_at)
    prune_journal = offload(ops.retention.prune_journal)
    verify_journal = offload(ops.retention.verify_journal)
    diff = offload(ops.difference.diff)
    undo = offload(ops.undoing.undo)
    undo_last = offload(ops.undoing.undo_last)
    undo_since = offload(ops.undoing.undo_since)
    preview_undo = offload(ops.undoing.preview_undo)
    redo = offload(ops.undoing.redo)

    reembed = offload(ops.reembed.reembed)
    stats = offload(ops.health.stats)
