"""Remember and edit: the operations that write what a memory says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final, NamedTuple

from houkai import ids as new_ids
from houkai import params
from houkai.conflict_rules import ConflictFn
from houkai.errors import InputError, shown
from houkai.handle import Store
from houkai.model import Conflict, Memory
from houkai.ops import drafts, listing, meaning
from houkai.ops.drafts import RememberItem
from houkai.ops.policies import Guard
from houkai.rules import Doc, clean
from houkai.storage import memories
from houkai.storage.journal import Tx
from houkai.storage.rows import Columns, Image, derived_columns
from houkai.storage.vectors import Encoded
from houkai.vocabulary import ConflictPolicy


class _Keep:
    """The default of an `edit` parameter for which None means something."""

    def __repr__(self) -> str:
        return "<unchanged>"


KEEP: Final[Any] = _Keep()


class Entered(NamedTuple):
    """A memory that an item became, or the one that said the same before."""

    memory: Memory
    new: bool


def remember(
    store: Store,
    text: params.Text,
    type: params.Type = "semantic",
    tags: params.Tags = (),
    importance: params.Importance = None,
    source: params.Source = None,
    *,
    polarity: params.Sentiment = 0,
    expires_at: params.ExpiresAt = None,
    ttl_seconds: params.Ttl = None,
    pinned: params.Pinned = False,
    trust: params.TrustLevel = "trusted",
    on_conflict: params.OnConflict = None,
    contradiction_fn: ConflictFn | None = None,
    idempotent: params.Idempotent = False,
    valid_from: params.ValidFrom = None,
    valid_until: params.ValidUntil = None,
    created_at: params.CreatedAt = None,
    author: params.Author = None,
    position: params.Position = None,
    entities: params.Entities = (),
) -> Memory:
    """Store one memory and return it.

    Use it for facts, decisions, preferences and events worth knowing in a later session.
    Raises InputError, ModelMissing, ModelMismatch, and ConflictError under on_conflict="raise".
    """
    given = {name: value for name, value in locals().items() if name != "store"}
    how = {name: given.pop(name) for name in ("on_conflict", "contradiction_fn", "idempotent")}
    return enter(store, [given], op="remember", **how)[0].memory


def remember_many(
    store: Store,
    items: Annotated[
        Iterable[str | RememberItem | Mapping[str, Any]],
        Doc("Texts, or objects with the fields of `remember`."),
    ],
    *,
    batch_size: params.BatchSize = 128,
    on_conflict: params.OnConflict = None,
    contradiction_fn: ConflictFn | None = None,
    idempotent: params.Idempotent = False,
) -> list[Memory]:
    """Store many memories, embedded and committed in batches, and return them in order.

    Every item is checked before the first is written. Undone as one. Where items conflict with
    each other, on_conflict="supersede" lets the earlier ones win. Raises InputError.
    """
    given = {name: value for name, value in locals().items() if name not in ("store", "items")}
    return [memory for memory, _ in enter(store, items, **given)]


def enter(
    store: Store,
    items: Iterable[str | RememberItem | Mapping[str, Any]],
    *,
    op: str = "remember_many",
    batch_size: int = 128,
    on_conflict: ConflictPolicy | None = None,
    contradiction_fn: ConflictFn | None = None,
    idempotent: bool = False,
) -> list[Entered]:
    """Store items and tell for each whether it is new. Raises InputError, ConflictError."""
    given = {"batch_size": batch_size, "on_conflict": on_conflict, "idempotent": idempotent}
    options = clean(remember_many, given)
    size, once = options["batch_size"], options["idempotent"]
    guard = Guard(store, options["on_conflict"], contradiction_fn)
    if op == "remember_many":
        guard.refuse_raise()
    if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
        raise InputError(f"items must be a list of texts or items, got {shown(items)}.")
    now = store.now()
    checked = drafts.drafts(items, now, numbered=op == "remember_many")
    batch = new_ids.new() if len(checked) > size else None
    entered = [
        one
        for start in range(0, len(checked), size)
        for one in _remember_batch(
            store, checked[start : start + size], op, once, now, guard, batch
        )
    ]
    guard.tell()
    return entered


def _remember_batch(
    store: Store,
    checked: list[dict[str, Any]],
    op: str,
    idempotent: bool,
    now: float,
    guard: Guard,
    batch: str | None = None,
) -> list[Entered]:
    images: dict[str, Image] = {
        new_ids.new(): drafts.image(values, store.collection, _importance(store, values), now)
        for values in checked
    }
    encoded = meaning.embed(store, _texts_to_embed(store, images.values(), idempotent), fresh=True)
    look = guard.look(images, encoded)
    derived = {id: derived_columns(image) for id, image in images.items()}

    def work(tx: Tx) -> tuple[list[Entered], list[Conflict]]:
        meaning.keep(store, tx.connection, encoded.values())
        entered = [
            _enter(store, tx, id, image, derived[id], idempotent) for id, image in images.items()
        ]
        new = [one.memory.id for one in entered if one.new]
        told = guard.settle(tx, look, new)
        return [_as_settled(store, tx, one, guard) for one in entered], told

    entered, told = store.write(op, work, batch=batch)
    guard.written.update(one.memory.id for one in entered if one.new)
    guard.told += told
    store.touches.add([one.memory.id for one in entered if not one.new], now)
    return entered


def _as_settled(store: Store, tx: Tx, one: Entered, guard: Guard) -> Entered:
    """Return a memory with what superseding has made of it."""
    if guard.policy != "supersede":
        return one
    return Entered(listing.must_get(store, tx.connection, one.memory.id), one.new)


def _importance(store: Store, values: Mapping[str, Any]) -> float:
    given = values.get("importance")
    if given is not None:
        return float(given)
    judge = store.settings.importance_fn
    if judge is None:
        return 0.5
    judged = judge(values["text"], values.get("type", "semantic"), list(values.get("tags", ())))
    checked = clean(RememberItem, {"importance": judged})["importance"]
    return 0.5 if checked is None else float(checked)


def _texts_to_embed(store: Store, images: Iterable[Image], idempotent: bool) -> list[str]:
    if not idempotent:
        return [image["text"] for image in images]
    with store.read() as connection:
        return [
            image["text"]
            for image in images
            if listing.same_content(store, connection, image["text"]) is None
        ]


def _enter(
    store: Store, tx: Tx, id: str, image: Image, derived: Columns, idempotent: bool
) -> Entered:
    if idempotent:
        found = listing.same_content(store, tx.connection, image["text"])
        if found is not None:
            return Entered(found, new=False)
    placed = {**image, **_next_position(tx, image)}
    tx.add(id, placed, derived)
    return Entered(memories.from_image(id, placed, hash=derived["content_hash"]), new=True)


def _next_position(tx: Tx, image: Image) -> dict[str, int]:
    if image.get("source") is None or image.get("position") is not None:
        return {}
    last = tx.connection.execute(
        """select max(position) from memory
           where collection = (select pk from collection where name = ?) and source = ?""",
        (image["collection"], image["source"]),
    ).get
    return {"position": 0 if last is None else last + 1}


def edit(
    store: Store,
    memory_id: params.MemoryId,
    *,
    text: params.Text | None = None,
    type: params.Type | None = None,
    tags: params.Tags | None = None,
    importance: params.Importance = None,
    polarity: params.Sentiment | None = None,
    expires_at: params.ExpiresAt = None,
    source: params.Source = KEEP,
    pinned: params.Pinned | None = None,
    trust: params.TrustLevel | None = None,
    valid_from: params.ValidFrom = None,
    valid_until: params.ValidUntil = None,
    created_at: params.CreatedAt = None,
    author: params.Author = KEEP,
    position: params.Position = KEEP,
    entities: params.Entities | None = None,
) -> Memory:
    """Change fields of a memory in place; what is left out stays as it is.

    None clears source, author and position; 0 clears a time; an empty list clears names.
    Raises NotFound, InputError.
    """
    given = {
        name: value
        for name, value in locals().items()
        if name not in ("store", "memory_id")
        and value is not (KEEP if name in ("source", "author", "position") else None)
    }
    id = clean(edit, {"memory_id": memory_id})["memory_id"]
    values = clean(RememberItem, given, at=store.now())
    encoded: dict[bytes, Encoded] = (
        meaning.embed(store, [values["text"].strip()]) if "text" in values else {}
    )

    def work(tx: Tx) -> Memory:
        before = listing.present(store, tx, id)
        meaning.keep(store, tx.connection, encoded.values())
        tx.put("memory", id, drafts.changed_image(before, values))
        return listing.must_get(store, tx.connection, id)

    return store.write("edit", work)
