"""Forget: the operations that take memories out, with everything that hangs on them."""

from __future__ import annotations

from typing import Any

from houkai import params
from houkai.handle import Store
from houkai.rules import clean
from houkai.storage.journal import Tx
from houkai.storage.rows import collection_pk, link_key


def forget(store: Store, memory_id: params.MemoryId) -> bool:
    """Delete a memory with its links; undo brings both back. Return whether it was there."""

    id = clean(forget, {"memory_id": memory_id})["memory_id"]

    def work(tx: Tx) -> bool:
        image = tx.get("memory", id)
        if image is None or image["collection"] != store.collection:
            return False
        remove(tx, id)
        return True

    return store.write("forget", work)


def remove(tx: Tx, id: str) -> None:
    """Take a memory out inside an operation: its links, the marks it left on others, the row."""
    links: list[tuple[Any, ...]] = tx.connection.execute(
        """select s.id, l.rel, d.id from link l join memory s on s.pk = l.src
           join memory d on d.pk = l.dst
           where l.src = (select pk from memory where id = ?1)
              or l.dst = (select pk from memory where id = ?1)""",
        (id,),
    ).fetchall()
    for src, rel, dst in links:
        tx.put("link", link_key(src, rel, dst), None)
    hidden: list[tuple[Any, ...]] = tx.connection.execute(
        "select id from memory where superseded_by = ?", (id,)
    ).fetchall()
    for (other,) in hidden:
        image = dict(tx.get("memory", other) or {})
        image.pop("superseded_by", None)
        image.pop("superseded_at", None)
        tx.put("memory", other, image)
    tx.put("memory", id, None)


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
