"""Fold memories into one another, and read what they said before."""

from __future__ import annotations

from typing import Any, Final

from houkai import params
from houkai.errors import Busy, InputError
from houkai.handle import Store
from houkai.model import Memory, Version
from houkai.ops import listing, meaning, removal
from houkai.ops.drafts import RememberItem
from houkai.ops.superseding import PIN_CARRIED, mark, settle_pin, show, superseders
from houkai.rules import clean
from houkai.storage import history as log
from houkai.storage.journal import Tx
from houkai.storage.rows import Image, link_key, trim
from houkai.vocabulary import TRUST_LEVELS

TRIES: Final = 20
"""Times that a merge begins anew because somebody edits one of its memories meanwhile."""
_SAID: Final = ("text", "tags", "importance", "source", "type")
"""The fields of which a version tells."""


def merge(
    store: Store,
    target_id: params.MemoryId,
    other_id: params.MemoryId,
    *,
    separator: params.Separator = "\n\n",
) -> Memory:
    """Fold one memory into another and return it: the first keeps its id, the second is deleted.

    Texts are joined; tags, entities and links of both stay, the greater importance, a pin of
    either, and the worse trust. What pointed to the second points to the first, and it is hidden
    only if both were. Undone as one. Raises NotFound, InputError.
    """
    given = {"target_id": target_id, "other_id": other_id, "separator": separator}
    target, other, joint = clean(merge, given).values()
    check_pair(target, other)
    for _ in range(TRIES):
        merged = _merge_as_read(store, target, other, joint)
        if merged is not None:
            return merged
    raise Busy("The two memories are being edited faster than they can be merged.")


def check_pair(target: str, other: str) -> None:
    """Refuse to merge a memory with itself. Raises InputError."""
    if target == other:
        raise InputError("target_id and other_id must differ: a memory cannot merge with itself.")


def _merge_as_read(store: Store, target: str, other: str, joint: str) -> Memory | None:
    """Embed the joined text and merge; None when a text has changed meanwhile."""
    with store.read() as connection:
        texts = [listing.must_get(store, connection, id).text for id in (target, other)]
    text: str = clean(RememberItem, {"text": joint.join(texts)})["text"]
    encoded = meaning.embed(store, [text])

    def work(tx: Tx) -> Memory | None:
        images = [listing.present(store, tx, id) for id in (target, other)]
        if [image["text"] for image in images] != texts:
            return None
        meaning.keep(store, tx.connection, encoded.values())
        _fold(tx, target, other, {**_united(*images), "text": text})
        return listing.must_get(store, tx.connection, target)

    return store.write("merge", work)


def _united(one: Image, other: Image) -> dict[str, Any]:
    """Return the fields that a merged memory takes from both. Raises InputError beyond a limit."""
    names = {field: [*one.get(field, ()), *other.get(field, ())] for field in ("tags", "entities")}
    pins = {image.get("pinned", 0) for image in (one, other)}
    trusts = [image.get("trust", TRUST_LEVELS[0]) for image in (one, other)]
    return {
        **clean(RememberItem, names),
        "importance": max(one["importance"], other["importance"]),
        "trust": max(trusts, key=TRUST_LEVELS.index),
        "pinned": 1 if 1 in pins else PIN_CARRIED if PIN_CARRIED in pins else 0,
    }


def _fold(tx: Tx, target: str, other: str, united: Image) -> None:
    """Let a memory take the place of another, which goes: its links, and all marks by and on it."""
    absorbed = tx.get("memory", other) or {}
    above, at = absorbed.get("superseded_by"), absorbed.get("superseded_at")
    followed = other in superseders(tx.connection, target)
    if followed or above is None:
        show(tx, target)
    links = removal.links_of(tx.connection, other)
    hidden = removal.hidden_by(tx.connection, other)
    removal.remove(tx, other)
    tx.put("memory", target, trim({**(tx.get("memory", target) or {}), **united}))
    marks = {(other, "supersedes", old) for old in hidden} | {(above, "supersedes", other)}
    for src, rel, dst, created_at in links:
        ends = [target if end == other else end for end in (src, dst)]
        key = link_key(ends[0], rel, ends[1])
        plain = (src, rel, dst) not in marks and ends[0] != ends[1]
        if plain and tx.get("link", key) is None:
            tx.put("link", key, {"created_at": created_at})
    for old, since in hidden.items():
        mark(tx, old, target, since)
    if followed and above is not None and at is not None:
        mark(tx, target, above, at)
    settle_pin(tx, target)


def versions(store: Store, memory_id: params.MemoryId) -> list[Version]:
    """Return what a memory said before each change of it, oldest first; `get` tells what it says.

    Raises InputError.
    """
    id = clean(versions, {"memory_id": memory_id})["memory_id"]
    with store.read() as connection:
        entries = log.entries_about(connection, id)
    return [
        Version(
            ts=entry.ts,
            text=entry.before["text"],
            tags=list(entry.before.get("tags", ())),
            importance=entry.before["importance"],
            source=entry.before.get("source"),
            type=entry.before["type"],
            trust=entry.before.get("trust", TRUST_LEVELS[0]),
            operation=entry.operation,
        )
        for entry in entries
        if entry.kind == "memory"
        and entry.before is not None
        and entry.after is not None
        and entry.before["collection"] == store.collection
        and not set(_SAID).isdisjoint(entry.changed_fields())
    ]
