"""Forget: the operations that take memories out, with everything that hangs on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from houkai import params
from houkai.handle import Store
from houkai.rules import clean
from houkai.storage import memories
from houkai.storage.journal import Tx
from houkai.storage.rows import collection_pk, link_key


def forget(store: Store, memory_id: params.MemoryId) -> bool:
    """Delete a memory with its links; undo brings both back. Return whether it was there."""

    id = clean(forget, {"memory_id": memory_id})["memory_id"]
    return bool(_forget(store, [id]))


def forget_many(store: Store, memory_ids: params.MemoryIds) -> list[str]:
    """Delete memories with their links in one operation, so that one undo brings all back.

    Return the ids of those that were there.
    """
    return _forget(store, clean(forget_many, {"memory_ids": memory_ids})["memory_ids"])


def _forget(store: Store, ids: Sequence[str]) -> list[str]:
    def work(tx: Tx) -> list[str]:
        present = memories.numbers(tx.connection, ids, store.collection)
        for id in present:
            remove(tx, id)
        return list(present)

    return store.write("forget", work)


def remove(tx: Tx, id: str) -> None:
    """Take a memory out inside an operation: its links, the marks it left on others, the row."""
    for src, rel, dst, _ in links_of(tx.connection, id):
        tx.put("link", link_key(src, rel, dst), None)
    for other in hidden_by(tx.connection, id):
        image = dict(tx.get("memory", other) or {})
        image.pop("superseded_by", None)
        image.pop("superseded_at", None)
        tx.put("memory", other, image)
    tx.put("memory", id, None)


def links_of(connection: apsw.Connection, id: str) -> list[tuple[Any, ...]]:
    """Return (source, relation, target, created_at) of every link from or to a memory."""
    return connection.execute(
        """select s.id, l.rel, d.id, l.created_at from link l join memory s on s.pk = l.src
           join memory d on d.pk = l.dst
           where l.src = (select pk from memory where id = ?1)
              or l.dst = (select pk from memory where id = ?1)
           order by l.created_at, l.rel""",
        (id,),
    ).fetchall()


def hidden_by(connection: apsw.Connection, id: str) -> dict[str, float]:
    """Return when a memory superseded others, by their ids."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select id, superseded_at from memory where superseded_by = ?", (id,)
    ).fetchall()
    return dict(rows)


def nuke(store: Store) -> int:
    """Delete every memory of the collection, which can be undone; return how many."""

    def work(tx: Tx) -> int:
        ids: list[tuple[Any, ...]] = tx.connection.execute(
            "select id from memory where collection = ?",
            (collection_pk(tx.connection, store.collection),),
        ).fetchall()
        for (id,) in ids:
            remove(tx, id)
        return len(ids)

    return store.write("nuke", work)
