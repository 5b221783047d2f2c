"""The trash: put memories aside, bring them back with what hung on them, drop them for good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from houkai import params
from houkai.errors import InputError
from houkai.handle import Store
from houkai.model import Link, Memory, TrashEntry
from houkai.ops import listing, meaning, removal, superseding
from houkai.rules import clean
from houkai.storage import erasure, memories, vectors
from houkai.storage.journal import Tx
from houkai.storage.rows import Image, link_key
from houkai.storage.trash import load
from houkai.storage.vectors import Encoded
from houkai.text import text_hash

DAY_S: Final = 86_400.0


def trash(store: Store, memory_id: params.MemoryId) -> bool:
    """Put a memory into the trash, from where it can be restored; say whether it was there.

    It is gone for every other operation, with its links, and what it superseded is shown again.
    """
    id = clean(trash, {"memory_id": memory_id})["memory_id"]
    return bool(_trash(store, [id]))


def trash_many(store: Store, memory_ids: params.MemoryIds) -> list[str]:
    """Put memories into the trash in one operation, so that one undo brings all back.

    Each can still be restored alone. Return the ids of those that were there.
    """
    return _trash(store, clean(trash_many, {"memory_ids": memory_ids})["memory_ids"])


def _trash(store: Store, ids: Sequence[str]) -> list[str]:
    def work(tx: Tx) -> list[str]:
        present = list(memories.numbers(tx.connection, ids, store.collection))
        # What ties them to each other is kept with each, before the first of them goes.
        kept = {id: _whole(store, tx, id) for id in present}
        for id in present:
            tx.put("trash", id, kept[id])
            removal.remove(tx, id)
        return present

    return store.write("trash", work)


def _whole(store: Store, tx: Tx, id: str) -> Image:
    """Return what the trash keeps of a memory: its image, and all that hangs on it."""
    return {
        "collection": store.collection,
        "deleted_at": tx.at,
        "actor": store.actor,
        "memory": tx.get("memory", id),
        "links": [list(link) for link in removal.links_of(tx.connection, id)],
        "hidden": removal.hidden_by(tx.connection, id),
    }


def trash_list(store: Store) -> list[TrashEntry]:
    """Return what is in the trash, oldest first."""
    with store.read() as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            "select id from trash where collection = ? order by deleted_at, id",
            (store.collection,),
        ).fetchall()
        kept = [(id, load(connection, id)) for (id,) in rows]
    return [_entry(id, image) for id, image in kept if image is not None]


def _entry(id: str, kept: Image) -> TrashEntry:
    links = [Link(dst, rel) for src, rel, dst, _ in kept["links"] if src == id]
    memory = memories.from_image(id, kept["memory"], links)
    return TrashEntry(id, kept["deleted_at"], kept["actor"], memory.to_dict(), kept["collection"])


def trash_restore(store: Store, memory_id: params.MemoryId) -> Memory | None:
    """Bring a memory back from the trash with its links, as far as both ends live; return it.

    Return None when it is not in the trash, or lives already.
    """
    id = clean(trash_restore, {"memory_id": memory_id})["memory_id"]
    return next(iter(_restore(store, [id])), None)


def trash_restore_many(store: Store, memory_ids: params.MemoryIds) -> list[str]:
    """Bring memories back from the trash in one operation, so that one undo puts all back there.

    Their links come with them, as far as both ends live then. Return the ids of those that came.
    """
    ids = clean(trash_restore_many, {"memory_ids": memory_ids})["memory_ids"]
    return [memory.id for memory in _restore(store, ids)]


def _restore(store: Store, ids: Sequence[str]) -> list[Memory]:
    encoded = _missing_vectors(store, ids)

    def work(tx: Tx) -> list[Memory]:
        back = {id: kept for id in ids if (kept := _waiting(store, tx, id)) is not None}
        if back:
            meaning.keep(store, tx.connection, encoded)
        for id, kept in back.items():
            tx.put("trash", id, None)
            tx.put("memory", id, _unmarked(kept["memory"]))
        # Only once all of them live, or what ties the first to the last would be lost.
        for id, kept in back.items():
            _tie(tx, id, kept)
        return [listing.must_get(store, tx.connection, id) for id in back]

    return store.write("trash_restore", work)


def _waiting(store: Store, tx: Tx, id: str) -> Image | None:
    """Return what the trash keeps of a memory that may come back."""
    kept = tx.get("trash", id)
    if kept is None or kept["collection"] != store.collection or tx.get("memory", id):
        return None
    return kept


def _missing_vectors(store: Store, ids: Sequence[str]) -> list[Encoded]:
    """Embed the texts in the trash whose vectors are gone, as after a change of the model."""
    with store.read() as connection:
        model = vectors.current_model(connection)
        found = [kept["memory"]["text"] for id in ids if (kept := load(connection, id))]
        if model is None or not found:
            return []
        lost = [text for text in found if not vectors.has(connection, text_hash(text), model.pk)]
    return list(meaning.embed(store, lost).values()) if lost else []


def _unmarked(image: Image) -> Image:
    """Return a memory's image as if nothing superseded it."""
    hidden = ("superseded_by", "superseded_at")
    return {name: value for name, value in image.items() if name not in hidden}


def _tie(tx: Tx, id: str, kept: Image) -> None:
    """Tie a memory that is back to what is there: plain links first, marks after."""
    marks = [(old, id, at) for old, at in kept["hidden"].items()]
    if (above := kept["memory"].get("superseded_by")) is not None:
        marks.append((id, above, kept["memory"]["superseded_at"]))
    marked = {(new, "supersedes", old) for old, new, _ in marks}
    for src, rel, dst, at in kept["links"]:
        ends_live = all(tx.get("memory", end) is not None for end in (src, dst))
        if ends_live and (src, rel, dst) not in marked:
            tx.put("link", link_key(src, rel, dst), {"created_at": at})
    for old, new, at in marks:
        superseding.mark(tx, old, new, at)
    superseding.settle_pin(tx, id)


def trash_purge(
    store: Store,
    memory_id: params.MemoryId | None = None,
    older_than_days: params.Days = None,
) -> int:
    """Drop what is in the trash for good: one memory, what is older, or all; return how many.

    This cannot be undone: what the memories said goes from the journal too. Raises InputError.
    """
    given = {"memory_id": memory_id, "older_than_days": older_than_days}
    id, days = clean(trash_purge, given).values()
    if id is not None and days is not None:
        raise InputError("Give memory_id or older_than_days, not both.")
    return _purge(store, id, None if days is None else store.now() - days * DAY_S)


def trash_purge_expired(
    store: Store, ttl_days: params.TtlDays, *, now: params.CreatedAt = None
) -> int:
    """Drop what has been in the trash for longer than some days, for good; return how many.

    Zero days or fewer drop nothing, so that a missing setting never empties the trash.
    """
    values = clean(trash_purge_expired, {"ttl_days": ttl_days, "now": now}, at=store.now())
    if values["ttl_days"] <= 0:
        return 0
    moment = store.now() if values["now"] is None else values["now"]
    return _purge(store, None, moment - values["ttl_days"] * DAY_S)


def _purge(store: Store, id: str | None, before: float | None) -> int:
    def work(tx: Tx) -> int:
        rows: list[tuple[Any, ...]] = tx.connection.execute(
            """select id from trash where collection = :collection
               and (:id is null or id = :id) and (:before is null or deleted_at < :before)""",
            {"collection": store.collection, "id": id, "before": before},
        ).fetchall()
        ids = [gone for (gone,) in rows]
        for gone in ids:
            tx.put("trash", gone, None)
        erasure.erase(tx.connection, ids)
        return len(ids)

    return store.write("trash_purge", work)
