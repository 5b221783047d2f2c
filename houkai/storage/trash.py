"""The trash as a journaled kind: what a memory was and what hung on it, until it is purged.

A row of its own rather than a query over the journal, so that it outlives pruning and needs no
reading of what undone undos have made of a removal.
"""

from __future__ import annotations

from typing import Any

import apsw

from houkai import text

Image = dict[str, Any]


def load(connection: apsw.Connection, id: str) -> Image | None:
    """Return the image of a memory in the trash, None when it is not there."""
    row = connection.execute(
        "select collection, deleted_at, actor, body from trash where id = ?", (id,)
    ).get
    if row is None:
        return None
    collection, deleted_at, actor, body = row
    content: Image = apsw.jsonb_decode(body)
    return {"collection": collection, "deleted_at": deleted_at, "actor": actor, **content}


def save(
    connection: apsw.Connection,
    id: str,
    _before: Image | None,
    after: Image | None,
    _operation: int,
) -> None:
    """Put a memory into the trash, or take it out."""
    connection.execute("delete from trash where id = ?", (id,))
    if after is not None:
        content = dict(after)
        head = [content.pop(name) for name in ("collection", "deleted_at", "actor")]
        hash = text.text_hash(after["memory"]["text"])
        connection.execute(
            """insert into trash(id, collection, deleted_at, actor, text_hash, body)
               values (?, ?, ?, ?, ?, ?)""",
            (id, *head, hash, apsw.jsonb_encode(content)),
        )
