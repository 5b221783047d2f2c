"""Undo and redo: put back the images from before an operation, through the same door."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

import apsw

from houkai import params
from houkai.errors import Diverged, NotFound
from houkai.handle import Store
from houkai.model import JournalEntry
from houkai.ops.history import resolve_operation
from houkai.ops.superseding import superseders
from houkai.rules import clean
from houkai.storage import chain
from houkai.storage import history as log
from houkai.storage.journal import Tx, batch_of
from houkai.storage.rows import Image, split_link_key

Pair = tuple[str, str, Image | None, Image | None]
_WITH_PREVIOUS: Final = """from change c
  join change p on p.kind = c.kind and p.key = c.key and p.operation = coalesce(
    (select max(operation) from change
     where kind = c.kind and key = c.key and operation < c.operation), c.operation)
  join operation o on o.seq in (p.operation, c.operation)
  where c.operation = ?"""
"""The changes of an operation, each with the one before it of the same row if there is one."""
_STANDING: Final = "o.undone_by is null and o.op not in ('undo', 'redo')"
_WITHIN: Final = """o.undone_by is null and o.at >= :since and o.seq <= :last
  and not exists (select 1 from operation u where u.seq = o.undoes and u.at >= :since
    and (:actor is null or u.actor = :actor))"""
"""Standing since a moment, but for undos of something that is itself to be undone."""


def undo(store: Store, operation: JournalEntry | str | int) -> JournalEntry:
    """Undo one operation as a whole and return the entry of the undo.

    Takes an entry, an operation's number or its id. Raises NotFound, and Diverged when a row
    has changed since; then nothing is changed.
    """

    def work(tx: Tx) -> int:
        return _undo_operation(tx, resolve_operation(store, tx.connection, operation))

    return _entry(store, store.write("undo", work))


def undo_last(
    store: Store, memory_id: params.MemoryId | None = None, actor: params.Actor = None
) -> JournalEntry | None:
    """Undo the newest operation that still stands, of a memory or an actor when given.

    Repeated calls step further back. Return the entry of the undo, None when nothing is left.
    """
    values = clean(undo_last, {"memory_id": memory_id, "actor": actor})

    def work(tx: Tx) -> int | None:
        seq = _newest(store, tx.connection, _STANDING, **values)
        return None if seq is None else _undo_operation(tx, seq)

    seq = store.write("undo", work)
    return None if seq is None else _entry(store, seq)


def undo_since(
    store: Store,
    since: params.DoneSince,
    memory_id: params.MemoryId | None = None,
    actor: params.Actor = None,
) -> list[JournalEntry]:
    """Undo every operation made at or after a moment, of a memory or an actor when given.

    Newest first, each in its own transaction; a redo of any of them brings all back at once.
    Undos made since that moment are taken back too. Return the entries of the undos.
    Raises InputError, Diverged.
    """
    given = {"since": since, "memory_id": memory_id, "actor": actor}
    values = clean(undo_since, given, at=store.now())
    with store.read() as connection:
        last = connection.execute("select coalesce(max(seq), 0) from operation").get
    window = {"since": values.pop("since"), "last": last}
    batch, done = str(uuid.uuid4()), list[JournalEntry]()

    def work(tx: Tx) -> int | None:
        seq = _newest(store, tx.connection, _WITHIN, **values, **window)
        return None if seq is None else _undo_operation(tx, seq)

    while (seq := store.write("undo", work, batch=batch)) is not None:
        done.append(_entry(store, seq))
    return done


def redo(store: Store, operation: JournalEntry | str | int | None = None) -> JournalEntry | None:
    """Undo an undo, the newest that still stands unless another is named.

    Return the entry of the redo, None when nothing was undone. Raises NotFound, Diverged.
    """

    def work(tx: Tx) -> int | None:
        if operation is None:
            seq = _newest(store, tx.connection, "o.undone_by is null and o.op = 'undo'")
        else:
            seq = resolve_operation(store, tx.connection, operation)
            if not _is_undo(tx.connection, seq):
                raise NotFound(f"Operation {seq} is no undo, so there is nothing to redo.")
        return None if seq is None else _undo_operation(tx, seq)

    seq = store.write("redo", work)
    return None if seq is None else _entry(store, seq)


def _entry(store: Store, seq: int) -> JournalEntry:
    with store.read() as connection:
        return next(log.operations(connection, "o.seq = :seq", {"seq": seq}))


def _is_undo(connection: apsw.Connection, seq: int) -> bool:
    return bool(connection.execute("select op = 'undo' from operation where seq = ?", (seq,)).get)


def _newest(
    store: Store,
    connection: apsw.Connection,
    which: str,
    memory_id: str | None = None,
    actor: str | None = None,
    **window: float,
) -> int | None:
    """Return the newest operation that meets a condition, of a memory or an actor if given."""
    parts = [which, "(o.collection is null or o.collection = :collection)"]
    if actor is not None:
        parts.append("o.actor = :actor")
    if memory_id is not None:
        parts.append(f"o.seq in ({log.OPERATIONS_ABOUT})")
    seq: int | None = connection.execute(
        f"""select o.seq from operation o where {" and ".join(parts)}
            and exists (select 1 from change c where c.operation = o.seq)
            order by o.seq desc limit 1""",
        {"collection": store.collection, "actor": actor, "id": memory_id, **window},
    ).get
    return seq


def _undo_operation(tx: Tx, seq: int) -> int:
    """Put back what an operation, and the rest of its batch, replaced."""
    seqs = batch_of(tx.connection, seq)
    tx.op = "redo" if _is_undo(tx.connection, seq) else "undo"
    for one in seqs:
        _refuse_unrecorded(tx.connection, one)
    pairs = _merged([log.changes(tx.connection, one) for one in seqs])
    _refuse_moved(tx, seq, pairs)
    _put_back(tx, seq, pairs)
    tx.undo(seqs)
    return tx.seq


def _put_back(tx: Tx, seq: int, pairs: Sequence[Pair]) -> None:
    """Restore every row's image before. Raises Diverged where one would hang in the air."""
    adrift: list[str] = []
    for kind, key, before, _ in sorted(pairs, key=_safe_order):
        ends = split_link_key(key)[::2] if kind == "link" and before is not None else ()
        if all(tx.get("memory", end) is not None for end in ends):
            tx.put(kind, key, before)
        else:
            adrift.append(f"{kind} {key}")
    adrift += [
        f"memory {key}"
        for kind, key, before, _ in pairs
        if kind == "memory" and before is not None and _is_lost(tx, key)
    ]
    if adrift:
        raise Diverged(
            f"Operation {seq} cannot be undone: what it would bring back hangs on memories that"
            f" are gone or superseded since: {', '.join(adrift[:3])}.",
            adrift,
        )


def _is_lost(tx: Tx, id: str) -> bool:
    """Say whether a memory is superseded by one that is not there, or in a circle."""
    above = superseders(tx.connection, id)
    return bool(above) and (id in above or any(tx.get("memory", one) is None for one in above))


def _merged(groups: Sequence[Sequence[Pair]]) -> list[Pair]:
    """Join the changes of several operations: the first before and the last after of each row."""
    joined: dict[tuple[str, str], Pair] = {}
    for pairs in groups:
        for kind, key, before, after in pairs:
            first = joined.get((kind, key))
            joined[kind, key] = (kind, key, first[2] if first else before, after)
    return list(joined.values())


def _safe_order(pair: Pair) -> int:
    """Sort so that links go before the memories they tie, and come back after them."""
    kind, _, before, _ = pair
    if kind == "link":
        return 0 if before is None else 3
    return 2 if before is None else 1


def _refuse_unrecorded(connection: apsw.Connection, seq: int) -> None:
    """Refuse where the journal holds no image of the rows, before or after the operation."""
    if seq <= chain.anchor(connection).seq:
        raise Diverged(
            f"Operation {seq} cannot be undone: the journal was pruned beyond it.",
            hint="Nothing was changed.",
        )
    purged = connection.execute(
        f"select c.key {_WITH_PREVIOUS} and (c.digest is not null or p.digest is not null) limit 1",
        (seq,),
    ).get
    if purged is not None:
        raise Diverged(
            f"Operation {seq} cannot be undone: {purged} was purged from the trash.",
            hint="Nothing was changed.",
        )
    blind: int | None = connection.execute(
        f"select o.seq {_WITH_PREVIOUS} and o.meta ->> '$.images' = 0 limit 1", (seq,)
    ).get
    if blind is not None:
        raise Diverged(
            f"Operation {blind} was made with the journal off,"
            f" so operation {seq} cannot be undone.",
            hint="Nothing was changed.",
        )


def _refuse_moved(tx: Tx, seq: int, pairs: Sequence[Pair]) -> None:
    moved = [f"{kind} {key}" for kind, key, _, after in pairs if tx.get(kind, key) != after]
    moved += [row for pair in pairs for row in _newcomers(tx.connection, pair, pairs)]
    if not moved:
        return
    undone_by = tx.connection.execute("select undone_by from operation where seq = ?", (seq,)).get
    if undone_by is not None:
        raise Diverged(
            f"Operation {seq} is already undone, by operation {undone_by}.",
            moved,
            hint="Use redo to bring it back.",
        )
    more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
    raise Diverged(
        f"Operation {seq} cannot be undone: changed since then: {', '.join(moved[:3])}{more}.",
        moved,
    )


def _newcomers(connection: apsw.Connection, pair: Pair, pairs: Sequence[Pair]) -> list[str]:
    """Name later rows that hang on a memory which the undo would take away."""
    kind, key, before, _ = pair
    if kind != "memory" or before is not None:
        return []
    own = {(other[0], other[1]) for other in pairs}
    links: list[tuple[Any, ...]] = connection.execute(
        """select s.id || '|' || l.rel || '|' || d.id from link l join memory s on s.pk = l.src
           join memory d on d.pk = l.dst
           where l.src = (select pk from memory where id = ?1)
              or l.dst = (select pk from memory where id = ?1)""",
        (key,),
    ).fetchall()
    hidden = connection.execute("select id from memory where superseded_by = ?", (key,)).fetchall()
    return [f"link {link}" for (link,) in links if ("link", link) not in own] + [
        f"memory {id}" for (id,) in hidden if ("memory", id) not in own
    ]
