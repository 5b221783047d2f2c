"""The one door for changes: every row's image is recorded in the transaction that changes it.

Order is the sequence number, never the clock; `at` rises strictly, so that a moment names one
state. Each operation's hash covers the one before it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import apsw

from houkai import ids
from houkai.clock import Clock
from houkai.storage import migrate
from houkai.storage.known import Known, confirm, recall
from houkai.storage.rows import KINDS, Columns, Image, enter_memory

T = TypeVar("T")

FOREVER: Final = 9_223_372_036_854_775_807
TICK_S: Final = 1e-6
GENESIS: Final = bytes(32)
_compact: Final = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class Act:
    """Who does what: what an operation says of itself before it changes anything."""

    op: str
    actor: str
    collection: str | None = None
    session: str | None = None
    batch: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    images: bool = True
    """False keeps no images: the operation is counted but cannot be undone."""


class Tx:
    """One write transaction of one operation; `put` is the only way to change a row."""

    def __init__(
        self, connection: apsw.Connection, act: Act, clock: Clock, known: Known | None = None
    ) -> None:
        self.connection = connection
        self._known = known or Known()
        self.act = act
        self.op = act.op
        self.meta: dict[str, Any] = dict(act.meta)
        last_seq, last_at, self._last_hash = self._known.head or _last_operation(connection)
        self.at: float = max(clock(), last_at + TICK_S, math.nextafter(last_at, math.inf))
        self.seq: int = last_seq + 1
        self._changes: dict[tuple[str, str], tuple[Image | None, Image | None]] = {}
        self._rows: dict[tuple[str, str], int | None] = {}
        self._undone: list[int] = []
        self._first: set[tuple[str, str]] = set()
        self._noted = False

    def get(self, kind: str, key: str) -> Image | None:
        """Return a row's present image."""
        return KINDS[kind].load(self.connection, key)

    def put(self, kind: str, key: str, after: Image | None) -> bool:
        """Make a row look like `after` (None: gone) and record it; False when it did already."""
        before = self.get(kind, key)
        if before == after:
            return False
        earlier = self._changes.get((kind, key))
        if (
            earlier is None
            and before is not None
            and (self.act.images or self._has_image(kind, key))
        ):
            KINDS[kind].archive(self.connection, key, self.seq)
        row = KINDS[kind].save(self.connection, key, before, after, self.seq)
        self._changes[kind, key] = (earlier[0] if earlier else before, after)
        self._rows[kind, key] = row
        return True

    def _has_image(self, kind: str, key: str) -> bool:
        """Say whether the journal holds what stands, which the past must show then too."""
        return bool(
            self.connection.execute(
                """select after is not null from change where kind = ? and key = ?
                   order by operation desc limit 1""",
                (kind, key),
            ).get
        )

    def add(self, id: str, after: Image, derived: Columns) -> None:
        """Enter a memory whose id was made for it, so that nothing of it can be there or recorded.

        `derived` are the columns that follow from its image, see `rows.derived_columns`.
        """
        key = ("memory", id)
        self._rows[key] = enter_memory(self.connection, id, after, derived, self.seq)
        self._changes[key] = (None, after)
        self._first.add(key)

    def note(self, **meta: Any) -> None:
        """Record this operation with what it says of itself, even if it changes no row."""
        self.meta |= meta
        self._noted = True

    def undo(self, seqs: Sequence[int]) -> None:
        """Record that this operation undoes others; undoing an undo lets its own stand again."""
        self._undone = list(seqs)

    def finish(self) -> int | None:
        """Enter the operation and its changes; None when nothing changed in the end."""
        changes = {key: pair for key, pair in self._changes.items() if pair[0] != pair[1]}
        for kind, key in self._changes.keys() - changes.keys():
            KINDS[kind].unarchive(self.connection, key, self.seq)
        if not changes and not self._undone and not self._noted:
            return None
        encoded = [
            (kind, key, None if after is None else apsw.jsonb_encode(after))
            for (kind, key), (_, after) in changes.items()
        ]
        self._enter_operation(encoded)
        self._end_images(changes.keys() - self._first)
        self._enter_changes(encoded)
        self._mark_undone()
        return self.seq

    def _end_images(self, keys: Iterable[tuple[str, str]]) -> None:
        """Let the images end that stood until now. An update costs FTS5's savepoint, see batch."""
        for key in keys:
            standing = self.connection.execute(
                "select pk from change where kind = ? and key = ? order by operation desc limit 1",
                key,
            ).get
            if standing is not None:
                self.connection.execute(
                    "update change set until = ? where pk = ? and until = ?",
                    (self.seq, standing, FOREVER),
                )

    def _enter_changes(self, encoded: list[tuple[str, str, bytes | None]]) -> None:
        images = self.act.images
        self.connection.executemany(
            """insert into change(operation, kind, key, counterpart, row, after)
               values (?, ?, ?, ?, ?, ?)""",
            [
                (self.seq, kind, key, KINDS[kind].counterpart(key), self._rows[kind, key],
                 after if images else None)
                for kind, key, after in encoded
            ],
        )  # fmt: skip

    def _mark_undone(self) -> None:
        for seq in self._undone:
            _fall(self.connection, seq, self.seq)

    def _enter_operation(self, encoded: list[tuple[str, str, bytes | None]]) -> None:
        if not self.act.images:
            self.meta["images"] = False
            encoded = [(kind, key, None) for kind, key, _ in encoded]
        digests = [(kind, key, image_digest(after)) for kind, key, after in encoded]
        meta = apsw.jsonb_encode(self.meta) if self.meta else None
        act = self.act
        row = (self.seq, ids.new(), self.at, self.op, act.actor, act.session,
               act.collection, act.batch, self._undone[-1] if self._undone else None)  # fmt: skip
        hash = chain(self._last_hash, row, meta, digests)
        self.connection.execute(
            """insert into operation(seq, id, at, op, actor, session, collection, batch, undoes,
                 meta, hash)
               values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)""",
            (*row, meta, hash),
        )
        self._known.head = (self.seq, self.at, hash)


def _last_operation(connection: apsw.Connection) -> tuple[int, float, bytes]:
    found: tuple[int, float, bytes] | None = connection.execute(
        "select seq, at, hash from operation order by seq desc limit 1"
    ).get
    return found or (0, 0.0, GENESIS)


def _fall(connection: apsw.Connection, seq: int, by: int) -> None:
    """Mark an operation undone; what it had undone itself stands again, and so on."""
    falling = [(seq, by)]
    while falling:
        fallen, feller = falling.pop()
        connection.execute("update operation set undone_by = ? where seq = ?", (feller, fallen))
        freed: list[tuple[Any, ...]] = connection.execute(
            "update operation set undone_by = null where undone_by = ? returning seq, undoes",
            (fallen,),
        ).fetchall()
        falling += [
            (target, other)
            for other, undoes in freed
            if undoes is not None
            for target in batch_of(connection, undoes)
            if target < other  # a batch that goes on after it was undone
        ]


def batch_of(connection: apsw.Connection, seq: int) -> list[int]:
    """Return the operations of a batch, oldest first, by any of its numbers."""
    rows: list[tuple[Any, ...]] = connection.execute(
        """select seq from operation where seq = ?1 or batch =
             (select batch from operation where seq = ?1) order by seq""",
        (seq,),
    ).fetchall()
    return [row[0] for row in rows]


def chain(
    previous: bytes,
    row: tuple[Any, ...],
    meta: bytes | None,
    changes: Iterable[tuple[str, str, bytes]],
) -> bytes:
    """Return the SHA-256 of an operation, its changes' digests, and the hash before it."""
    digest = hashlib.sha256(previous)
    digest.update(_compact(row).encode())
    digest.update(meta or b"-")
    for kind, key, image in sorted(changes):
        digest.update(hashlib.sha256(f"{kind}\0{key}\0".encode()).digest())
        digest.update(image)
    return digest.digest()


def image_digest(after: bytes | None) -> bytes:
    """Return the SHA-256 that stands for an image in the chain, so that the image may be erased."""
    return hashlib.sha256(b"-" if after is None else after).digest()


def _known(connection: apsw.Connection) -> Known:
    """Return what is known of the file, once it is known that this houkai may write it."""
    known = recall(connection)
    if not known.writable:
        migrate.refuse_newer(connection)
        known.writable = True
    return known


def recorded(act: Act, clock: Clock, work: Callable[[Tx], T]) -> Callable[[apsw.Connection], T]:
    """Return a job for the writer: `work` inside one journaled operation."""

    def job(connection: apsw.Connection) -> T:
        known = _known(connection)
        tx = Tx(connection, act, clock, known)
        result = work(tx)
        tx.finish()
        confirm(connection, known)
        return result

    return job


def recorded_series(
    act: Act, clock: Clock, work: Callable[[Tx, Sequence[T]], T | None]
) -> Callable[[apsw.Connection], list[T]]:
    """Return a job for the writer: `work` in one journaled operation after another, until None.

    Each call is told what those before it returned. All of them are recorded, or none.
    """

    def job(connection: apsw.Connection) -> list[T]:
        known = _known(connection)
        done: list[T] = []
        while True:
            tx = Tx(connection, act, clock, known)
            result = work(tx, done)
            if result is None:
                confirm(connection, known)
                return done
            tx.finish()
            done.append(result)

    return job
