"""Keep the journal from growing for ever: forget how old states came about, not the state."""

from __future__ import annotations

from typing import Any

from houkai import params
from houkai.errors import InputError
from houkai.handle import Store
from houkai.rules import clean
from houkai.storage import chain
from houkai.storage import history as log
from houkai.storage.journal import Tx, recorded


def prune_journal(
    store: Store,
    *,
    before: params.PruneBefore = None,
    keep_last: params.KeepLast = None,
    dry_run: params.DryRun = False,
) -> dict[str, Any]:
    """Drop recorded images from before a moment, or all but the last operations.

    The whole file is concerned, not one collection. Memories stay as they are; what was undone
    or replaced before the cut can no longer be undone, and history is exact from the cut on. The
    pruning itself is recorded. Returns what went and from when on history is exact.
    """
    values = clean(
        prune_journal,
        {"before": before, "keep_last": keep_last, "dry_run": dry_run},
        at=store.now(),
    )
    if (values["before"] is None) == (values["keep_last"] is None):
        raise InputError("Give before or keep_last, one of them.")

    def work(tx: Tx) -> dict[str, Any]:
        cut = _cut(tx, values)
        if cut <= chain.anchor(tx.connection).seq:
            return {"before": cut, "images": 0, "operations": 0, "vectors": 0}
        told = chain.prune(tx.connection, cut)
        tx.note(**told)
        return told

    job = recorded(store.act("prune"), store.settings.clock, work)
    told = (store.db.rehearse if values["dry_run"] else store.db.write)(job)
    with store.read() as connection:
        exact_from = chain.anchor(connection).at
    return {**told, "exact_from": exact_from or None, "dry_run": values["dry_run"]}


def _cut(tx: Tx, values: dict[str, Any]) -> int:
    if values["before"] is not None:
        return log.seq_at(tx.connection, values["before"])
    return max(0, tx.seq - 1 - int(values["keep_last"]))


def verify_journal(store: Store) -> int | None:
    """Return the first operation whose hash does not match what is stored; None when all do."""
    with store.read() as connection:
        return chain.first_break(connection)
