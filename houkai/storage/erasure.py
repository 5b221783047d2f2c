"""Erase what memories said from every place that remembers it, and leave the chain verifiable."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import apsw

from houkai.storage import fulltext, vectors
from houkai.storage.journal import image_digest


def erase(connection: apsw.Connection, ids: Iterable[str]) -> None:
    """Drop the images, past versions, access counts and vectors of memories that were purged.

    A digest takes the place of each image in the journal. Of a memory that lives again, only what
    the trash held is dropped.
    """
    hashes: set[bytes] = set()
    for id in ids:
        _erase_images(connection, "trash", id)
        if not connection.execute("select exists (select 1 from memory where id = ?)", (id,)).get:
            _erase_images(connection, "memory", id)
            hashes |= _drop_past(connection, id)
            connection.execute("delete from touch where id = ?", (id,))
    _drop_vectors(connection, hashes)


def _erase_images(connection: apsw.Connection, kind: str, key: str) -> None:
    rows: list[tuple[Any, ...]] = connection.execute(
        "select pk, after from change where kind = ? and key = ? and after is not null", (kind, key)
    ).fetchall()
    connection.executemany(
        "update change set digest = ?, after = null where pk = ?",
        [(image_digest(after), pk) for pk, after in rows],
    )


def _drop_past(connection: apsw.Connection, id: str) -> set[bytes]:
    """Drop the versions a memory had, and return the hashes of their texts."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select pk, text_hash from past where id = ?", (id,)
    ).fetchall()
    for pk, _ in rows:
        fulltext.remove(connection, "past_fts", pk)
        connection.execute("delete from past where pk = ?", (pk,))
    return {hash for _, hash in rows}


def _drop_vectors(connection: apsw.Connection, hashes: Iterable[bytes]) -> None:
    """Drop the vectors of those texts that nothing says any more."""
    connection.execute(
        """with gone as (select unhex(value) as hash from json_each(?))
           delete from embedding where text_hash in (select hash from gone)
           and text_hash not in (select text_hash from memory where text_hash in gone)
           and text_hash not in (select text_hash from past where text_hash in gone)
           and text_hash not in (select text_hash from trash where text_hash in gone)""",
        (json.dumps([hash.hex() for hash in hashes]),),
    )
    if connection.changes():
        vectors.tell_others(connection)
