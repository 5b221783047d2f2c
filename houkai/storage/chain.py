"""Verify the journal's hash chain, and compact the journal without breaking it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

import apsw

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
    return Anchor(kept["pruned_seq"], kept["pruned_at"], kept["pruned_hash"])


def first_break(connection: apsw.Connection) -> int | None:
    """Return the first operation whose hash does not follow from what is stored; None if all do."""
    start = anchor(connection)
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


def base_digest(connection: apsw.Connection, until: int) -> str:
    """Return a SHA-256 of the images that are kept from before a cut, for the cut's record."""
    digest = hashlib.sha256()
    for kind, key, image in connection.execute(
        """select kind, key, after from change where operation <= ? order by kind, key""", (until,)
    ):
        digest.update(f"{kind}\0{key}\0".encode())
        digest.update(image_digest(image))
    return digest.hexdigest()


def prune(connection: apsw.Connection, cut: int) -> dict[str, Any]:
    """Drop what had been replaced by operation `cut`, and tell what went and what stays.

    The image of each row as of the cut stays, so that every later moment is exact. Vectors go
    with the last text that needs them.
    """
    at, hash = connection.execute("select at, hash from operation where seq = ?", (cut,)).get
    _forget_past(connection, cut)
    connection.execute("delete from change where until <= ?1", (cut,))
    images = connection.changes()
    connection.execute("delete from change where operation <= ? and after is null", (cut,))
    images += connection.changes()
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
    if dropped:
        vectors.tell_others(connection)
    connection.executemany(
        "insert or replace into meta(key, value) values (?, ?)",
        [("pruned_seq", cut), ("pruned_at", at), ("pruned_hash", hash)],
    )
    return {
        "before": cut,
        "images": images,
        "operations": operations,
        "vectors": dropped,
        "base": base_digest(connection, cut),
        "hash": hash.hex(),
    }


def _forget_past(connection: apsw.Connection, cut: int) -> None:
    """Drop the searchable copies of versions that had been replaced by a cut."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select pk from past where until <= ?", (cut,)
    ).fetchall()
    for (pk,) in rows:
        fulltext.remove(connection, "past_fts", pk)
    connection.execute("delete from past where until <= ?", (cut,))
