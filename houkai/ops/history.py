"""Ask what happened and what was known: history, the journal, past states."""

from __future__ import annotations

from typing import Any, Final

import apsw

from houkai import clock, limits, params
from houkai.errors import InputError, NotFound, shown
from houkai.handle import Store
from houkai.model import JournalEntry, Link, Memory
from houkai.rules import AsText, clean
from houkai.storage import chain
from houkai.storage import history as log
from houkai.storage.journal import FOREVER
from houkai.storage.memories import from_image
from houkai.storage.rows import Image, split_link_key

CALL_S: Final = 1.0
"""How long before a call's own moment a caller may have looked at the clock for it."""


def history(store: Store, memory_id: params.MemoryId) -> list[JournalEntry]:
    """Return every recorded change that concerns a memory, oldest first."""
    id = clean(history, {"memory_id": memory_id})["memory_id"]
    with store.read() as connection:
        entries = log.entries_about(connection, id)
    return [entry for entry in entries if entry.scope in (None, store.collection)]


def journal(
    store: Store,
    limit: params.Limit = 20,
    *,
    op: params.OperationName = None,
    actor: params.Actor = None,
    memory_id: params.MemoryId | None = None,
    session: params.Session = None,
    since: params.DoneSince | None = None,
    until: params.DoneUntil = None,
) -> list[JournalEntry]:
    """Return the newest operations first, one entry each."""
    given = {name: value for name, value in locals().items() if name != "store"}
    values = clean(journal, given, at=store.now())
    parts = ["(o.collection is null or o.collection = :collection)"]
    parts += [
        f"o.{name} = :{name}" for name in ("op", "actor", "session") if values[name] is not None
    ]
    parts += ["o.at >= :since"] if values["since"] is not None else []
    parts += ["o.at <= :until"] if values["until"] is not None else []
    if values["memory_id"] is not None:
        parts.append(f"o.seq in ({log.OPERATIONS_ABOUT})")
    sql = " and ".join(parts) + " order by o.seq desc limit :limit"
    values["limit"] = -1 if values["limit"] is None else values["limit"]
    with store.read() as connection:
        bound = {**values, "id": values["memory_id"], "collection": store.collection}
        return list(log.operations(connection, sql, bound))


def operation(store: Store, ref: params.OperationRef) -> list[JournalEntry]:
    """Return what one operation changed, an entry a row. Raises NotFound, InputError."""
    named = clean(operation, {"ref": ref})["ref"]
    with store.read() as connection:
        return log.entries_of(connection, resolve_operation(store, connection, named))


def resolve_operation(
    store: Store, connection: apsw.Connection, ref: JournalEntry | str | int
) -> int:
    """Return the number of an operation of this store's collection or of the whole file.

    Takes an entry, a number, or the beginning of an id. Raises NotFound, InputError.
    """
    if isinstance(ref, JournalEntry):
        ref = ref.operation_id
    if isinstance(ref, int) and not isinstance(ref, bool):
        numbered = abs(ref) < FOREVER
        low = high = str(ref) if numbered else shown(ref)
    else:
        low = str(AsText(4 * limits.NAME_CHARS, "id").clean("operation", ref)).strip()
        high = low + "\U0010ffff"
        numbered = low.isascii() and low.isdigit() and len(low) < 8
    found: list[tuple[Any, ...]] = connection.execute(
        """select seq from operation where (seq = :seq or id >= :low and id < :high)
           and (collection is null or collection = :collection) limit 2""",
        {
            "seq": int(low) if numbered else None,
            "low": None if numbered else low,
            "high": high,
            "collection": store.collection,
        },
    ).fetchall()
    if len(found) != 1:
        many = "Several operations have" if found else "No operation here has"
        raise NotFound(f"{many} the number or id {low!r}.", hint="`journal` lists what was done.")
    seq: int = found[0][0]
    return seq


def known_by(connection: apsw.Connection, moment: float, now: float) -> int:
    """Return the last operation that was done at a moment; now it is the last of all.

    A clock that was set back leaves operations ahead of it: now, give or take the time a call
    takes, they count as done. Raises InputError for a moment that the journal no longer keeps.
    """
    if now - CALL_S <= moment <= now and log.last_at(connection) > now:
        return FOREVER - 1
    kept = chain.anchor(connection)
    if moment < kept.at:
        raise InputError(
            f"The journal was pruned: history is exact from {clock.iso(kept.at)} on.",
            hint="Ask for a later moment.",
        )
    return log.seq_at(connection, moment)


def state_at(store: Store, timestamp: params.AsOf) -> list[Memory]:
    """Return all memories as the store knew them at a moment, oldest first.

    Superseded and expired ones are included with their fields, forgotten ones are not.
    """
    now = store.now()
    moment = clean(state_at, {"timestamp": timestamp}, at=now)["timestamp"]
    with store.read() as connection:
        seq = known_by(connection, moment, now)
        links: dict[str, list[Link]] = {}
        images: dict[str, Image] = {}
        for kind, key, image in log.state(connection, seq):
            if kind == "link":
                src, rel, dst = split_link_key(key)
                links.setdefault(src, []).append(Link(dst, rel))  # type: ignore[arg-type]
            elif image.get("collection", store.collection) == store.collection:
                images[key] = image
    known = [from_image(id, image, links.get(id, ())) for id, image in images.items()]
    return sorted(known, key=lambda memory: memory.created_at)


def get_at(store: Store, memory_id: params.MemoryId, timestamp: params.AsOf) -> Memory | None:
    """Return one memory as the store knew it at a moment, None if it did not."""
    now = store.now()
    given = {"memory_id": memory_id, "timestamp": timestamp}
    id, moment = clean(get_at, given, at=now).values()
    with store.read() as connection:
        found = as_known(connection, known_by(connection, moment, now), id)
    return found if found is not None and found.collection == store.collection else None


def as_known(connection: apsw.Connection, seq: int, id: str) -> Memory | None:
    """Return a memory as it was once operation `seq` was done, in an open snapshot."""
    image = log.image_at(connection, seq, "memory", id)
    return None if image is None else from_image(id, image, _links_at(connection, seq, id))


def _links_at(connection: apsw.Connection, seq: int, id: str) -> list[Link]:
    rows = connection.execute(
        """select key from change where kind = 'link' and key >= ?1 || '|' and key < ?1 || '}'
           and operation <= ?2 and until > ?2 and after is not null order by operation, pk""",
        (id, seq),
    )
    return [Link(dst, rel) for _, rel, dst in (split_link_key(key) for (key,) in rows)]  # type: ignore[arg-type]
