"""`MemoryStore`: a memory file as an object; its methods are the operations."""

from __future__ import annotations

import contextlib
import os
from types import TracebackType
from typing import Any, Self

from houkai import clock as clocks
from houkai import ops, params, settings
from houkai.clock import Clock
from houkai.conflict_rules import DUPLICATE_SIMILARITY, ConflictFn
from houkai.embed.spec import as_embedder
from houkai.errors import InputError, StorageError, shown
from houkai.handle import ImportanceFn, Reranker, Settings, Store
from houkai.model import HybridWeights
from houkai.options import check_weights
from houkai.rules import clean
from houkai.storage import indexing
from houkai.storage.database import Database
from houkai.storage.eligible import ANY_COLLECTION
from houkai.storage.touches import Touches
from houkai.vocabulary import ConflictPolicy, Durability


class MemoryStore(Store):
    """Open a memory file, made when it is not there, and operate on one collection of it.

    `path` defaults to the file every door shares (HOUKAI_DB, config file, ~/.houkai/memory.db);
    ":memory:" keeps everything in RAM. `embedder` is a spec such as "ollama:nomic-embed-text", an
    Embedder, or any callable from a list of texts to vectors; it defaults to HOUKAI_EMBEDDER, the
    config file, the bundled model. Threads may share a store; close it, or use `with`, to leave
    just one file.
    Raises Foreign, Corrupt, SchemaTooNew, ReadOnly; the file is then left as it was.
    """

    _lag: int | None = None
    """Where the search table lagged behind when that was last looked at."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        collection: str | None = None,
        *,
        embedder: Any = None,
        actor: str = "lib",
        conflict_policy: ConflictPolicy = "ignore",
        conflict_threshold: float = DUPLICATE_SIMILARITY,
        contradiction_fn: ConflictFn | None = None,
        hybrid_weights: HybridWeights | None = None,
        reranker: Reranker | None = None,
        importance_fn: ImportanceFn | None = None,
        journal_enabled: bool = True,
        durability: Durability = "full",
        clock: Clock = clocks.now,
    ) -> None:
        where = settings.load(_file_name(path), collection)
        options = clean(
            _options,
            {
                "collection": where.collection.value,
                "actor": actor,
                "conflict_policy": conflict_policy,
                "conflict_threshold": conflict_threshold,
                "journal_enabled": journal_enabled,
                "durability": durability,
            },
        )
        _check_one(options["collection"])
        _check_callables(
            contradiction_fn=contradiction_fn, reranker=reranker, importance_fn=importance_fn
        )
        weights = HybridWeights() if hybrid_weights is None else hybrid_weights
        weights = check_weights(weights, "hybrid_weights")
        model = as_embedder(where.embedder.value if embedder is None else embedder)
        database = Database(where.db.value, durability=durability)
        super().__init__(
            database,
            model,
            options["collection"],
            options["actor"],
            Settings(
                hybrid_weights=weights,
                reranker=reranker,
                importance_fn=importance_fn,
                contradiction_fn=contradiction_fn,
                conflict_policy=conflict_policy,
                conflict_threshold=options["conflict_threshold"],
                journal_enabled=journal_enabled,
                clock=clock,
            ),
            Touches(database.settle_soon),
        )
        self._owner = True
        self.db.when_quiet(self.touches.flush, indexing.catch_up, pressing=[indexing.keep_up])

    def as_actor(self, name: str, session: str | None = None) -> Self:
        """Return a view of this store whose changes are recorded under another actor.

        The view shares the open file; leaving or closing it does not close the store.
        """
        given = clean(_options, {"actor": name, "session": session})
        view = super().as_actor(given["actor"], given["session"])
        view._owner = False
        return view

    def close(self) -> None:
        """Write what waits and close the file, leaving nothing beside it; may be repeated."""
        if not self._owner:
            return
        if not self.db.closed:
            # What is put off is a hint or derived; losing it costs nobody a memory.
            with contextlib.suppress(StorageError):
                if self.touches:
                    self.db.settle()
                while self._lags():
                    self.db.settle()
        self.db.close()

    def _lags(self) -> bool:
        """Say whether this process has put off what it can still make good, and it goes on."""
        if not self.db.wrote:
            return False
        with self.read() as connection:
            first = indexing.deferred(connection)
        lags, self._lag = first is not None and first != self._lag, first
        return lags

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the store."""
        self.close()

    remember = ops.memories.remember
    remember_many = ops.memories.remember_many
    edit = ops.memories.edit
    forget = ops.removal.forget
    forget_many = ops.removal.forget_many
    nuke = ops.removal.nuke

    get = ops.listing.get
    find_id = ops.listing.find_id
    find_by_content_hash = ops.listing.find_by_content_hash
    list_recent = ops.listing.list_recent
    count = ops.listing.count
    recall = ops.recall.recall
    recall_pack = ops.packing.recall_pack
    auto_context_pack = ops.packing.auto_context_pack
    eval_recall = ops.evaluate.eval_recall

    link = ops.links.link
    unlink = ops.links.unlink
    neighbors = ops.links.neighbors
    subgraph = ops.links.subgraph
    find_path = ops.links.find_path

    find_conflicts = ops.conflicts.find_conflicts
    supersede = ops.superseding.supersede
    restore = ops.superseding.restore

    merge = ops.curation.merge
    versions = ops.curation.versions
    list_tags = ops.tags.list_tags
    rename_tag = ops.tags.rename_tag
    merge_tags = ops.tags.merge_tags
    delete_tag = ops.tags.delete_tag

    trash = ops.trash.trash
    trash_many = ops.trash.trash_many
    trash_list = ops.trash.trash_list
    trash_restore = ops.trash.trash_restore
    trash_restore_many = ops.trash.trash_restore_many
    trash_purge = ops.trash.trash_purge
    trash_purge_expired = ops.trash.trash_purge_expired

    history = ops.history.history
    journal = ops.history.journal
    operation = ops.history.operation
    state_at = ops.history.state_at
    get_at = ops.history.get_at
    prune_journal = ops.retention.prune_journal
    verify_journal = ops.retention.verify_journal
    diff = ops.difference.diff
    undo = ops.undoing.undo
    undo_last = ops.undoing.undo_last
    undo_since = ops.undoing.undo_since
    preview_undo = ops.undoing.preview_undo
    redo = ops.undoing.redo

    reembed = ops.reembed.reembed
    stats = ops.health.stats


def _options(
    collection: params.CollectionName,
    actor: params.ActorName,
    conflict_policy: ConflictPolicy,
    conflict_threshold: params.ConflictThreshold,
    journal_enabled: bool,
    durability: Durability,
    session: params.Session,
) -> None:
    """Carry the rules of what a store is opened with."""


def _check_one(collection: str) -> None:
    if collection == ANY_COLLECTION:
        raise InputError(
            "A store works in one collection.",
            hint='"*" looks in all of them as an option of recall and of lists.',
        )


def _check_callables(**given: object) -> None:
    for name, value in given.items():
        if value is not None and not callable(value):
            raise InputError(f"{name} must be a function, got {shown(value)}.")


def _file_name(path: str | os.PathLike[str] | None) -> str | None:
    if path is None:
        return None
    name = os.fspath(path)
    if not isinstance(name, str) or not name or "\0" in name:
        raise InputError(f"path must name a file, got {shown(path)}.")
    return name
