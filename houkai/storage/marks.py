"""Check and mend the journal's derived marks: until, undone_by, and a memory's last operation."""

from __future__ import annotations

from typing import Any, Final

import apsw

from houkai.storage.chain import anchor
from houkai.storage.journal import FOREVER
from houkai.storage.rows import KINDS

_NEXT: Final = f"""coalesce((select min(n.operation) from change n where n.kind = c.kind
  and n.key = c.key and n.operation > c.operation), {FOREVER})"""
_LAST: Final = """(select max(c.operation) from change c
  where c.kind = 'memory' and c.key = m.id)"""


def wrong_ends(connection: apsw.Connection) -> list[str]:
    """Name the images whose end is not the operation that replaced them."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"select c.operation, c.kind, c.key from change c where c.until <> {_NEXT}"
    ).fetchall()
    return [f"{kind} {key} in operation {seq}" for seq, kind, key in rows]


def mend_ends(connection: apsw.Connection) -> None:
    """Set the end of every image anew."""
    connection.execute(f"update change as c set until = {_NEXT} where c.until <> {_NEXT}")


def wrong_origins(connection: apsw.Connection) -> list[str]:
    """Name the memories that do not know which operation changed them last."""
    rows: list[tuple[Any, ...]] = connection.execute(
        f"select m.id from memory m where m.operation <> {_LAST}"
    ).fetchall()
    return [f"memory {id}" for (id,) in rows]


def mend_origins(connection: apsw.Connection) -> None:
    """Set the last operation of every memory anew."""
    connection.execute(f"update memory as m set operation = {_LAST} where m.operation <> {_LAST}")


def wrong_counterparts(connection: apsw.Connection) -> list[str]:
    """Name the changes that do not know which other memory they concern."""
    return [f"{key} in operation {seq}" for _, _, key, seq in _miscounted(connection)]


def mend_counterparts(connection: apsw.Connection) -> None:
    """Set the other memory of every change anew."""
    connection.executemany(
        "update change set counterpart = ? where pk = ?",
        [(right, pk) for pk, right, _, _ in _miscounted(connection)],
    )


def _miscounted(connection: apsw.Connection) -> list[tuple[int, str | None, str, int]]:
    """Return (change, right counterpart, key, operation) where another is stored."""
    rows: list[tuple[Any, ...]] = connection.execute(
        """select pk, kind, key, operation, counterpart from change
           where kind = 'link' or counterpart is not null"""
    ).fetchall()
    return [
        (pk, KINDS[kind].counterpart(key), key, seq)
        for pk, kind, key, seq, stored in rows
        if KINDS[kind].counterpart(key) != stored
    ]


def wrong_undos(connection: apsw.Connection) -> list[str]:
    """Name the operations whose mark of being undone is wrong."""
    return [f"operation {seq}" for seq, _ in _differing(connection)]


def mend_undos(connection: apsw.Connection) -> None:
    """Set every mark of being undone anew."""
    connection.executemany(
        "update operation set undone_by = ? where seq = ?",
        [(by, seq) for seq, by in _differing(connection)],
    )


def _differing(connection: apsw.Connection) -> list[tuple[int, int | None]]:
    """Return (operation, right mark) where the stored mark is another."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select seq, undoes, batch, undone_by from operation where seq > ? order by seq desc",
        (anchor(connection).seq,),
    ).fetchall()
    batches: dict[str, list[int]] = {}
    batch_of: dict[int, str] = {}
    for seq, _, batch, _ in rows:
        if batch is not None:
            batches.setdefault(batch, []).append(seq)
            batch_of[seq] = batch
    right: dict[int, int] = {}
    for seq, undoes, _, _ in rows:
        # Newest first: whether an operation stands is known by the time it is reached.
        if undoes is None or seq in right:
            continue
        together = batches[batch_of[undoes]] if undoes in batch_of else [undoes]
        right |= {target: seq for target in together if target < seq}
    return [(seq, right.get(seq)) for seq, *_, stored in rows if right.get(seq) != stored]
