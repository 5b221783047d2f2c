"""A copy in RAM of the sign sketches, kept current by the journal's sequence number.

Derived from the file and thrown away at will: it only decides which vectors are scored exactly.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

_SKETCHES: Final = """select m.pk, m.collection, e.sketch from memory m
  join embedding e on e.text_hash = m.text_hash
  where e.model = (select value from meta where key = 'model')"""
_RELOAD: Final = 2_000
"""Changed memories beyond which a fresh copy is cheaper than patching."""

_State = tuple[int, int]


class Resident:
    """The sketches of every window: its memory's number, its collection, its bits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at: _State | None = None
        self.pk: NDArray[np.int64] = np.empty(0, np.int64)
        self.collection: NDArray[np.int64] = np.empty(0, np.int64)
        self.bits: NDArray[np.uint8] = np.empty((0, 0), np.uint8)

    def nearest(
        self, connection: apsw.Connection, sketch: bytes, collection: int | None, limit: int
    ) -> NDArray[np.int64]:
        """Return the numbers of the memories with the nearest sketches, nearest first.

        The snapshot of `connection` decides what is seen.
        """
        with self._lock:
            self._refresh(connection)
            pk, inside, bits = self.pk, self.collection, self.bits
        if not len(pk):
            return pk
        wanted = np.frombuffer(sketch, np.uint8)
        if collection is not None:
            mask = inside == collection
            pk, bits = pk[mask], bits[mask]
        distance = _hamming(bits, wanted)
        if limit < len(distance):
            best = np.argpartition(distance, limit)[:limit]
            order = best[np.argsort(distance[best], kind="stable")]
        else:
            order = np.argsort(distance, kind="stable")
        return np.fromiter(dict.fromkeys(pk[order].tolist()), np.int64)

    def _refresh(self, connection: apsw.Connection) -> None:
        state: _State = connection.execute(
            """select (select coalesce(max(seq), 0) from operation),
                      (select value from meta where key = 'vector_epoch')"""
        ).get
        if state == self._at:
            return
        changed = None
        if self._at is not None and state[1] == self._at[1] and state[0] > self._at[0]:
            changed = connection.execute(
                """select distinct row from change
                   where kind = 'memory' and operation > ? limit ?""",
                (self._at[0], _RELOAD + 1),
            ).fetchall()
        if changed is None or len(changed) > _RELOAD:
            self._set(connection.execute(_SKETCHES).fetchall())
        else:
            self._patch(connection, np.array([pk for (pk,) in changed], np.int64))
        self._at = state

    def _patch(self, connection: apsw.Connection, changed: NDArray[np.int64]) -> None:
        rows = connection.execute(
            f"{_SKETCHES} and m.pk in (select value from carray(?))", (apsw.carray(changed),)
        ).fetchall()
        stay = ~np.isin(self.pk, changed)
        old = (self.pk[stay], self.collection[stay], self.bits[stay])
        self._set(rows)
        if not len(old[0]):
            return
        if not rows:
            self.pk, self.collection, self.bits = old
            return
        self.pk = np.concatenate([old[0], self.pk])
        self.collection = np.concatenate([old[1], self.collection])
        self.bits = np.concatenate([old[2], self.bits])

    def _set(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.pk = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        self.collection = np.fromiter((row[1] for row in rows), np.int64, len(rows))
        packed = np.frombuffer(b"".join(row[2] for row in rows), np.uint8)
        self.bits = packed.reshape(len(rows), -1) if rows else np.empty((0, 0), np.uint8)


def _hamming(bits: NDArray[np.uint8], wanted: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return how many bits differ, by 64-bit words where the width allows."""
    if bits.shape[1] % 8 == 0:
        bits, wanted = bits.view(np.uint64), wanted.view(np.uint64)
    count: NDArray[np.int64] = np.bitwise_count(bits ^ wanted).sum(axis=1, dtype=np.int64)
    return count
