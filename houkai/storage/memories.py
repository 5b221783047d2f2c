"""Read memories as records: the select that every listing shares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import apsw

from houkai import text
from houkai.model import Link, Memory
from houkai.storage.rows import Image
from houkai.storage.touches import Touches

RECORD: Final = """m.id, m.text, m.type, m.importance, m.polarity, m.source, m.position, m.author,
  m.trust, m.pinned, m.created_at, m.expires_at, m.valid_from, m.valid_until, m.superseded_by,
  m.superseded_at, m.content_hash,
  (select name from collection where pk = m.collection),
  (select json_group_array(name order by ordinal) from tag where memory = m.pk),
  (select json_group_array(name order by ordinal) from entity where memory = m.pk),
  (select json_group_array(json_array(d.id, l.rel) order by l.created_at, l.rel)
   from link l join memory d on d.pk = l.dst where l.src = m.pk),
  t.count, t.last_at"""
"""The columns of a record, for `from memory m left join touch t on t.id = m.id`."""


def record(row: Sequence[Any], touches: Touches | None = None) -> Memory:
    """Return the memory of a row selected with RECORD, with accesses not written yet."""
    (id, body, type, importance, polarity, source, position, author, trust, pinned, created_at,
     expires_at, valid_from, valid_until, superseded_by, superseded_at, content_hash, collection,
     tags, entities, links, count, last_at) = row  # fmt: skip
    waiting = touches.pending(id) if touches is not None else None
    if waiting is not None:
        count, last_at = (count or 0) + waiting[0], max(last_at or 0.0, waiting[1])
    return Memory(
        id=id, text=body, type=type, importance=importance, polarity=polarity, source=source,
        position=position, author=author, trust=trust, pinned=bool(pinned), created_at=created_at,
        expires_at=expires_at, valid_from=valid_from, valid_until=valid_until,
        superseded_by=superseded_by, superseded_at=superseded_at, content_hash=content_hash,
        collection=collection,
        tags=[] if tags == "[]" else json.loads(tags),
        entities=[] if entities == "[]" else json.loads(entities),
        links=[] if links == "[]" else [Link(to, rel) for to, rel in json.loads(links)],
        access_count=count or 0, last_accessed=last_at,
    )  # fmt: skip


def by_pks(
    connection: apsw.Connection, pks: Sequence[int], touches: Touches | None
) -> dict[int, Memory]:
    """Return memories by their file-local numbers."""
    rows = connection.execute(
        f"""select m.pk, {RECORD} from memory m left join touch t on t.id = m.id
            where m.pk in (select value from json_each(?))""",
        (json.dumps(list(pks)),),
    )
    return {row[0]: record(row[1:], touches) for row in rows}


def by_id(
    connection: apsw.Connection, id: str, collection: str, touches: Touches | None
) -> Memory | None:
    """Return one memory of a collection by its whole id."""
    row = connection.execute(
        f"""select {RECORD} from memory m left join touch t on t.id = m.id
            where m.id = ? and m.collection = (select pk from collection where name = ?)""",
        (id, collection),
    ).get
    return record(row, touches) if row else None


def from_image(id: str, image: Image, links: Iterable[Link] = ()) -> Memory:
    """Return the memory that an image of the journal shows."""
    values: Mapping[str, Any] = image
    return Memory(
        id=id,
        **{**values, "pinned": bool(values.get("pinned", 0))},
        links=list(links),
        content_hash=text.content_hash(image["text"]),
    )
