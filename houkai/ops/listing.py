"""Read memories without ranking them: by id, by content, newest first."""

from __future__ import annotations

import re
from typing import Any, Final, Unpack

import apsw

from houkai import options, params
from houkai import text as words
from houkai.errors import InputError, NotFound
from houkai.handle import Store
from houkai.model import Memory
from houkai.notes import tell
from houkai.rules import clean
from houkai.storage import memories
from houkai.storage.eligible import ANY_COLLECTION, Filter, condition
from houkai.storage.journal import Tx
from houkai.storage.rows import Image, collection_names, collection_pk

NAMED: Final = 20
"""Collections that are named at most where it is told which there are."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def not_found(id: str) -> NotFound:
    """Return the error for an id that no memory of the collection has."""
    return NotFound(f"No memory has the id {id!r}.", hint="`list_recent` shows the ids.")


def tell_of_collections(store: Store, wanted: str) -> None:
    """Say to a door that finds nothing in a collection that it is not there, and which are."""
    if wanted == ANY_COLLECTION:
        return
    with store.read() as connection:
        there = collection_names(connection, NAMED + 1)
        if not there or collection_pk(connection, wanted) is not None:
            return
    names = ", ".join(there[:NAMED]) + (" and more" if len(there) > NAMED else "")
    tell(f"There is no collection {wanted!r} yet; the file has: {names}.")


def same_content(store: Store, connection: apsw.Connection, text: str) -> Memory | None:
    """Return the live memory with the same content, in an open snapshot or transaction."""
    sql, values = condition(store.where())
    found = memories.select(
        connection,
        f"where m.content_hash = :hash and {sql} order by m.created_at limit 1",
        {**values, "hash": words.content_hash(text)},
        store.touches,
    )
    return next(iter(found.values()), None)


def find_by_content_hash(store: Store, text: str) -> Memory | None:
    """Return the live memory whose text is the same but for case and white space."""
    with store.read() as connection:
        return same_content(store, connection, text)


def must_get(store: Store, connection: apsw.Connection, id: str) -> Memory:
    """Return one memory in an open snapshot or transaction. Raises NotFound."""
    memory = memories.by_id(connection, id, store.collection, store.touches)
    if memory is None:
        raise not_found(id)
    return memory


def present(store: Store, tx: Tx, id: str) -> Image:
    """Return the image of a memory of this store's collection. Raises NotFound."""
    image = tx.get("memory", id)
    if image is None or image["collection"] != store.collection:
        raise not_found(id)
    return image


def get(store: Store, memory_id: params.MemoryId) -> Memory | None:
    """Return one memory with all its fields, hidden or not; None when there is none."""
    id = clean(get, {"memory_id": memory_id})["memory_id"]
    with store.read() as connection:
        return memories.by_id(connection, id, store.collection, store.touches)


def find_id(store: Store, prefix: params.MemoryId, *, forgotten: bool = False) -> str:
    """Return the whole id that begins with `prefix`. Raises NotFound, InputError if several do.

    With `forgotten`, ids that only the journal still knows count too.
    """
    values = clean(find_id, {"prefix": prefix, "forgotten": forgotten})
    start, forgotten = values["prefix"].strip(), values["forgotten"]
    with store.read() as connection:
        rows = _ids(connection, start, store.collection, forgotten=forgotten)
        if not rows and _in_trash(connection, start, store.collection):
            hint = "`trash_restore` brings it back."
            raise NotFound(f"The memory with the id {start!r} is in the trash.", hint=hint)
    if not rows:
        raise not_found(start)
    if len(rows) > 1 and rows[0][0] != start:
        raise InputError(
            f"Several memories have ids that begin with {start!r}: "
            + ", ".join(id[: len(start) + 4] for (id,) in rows)
            + ("…" if len(rows) == 3 else "")
            + ".",
            hint="Give more characters.",
        )
    id: str = rows[0][0]
    return id


def _ids(
    connection: apsw.Connection, start: str, collection: str, *, forgotten: bool
) -> list[tuple[Any, ...]]:
    """Return up to three ids that begin with `start`."""
    bounds = (start, start + "\U0010ffff", collection)
    if forgotten:
        return connection.execute(
            """select distinct c.key from change c join operation o on o.seq = c.operation
               where c.kind = 'memory' and c.key >= ? and c.key < ? and o.collection = ?
               order by c.key limit 3""",
            bounds,
        ).fetchall()
    return connection.execute(
        """select id from memory where id >= ? and id < ?
           and +collection = (select pk from collection where name = ?)
           order by id limit 3""",
        bounds,
    ).fetchall()


def _in_trash(connection: apsw.Connection, start: str, collection: str) -> bool:
    """Say whether a memory whose id begins with `start` was put into the trash."""
    row = connection.execute(
        "select 1 from trash where id >= ? and id < ? and collection = ? limit 1",
        (start, start + "\U0010ffff", collection),
    ).get
    return row is not None


def count(store: Store) -> int:
    """Return how many memories the collection holds, hidden ones too."""
    with store.read() as connection:
        number: int = connection.execute(
            "select count(*) from memory where collection = ?",
            (collection_pk(connection, store.collection),),
        ).get
    return number


def list_recent(
    store: Store,
    limit: params.Limit = 20,
    *,
    before: params.Before = None,
    **only: Unpack[options.FilterOptions],
) -> list[Memory]:
    """Return the newest memories first.

    `before` continues a listing after the memory with that id, or before a moment.
    Raises InputError, and NotFound for an id that is gone.
    """
    values = clean(list_recent, {"limit": limit, **only}, at=store.now())
    limit = values.pop("limit")
    where = store.where(**values)
    sql, bound = condition(where)
    with store.read() as connection:
        at, pk = _cursor(connection, before, where)
        found = memories.select(
            connection,
            f"""where {sql} and (:at is null or (m.created_at, m.pk) < (:at, :pk))
                order by m.created_at desc, m.pk desc limit :limit""",
            {**bound, "at": at, "pk": pk, "limit": -1 if limit is None else limit},
            store.touches,
        )
    if not found:
        tell_of_collections(store, where.collection)
    return list(found.values())


def _cursor(connection: apsw.Connection, before: Any, where: Filter) -> tuple[float | None, int]:
    """Return the (created_at, pk) that a listing goes on below; (None, 0) starts it."""
    if isinstance(before, str) and _UUID.fullmatch(before):
        row = connection.execute(
            """select m.created_at, m.pk from memory m join collection c on c.pk = m.collection
               where m.id = ? and ? in (c.name, '*')""",
            (before, where.collection),
        ).get
        if row is None:
            raise not_found(before)
        return row[0], row[1]
    at = clean(list_recent, {"before": before}, at=where.now)["before"]
    return at, -1
