"""What an undo does: put back the images from before an operation, or refuse to.

An undo takes back its operation as a whole, with the rest of its batch, and never a later change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import apsw

from houkai.errors import Diverged
from houkai.ops.superseding import superseders
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
NOTHING_CHANGED: Final = "Nothing was changed; other operations can be undone by their numbers."


class Plan(NamedTuple):
    """The operation to undo, all of its batch, and (kind, key, before, after) of their rows."""

    seq: int
    seqs: list[int]
    pairs: list[Pair]


def plan(connection: apsw.Connection, seq: int) -> Plan:
    """Return what undoing an operation means: the rest of its batch, and each row's images."""
    seqs = batch_of(connection, seq)
    return Plan(seq, seqs, _merged([log.changes(connection, one) for one in seqs]))


def carry_out(tx: Tx, planned: Plan) -> int:
    """Put every row back inside an operation; return its number. Raises Diverged."""
    tx.op = "redo" if is_undo(tx.connection, planned.seq) else "undo"
    for one in planned.seqs:
        _refuse_unrecorded(tx.connection, one)
    _refuse_moved(tx, planned.seq, planned.pairs)
    _put_back(tx, planned.seq, planned.pairs)
    tx.undo(planned.seqs)
    return tx.seq


def is_undo(connection: apsw.Connection, seq: int) -> bool:
    """Say whether an operation is an undo."""
    return bool(connection.execute("select op = 'undo' from operation where seq = ?", (seq,)).get)


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
            hint=NOTHING_CHANGED,
        )
    purged = connection.execute(
        f"select c.key {_WITH_PREVIOUS} and (c.digest is not null or p.digest is not null) limit 1",
        (seq,),
    ).get
    if purged is not None:
        raise Diverged(
            f"Operation {seq} cannot be undone: {purged} was purged from the trash.",
            hint=NOTHING_CHANGED,
        )
    blind: int | None = connection.execute(
        f"select o.seq {_WITH_PREVIOUS} and o.meta ->> '$.images' = 0 limit 1", (seq,)
    ).get
    if blind is not None:
        raise Diverged(
            f"Operation {blind} was made with the journal off,"
            f" so operation {seq} cannot be undone.",
            hint=NOTHING_CHANGED,
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
