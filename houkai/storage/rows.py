"""Load and save each journaled kind as an image: a plain dict without its absent fields.

Only the journal's door calls `save`, so that nothing changes unrecorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import apsw

from houkai import text as words
from houkai.storage import vectors

Image = dict[str, Any]

MEMORY_FIELDS: Final = (
    "text", "type", "importance", "polarity", "source", "position", "author", "trust", "pinned",
    "created_at", "expires_at", "valid_from", "valid_until", "superseded_by", "superseded_at",
)  # fmt: skip
_ABSENT: Final[dict[str, Any]] = {"polarity": 0, "trust": "trusted", "pinned": 0}
"""What a missing key means; part of the format, so it never changes."""


@dataclass(frozen=True)
class Kind:
    """How the rows of one journaled kind are read and written, by their public key."""

    load: Callable[[apsw.Connection, str], Image | None]
    save: Callable[[apsw.Connection, str, Image | None, int], int | None]
    """Write the image for an operation and return the row's number in this file."""
    archive: Callable[[apsw.Connection, str, int], None] = lambda _c, _k, _u: None
    """Keep the present version findable as of earlier moments, before an operation replaces it."""
    unarchive: Callable[[apsw.Connection, str, int], None] = lambda _c, _k, _u: None
    """Drop what `archive` kept, when the operation left the row as it was."""
    counterpart: Callable[[str], str | None] = lambda _: None
    """The other memory that a row concerns, by the row's key."""


def collection_pk(connection: apsw.Connection, name: str) -> int | None:
    """Return the number of a collection, None when nothing was ever stored in it."""
    pk: int | None = connection.execute("select pk from collection where name = ?", (name,)).get
    return pk


def _ensure_collection(connection: apsw.Connection, name: str, at: float) -> int:
    connection.execute(
        "insert into collection(name, created_at) values (?, ?) on conflict do nothing", (name, at)
    )
    pk: int = connection.execute("select pk from collection where name = ?", (name,)).get
    return pk


def load_memory(connection: apsw.Connection, id: str) -> Image | None:
    """Return the image of a memory with its tags and entities, None when it is not there."""
    row = connection.execute(
        """select c.name, m.text, m.type, m.importance, m.polarity, m.source, m.position, m.author,
             m.trust, m.pinned, m.created_at, m.expires_at, m.valid_from, m.valid_until,
             m.superseded_by, m.superseded_at,
             (select json_group_array(name order by ordinal) from tag where memory = m.pk),
             (select json_group_array(name order by ordinal) from entity where memory = m.pk)
           from memory m join collection c on c.pk = m.collection where m.id = ?""",
        (id,),
    ).get
    if row is None:
        return None
    collection, *values, tags, entities = row
    image = {"collection": collection, **dict(zip(MEMORY_FIELDS, values, strict=True))}
    image |= {"tags": json.loads(tags), "entities": json.loads(entities)}
    return trim(image)


def trim(image: Mapping[str, Any]) -> Image:
    """Return an image without the fields that are absent or stand at their format default."""
    return {
        key: value
        for key, value in image.items()
        if value is not None and value != [] and value != _ABSENT.get(key)
    }


def save_memory(
    connection: apsw.Connection, id: str, image: Image | None, operation: int
) -> int | None:
    """Write a memory with its tags, entities, index words and sketches; None deletes it."""
    old = connection.execute("select pk, collection, text_hash from memory where id = ?", (id,)).get
    if image is None:
        if old is not None:
            vectors.unindex(connection, old[0], old[2])
            connection.execute("delete from memory where pk = ?", (old[0],))
        return old[0] if old else None
    collection = _ensure_collection(connection, image["collection"], image["created_at"])
    hash = words.text_hash(image["text"])
    pk = _upsert(connection, id, collection, hash, image, operation)
    for table, names in (("tag", image.get("tags")), ("entity", image.get("entities"))):
        _save_names(connection, table, pk, names or [], new=old is None)
    if old is not None and (old[1], old[2]) != (collection, hash):
        vectors.unindex(connection, pk, old[2])
    if old is None or (old[1], old[2]) != (collection, hash):
        vectors.index(connection, pk, collection, hash)
    return pk


def _upsert(
    connection: apsw.Connection,
    id: str,
    collection: int,
    hash: bytes,
    image: Image,
    operation: int,
) -> int:
    values = {name: image.get(name, _ABSENT.get(name)) for name in MEMORY_FIELDS}
    values["pinned"] = int(bool(values["pinned"]))
    names = words.index_names(image.get("tags", ()), image.get("entities", ()), image.get("author"))
    pk: int = connection.execute(
        """insert into memory(id, collection, text_hash, content_hash, words, names, dates, text,
             type, importance, polarity, source, position, author, trust, pinned, created_at,
             expires_at, valid_from, valid_until, superseded_by, superseded_at, operation)
           values (:id, :collection, :text_hash, :content_hash, :words, :names, :dates, :text,
             :type, :importance, :polarity, :source, :position, :author, :trust, :pinned,
             :created_at, :expires_at, :valid_from, :valid_until, :superseded_by, :superseded_at,
             :operation)
           on conflict(id) do update set collection = excluded.collection,
             text_hash = excluded.text_hash, content_hash = excluded.content_hash,
             words = excluded.words, names = excluded.names, dates = excluded.dates,
             text = excluded.text, type = excluded.type, importance = excluded.importance,
             polarity = excluded.polarity, source = excluded.source,
             position = excluded.position, author = excluded.author, trust = excluded.trust,
             pinned = excluded.pinned, created_at = excluded.created_at,
             expires_at = excluded.expires_at, valid_from = excluded.valid_from,
             valid_until = excluded.valid_until, superseded_by = excluded.superseded_by,
             superseded_at = excluded.superseded_at, operation = excluded.operation
           returning pk""",
        {
            "id": id,
            "operation": operation,
            "collection": collection,
            "text_hash": hash,
            "content_hash": words.content_hash(image["text"]),
            "words": words.index_words(image["text"]),
            "names": names,
            "dates": words.index_dates(image["created_at"]),
            **values,
        },
    ).get
    return pk


def archive_memory(connection: apsw.Connection, id: str, until: int) -> None:
    """Copy the present version of a memory to the past, as replaced by operation `until`."""
    connection.execute(
        """insert into past(id, operation, until, collection, type, text, text_hash, importance,
             polarity, source, position, author, trust, created_at, expires_at, valid_from,
             valid_until, superseded_by, tags, words, names, dates)
           select id, operation, ?, collection, type, text, text_hash, importance,
             polarity, source, position, author, trust, created_at, expires_at, valid_from,
             valid_until, superseded_by,
             (select json_group_array(name) from tag where memory = pk), words, names, dates
           from memory where id = ?""",
        (until, id),
    )


def unarchive_memory(connection: apsw.Connection, id: str, until: int) -> None:
    """Take back such a copy, and the mark of the operation that came to nothing."""
    connection.execute(
        """update memory set operation =
             (select p.operation from past p where p.id = memory.id and p.until = ?1)
           where id = ?2 and exists (select 1 from past p where p.id = ?2 and p.until = ?1)""",
        (until, id),
    )
    connection.execute("delete from past where id = ? and until = ?", (id, until))


def _save_names(
    connection: apsw.Connection, table: str, pk: int, names: list[str], *, new: bool
) -> None:
    if not new:
        connection.execute(f"delete from {table} where memory = ?", (pk,))
    if names:
        connection.executemany(
            f"insert into {table}(memory, name, ordinal) values (?, ?, ?)",
            [(pk, name, ordinal) for ordinal, name in enumerate(names)],
        )


def link_key(src: str, rel: str, dst: str) -> str:
    """Return the journal's key of a link."""
    return f"{src}|{rel}|{dst}"


def split_link_key(key: str) -> tuple[str, str, str]:
    """Return (src, rel, dst) of a link's key; ids hold no bar."""
    src, rel, dst = key.split("|")
    return src, rel, dst


def load_link(connection: apsw.Connection, key: str) -> Image | None:
    """Return the image of a link, None when it is not there."""
    src, rel, dst = split_link_key(key)
    at = connection.execute(
        """select l.created_at from link l join memory s on s.pk = l.src
           join memory d on d.pk = l.dst where s.id = ? and l.rel = ? and d.id = ?""",
        (src, rel, dst),
    ).get
    return None if at is None else {"created_at": at}


def save_link(connection: apsw.Connection, key: str, image: Image | None, _operation: int) -> None:
    """Write a link between two stored memories; None deletes it."""
    src, rel, dst = split_link_key(key)
    ends = {"src": src, "dst": dst, "rel": rel}
    if image is None:
        connection.execute(
            """delete from link where src = (select pk from memory where id = :src)
               and rel = :rel and dst = (select pk from memory where id = :dst)""",
            ends,
        )
        return
    connection.execute(
        """insert into link(src, rel, dst, created_at)
           values ((select pk from memory where id = :src), :rel,
                   (select pk from memory where id = :dst), :at)
           on conflict do update set created_at = excluded.created_at""",
        {**ends, "at": image["created_at"]},
    )


KINDS: Final[dict[str, Kind]] = {
    "memory": Kind(load_memory, save_memory, archive_memory, unarchive_memory),
    "link": Kind(load_link, save_link, counterpart=lambda key: split_link_key(key)[2]),
}
