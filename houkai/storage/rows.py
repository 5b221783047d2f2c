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
from houkai.storage import fulltext, indexing, known, trash, vectors

Image = dict[str, Any]
Columns = Mapping[str, Any]

MEMORY_FIELDS: Final = (
    "text", "type", "importance", "polarity", "source", "position", "author", "trust", "pinned",
    "created_at", "expires_at", "valid_from", "valid_until", "superseded_by", "superseded_at",
)  # fmt: skip
_STORED: Final = (
    *MEMORY_FIELDS, "collection", "text_hash", "content_hash", "words", "names", "dates",
)  # fmt: skip
_LOAD: Final = f"""select (select name from collection where pk = m.collection),
    {", ".join(MEMORY_FIELDS)},
    (select json_group_array(name order by ordinal) from tag where memory = m.pk),
    (select json_group_array(name order by ordinal) from entity where memory = m.pk)
  from memory m where id = ?"""
_INSERT: Final = f"""insert into memory(id, operation, {", ".join(_STORED)})
  values ({", ".join("?" * (2 + len(_STORED)))})"""
NAMES: Final = (("tag", "tags"), ("entity", "entities"))
"""The tables of a memory's names and the fields of its image they hold."""
_WORDED: Final = frozenset((*fulltext.COLUMNS, "collection"))
_ABSENT: Final[dict[str, Any]] = {"polarity": 0, "trust": "trusted", "pinned": 0}
"""What a missing key means; part of the format, so it never changes."""
_NOTHING: Final = {name: _ABSENT.get(name) for name in MEMORY_FIELDS}
"""The columns of an image without fields."""


@dataclass(frozen=True)
class Kind:
    """How the rows of one journaled kind are read and written, by their public key."""

    load: Callable[[apsw.Connection, str], Image | None]
    save: Callable[[apsw.Connection, str, Image | None, Image | None, int], int | None]
    """Turn the present image into another for an operation; return the row's number in the file."""
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


def collection_names(connection: apsw.Connection, limit: int) -> list[str]:
    """Return the names of the collections in which something was ever stored, up to a limit."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select name from collection order by name limit ?", (limit,)
    ).fetchall()
    return [name for (name,) in rows]


def _ensure_collection(connection: apsw.Connection, name: str, at: float) -> int:
    collections = known.of(connection).collections
    pk = collections.get(name) or collection_pk(connection, name)
    if pk is None:
        connection.execute("insert into collection(name, created_at) values (?, ?)", (name, at))
        pk = connection.last_insert_rowid()
    collections[name] = pk
    return pk


def load_memory(connection: apsw.Connection, id: str) -> Image | None:
    """Return the image of a memory with its tags and entities, None when it is not there."""
    row = connection.execute(_LOAD, (id,)).get
    if row is None:
        return None
    collection, *values, tags, entities = row
    image = {"collection": collection, **dict(zip(MEMORY_FIELDS, values, strict=True))}
    image["tags"] = [] if tags == "[]" else json.loads(tags)
    image["entities"] = [] if entities == "[]" else json.loads(entities)
    return trim(image)


def trim(image: Mapping[str, Any]) -> Image:
    """Return an image without the fields that are absent or stand at their format default."""
    return {
        key: value
        for key, value in image.items()
        if value is not None and value != [] and value != _ABSENT.get(key)
    }


def save_memory(
    connection: apsw.Connection, id: str, before: Image | None, after: Image | None, operation: int
) -> int | None:
    """Write a memory with its tags, entities, index words and sketches; None deletes it."""
    if before is None:
        if after is None:
            return None
        return enter_memory(connection, id, after, derived_columns(after), operation)
    pk: int = connection.execute("select pk from memory where id = ?", (id,)).get
    if after is None:
        _delete(connection, pk)
    else:
        _update(connection, pk, before, after, operation)
    return pk


def columns(
    connection: apsw.Connection, image: Image, derived: Columns | None = None
) -> dict[str, Any]:
    """Return what the table stores of an image."""
    values = {name: image.get(name, absent) for name, absent in _NOTHING.items()}
    values["pinned"] = int(values["pinned"] or 0)
    values["collection"] = _ensure_collection(connection, image["collection"], image["created_at"])
    values.update(derived or derived_columns(image))
    return values


def derived_columns(image: Image) -> dict[str, Any]:
    """Return the columns that follow from others: hashes, and the words to index."""
    get, text = image.get, image["text"]
    return {
        "text_hash": words.text_hash(text),
        "content_hash": words.content_hash(text),
        "words": words.index_words(text),
        "names": words.index_names(get("tags", ()), get("entities", ()), get("author")),
        "dates": words.index_dates(image["created_at"]),
    }


def enter_memory(
    connection: apsw.Connection, id: str, image: Image, derived: Columns, operation: int
) -> int:
    """Write a memory that is not there, with its tags, entities and index words."""
    row = columns(connection, image, derived)
    connection.execute(_INSERT, (id, operation, *row.values()))
    pk = connection.last_insert_rowid()
    fulltext.add(connection, "memory_fts", pk, row)
    for table, field in NAMES:
        _enter_names(connection, table, field, pk, image)
    indexing.defer(connection, pk)
    return pk


def _update(
    connection: apsw.Connection, pk: int, before: Image, after: Image, operation: int
) -> None:
    """Write only the columns that differ: each one named costs the pages of its indexes."""
    old, new = columns(connection, before), columns(connection, after)
    changed = {name for name in new if new[name] != old[name]}
    reworded = not changed.isdisjoint(_WORDED)
    if reworded:
        changed |= _WORDED
        fulltext.remove(connection, "memory_fts", pk)
    names = [name for name in new if name in changed]
    sets = "".join(f"{name} = ?, " for name in names)
    connection.execute(
        f"update memory set {sets}operation = ? where pk = ?",
        (*(new[name] for name in names), operation, pk),
    )
    if reworded:
        fulltext.add(connection, "memory_fts", pk, new)
    for table, field in NAMES:
        if before.get(field) != after.get(field):
            connection.execute(f"delete from {table} where memory = ?", (pk,))
            _enter_names(connection, table, field, pk, after)
    if changed & {"collection", "text_hash"}:
        vectors.unindex(connection, pk)
        vectors.enter_between(connection, pk, pk + 1)


def _delete(connection: apsw.Connection, pk: int) -> None:
    vectors.unindex(connection, pk)
    fulltext.remove(connection, "memory_fts", pk)
    connection.execute("delete from memory where pk = ?", (pk,))


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
    pk = connection.last_insert_rowid()
    row = connection.execute(
        "select text, words, names, dates, collection from past where pk = ?", (pk,)
    ).get
    names = (*fulltext.COLUMNS, "collection")
    fulltext.add(connection, "past_fts", pk, dict(zip(names, row, strict=True)))


def unarchive_memory(connection: apsw.Connection, id: str, until: int) -> None:
    """Take back such a copy, and the mark of the operation that came to nothing."""
    connection.execute(
        """update memory set operation =
             (select p.operation from past p where p.id = memory.id and p.until = ?1)
           where id = ?2 and exists (select 1 from past p where p.id = ?2 and p.until = ?1)""",
        (until, id),
    )
    pk = connection.execute("select pk from past where id = ? and until = ?", (id, until)).get
    if pk is not None:
        fulltext.remove(connection, "past_fts", pk)
        connection.execute("delete from past where pk = ?", (pk,))


def _enter_names(
    connection: apsw.Connection, table: str, field: str, pk: int, image: Image
) -> None:
    names = image.get(field)
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


def save_link(
    connection: apsw.Connection,
    key: str,
    _before: Image | None,
    image: Image | None,
    _operation: int,
) -> None:
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
    "trash": Kind(trash.load, trash.save),
    "link": Kind(load_link, save_link, counterpart=lambda key: split_link_key(key)[2]),
}
