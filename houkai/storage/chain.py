"""Verify the journal's hash chain, and compact the journal without breaking it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import apsw

from houkai.errors import Corrupt
from houkai.storage import fulltext, vectors
from houkai.storage.journal import GENESIS, chain, image_digest


class Anchor(NamedTuple):
    """Where the kept journal begins: the last operation pruned, its moment and its hash."""

    seq: int
    at: float
    hash: bytes


BEGINNING = Anchor(0, 0.0, GENESIS)


def anchor(connection: apsw.Connection) -> Anchor:
    """Return from where on the journal is whole."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select key, value from meta where key glob 'pruned_*'"
    ).fetchall()
    kept = dict(rows)
    if not kept:
        return BEGINNING
    if kept.keys() != {"pruned_seq", "pruned_at", "pruned_hash"}:
        raise Corrupt("The journal is damaged: where it was pruned cannot be read.")
    return Anchor(kept["pruned_seq"], kept["pruned_at"], kept["pruned_hash"])


def first_break(connection: apsw.Connection) -> int | None:
    """Return the first operation that does not follow from what is stored; None if all do.

    What a pruning kept is followed from its record; its cut is named where that does not hold.
    """
    start = anchor(connection)
    if not _base_holds(connection, start):
        return start.seq
    previous = start.hash
    for seq, row, meta, stored, digests in _operations(connection, start.seq):
        if chain(previous, row, meta, digests) != stored:
            return seq
        previous = stored
    return None


def _operations(
    connection: apsw.Connection, after: int
) -> Iterator[tuple[int, tuple[Any, ...], bytes | None, bytes, list[tuple[str, str, bytes]]]]:
    rows = connection.execute(
        """select o.seq, o.id, o.at, o.op, o.actor, o.session, o.collection, o.batch, o.undoes,
             o.meta, o.hash, c.kind, c.key, c.after, c.digest
           from operation o left join change c on c.operation = o.seq
           where o.seq > ? order by o.seq""",
        (after,),
    )
    for seq, group in groupby(rows, key=lambda row: row[0]):
        changes: list[tuple[Any, ...]] = list(group)
        head = changes[0]
        digests = [
            (kind, key, image_digest(image) if erased is None else erased)
            for *_, kind, key, image, erased in changes
            if kind is not None
        ]
        yield int(str(seq)), head[:9], head[9], head[10], digests


def _base_holds(connection: apsw.Connection, start: Anchor) -> bool:
    """Say whether what was kept from before the cut is what the last pruning recorded."""
    if start == BEGINNING:
        return True
    told = connection.execute(
        """select meta ->> '$.before', meta ->> '$.at', meta ->> '$.hash', meta ->> '$.base'
           from operation where op = 'prune' order by seq desc limit 1"""
    ).get
    seen = (start.seq, start.at, start.hash.hex(), base_digest(connection, start.seq))
    return bool(told == seen)


def base_digest(connection: apsw.Connection, until: int) -> str:
    """Return a SHA-256 of the operations and images that are kept from before a cut."""
    digest = hashlib.sha256()
    for *row, meta in connection.execute(
        """select seq, id, at, op, actor, session, collection, batch, undoes, hex(hash), meta
           from operation where seq <= ? order by seq""",
        (until,),
    ):
        digest.update(json.dumps(row).encode() + (meta or b"-"))
    for seq, kind, key, image, erased in connection.execute(
        """select operation, kind, key, after, digest from change where operation <= ?
           order by kind, key""",
        (until,),
    ):
        digest.update(f"{seq}\0{kind}\0{key}\0".encode())
        digest.update(image_digest(image) if erased is None else erased)
    return digest.hexdigest()


def prune(connection: apsw.Connection, cut: int) -> dict[str, Any]:
    """Drop what had been replaced by operation `cut`, and tell what went and what stays.

    The image of each row as of the cut stays, so that every later moment is exact. Vectors go
    with the last text that needs them.
    """
    at, hash = connection.execute("select at, hash from operation where seq = ?", (cut,)).get
    _forget_past(connection, cut)
    images = _forget_changes(connection, cut)
    connection.execute(
        """delete from operation where seq <= ?1
           and not exists (select 1 from change c where c.operation = operation.seq)
           and not exists (select 1 from operation u where u.undoes = operation.seq)""",
        (cut,),
    )
    operations = connection.changes()
    connection.execute(
        """delete from embedding where text_hash not in (select text_hash from memory)
           and text_hash not in (select text_hash from past)
           and text_hash not in (select text_hash from trash)"""
    )
    dropped = connection.changes()
    vectors.tell_others(connection)  # who holds a copy cannot patch it by changes that are gone
    connection.executemany(
        "insert or replace into meta(key, value) values (?, ?)",
        [("pruned_seq", cut), ("pruned_at", at), ("pruned_hash", hash)],
    )
    return {
        "before": cut,
        "at": at,
        "images": images,
        "operations": operations,
        "vectors": dropped,
        "base": base_digest(connection, cut),
        "hash": hash.hex(),
    }


def _forget_changes(connection: apsw.Connection, cut: int) -> int:
    """Drop what had been replaced by a cut or was gone by then; return how much that was."""
    connection.execute("delete from change where until <= ?1", (cut,))
    replaced = connection.changes()
    # What was changed with the journal off has no image either, but may be there still.
    connection.execute(
        """delete from change where operation <= ? and after is null and not exists (
             select 1 from operation where seq = change.operation and meta ->> '$.images' = 0)""",
        (cut,),
    )
    return replaced + connection.changes()


def _forget_past(connection: apsw.Connection, cut: int) -> None:
    """Drop the searchable copies of versions that had been replaced by a cut."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select pk from past where until <= ?", (cut,)
    ).fetchall()
    for (pk,) in rows:
        fulltext.remove(connection, "past_fts", pk)
    connection.execute("delete from past where until <= ?", (cut,))
