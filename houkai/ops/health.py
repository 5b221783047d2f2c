"""Tell how the store is doing: what it holds, and whether all of it agrees."""

from __future__ import annotations

from typing import Any

from houkai.handle import Store
from houkai.storage import vectors


def stats(store: Store) -> dict[str, Any]:
    """Return counts, the file's path and size, and the model of its vectors."""
    with store.read() as connection:
        scope = "(select pk from collection where name = ?)"
        name = (store.collection,)
        rows: list[tuple[Any, ...]] = connection.execute(
            f"select type, count(*) from memory where collection = {scope} group by type", name
        ).fetchall()
        by_type = dict(rows)
        model = vectors.current_model(connection)
        links, operations, collections = connection.execute(
            """select (select count(*) from link), (select count(*) from operation),
                      (select count(*) from collection)"""
        ).get
        unembedded = connection.execute(
            """select count(*) from memory m where not exists (select 1 from embedding e
               where e.text_hash = m.text_hash
                 and e.model = (select value from meta where key = 'model'))"""
        ).get
        pages, size = connection.pragma("page_count"), connection.pragma("page_size")
    return {
        "count": sum(by_type.values()),
        "path": store.db.name,
        "collection": store.collection,
        "by_type": by_type,
        "links": links,
        "operations": operations,
        "collections": collections,
        "bytes": pages * size,
        "model": model.name if model else None,
        "unembedded": unembedded,
    }
