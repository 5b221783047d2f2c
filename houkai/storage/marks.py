"""Check and mend the journal's derived marks: until, undone_by, and a memory's last operation."""

from __future__ import annotations

from typing import Any, Final

import apsw

from houkai.storage.chain import anchor
from houkai.storage.journal import FOREVER

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
        "select seq, undoes, batch, undone_by from operation where seq > ? order by seq",
        (anchor(connection).seq,),
    ).fetchall()
    right = _Undone()
    for seq, undoes, batch, _ in rows:
        right.enter(seq, undoes, batch)
    return [
        (seq, right.undone_by.get(seq))
        for seq, _, _, stored in rows
        if right.undone_by.get(seq) != stored
    ]


class _Undone:
    """What the journal says of undoing, played back from its beginning."""

    def __init__(self) -> None:
        self.undone_by: dict[int, int] = {}
        self._felled: dict[int, set[int]] = {}
        self._undoes: dict[int, int] = {}
        self._batches: dict[str, list[int]] = {}
        self._batch_of: dict[int, str] = {}

    def enter(self, seq: int, undoes: int | None, batch: str | None) -> None:
        """Play one operation; those of one batch are undone together."""
        if undoes is not None:
            self._undoes[seq] = undoes
            for target in self._together(undoes):
                self._fall(target, seq)
        if batch is not None:
            self._batches.setdefault(batch, []).append(seq)
            self._batch_of[seq] = batch

    def _together(self, seq: int) -> list[int]:
        batch = self._batch_of.get(seq)
        return [seq] if batch is None else list(self._batches[batch])

    def _fall(self, seq: int, by: int) -> None:
        self._felled.get(self.undone_by.get(seq, 0), set()).discard(seq)
        self.undone_by[seq] = by
        self._felled.setdefault(by, set()).add(seq)
        for other in sorted(self._felled.pop(seq, ())):
            del self.undone_by[other]
            if other in self._undoes:
                for target in self._together(self._undoes[other]):
                    self._fall(target, other)
