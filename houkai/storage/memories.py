"""Read memories as records: the one select that every reading operation shares."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Final

import apsw

from houkai import text
from houkai.errors import Corrupt
from houkai.model import Link, Memory
from houkai.storage.rows import Image
from houkai.storage.touches import Touches

_FIELDS: Final = (
    "id", "text", "type", "importance", "polarity", "source", "position", "author", "trust",
    "pinned", "created_at", "expires_at", "valid_from", "valid_until", "superseded_by",
    "superseded_at", "content_hash",
)  # fmt: skip
_COLUMNS: Final = ", ".join(
    ["m.pk", *(f"m.{name}" for name in _FIELDS), "c.name", "t.count", "t.last_at"]
)
_NAMES: Final = (*_FIELDS, "collection", "access_count", "last_accessed")
_PLAIN: Final = {
    **{field.name: None if field.default is MISSING else field.default for field in fields(Memory)},
    "pinned": 0,
}
"""A memory of which an image says nothing."""


def select(
    connection: apsw.Connection,
    rest: str,
    values: Any = None,
    touches: Touches | None = None,
) -> dict[int, Memory]:
    """Return the memories of a select by their file-local numbers, in its order.

    `rest` is what follows the tables: conditions on `memory m`, an order, a limit. Accesses that
    are not written yet are counted from `touches`.
    """
    rows = connection.execute(
        f"""select {_COLUMNS} from memory m join collection c on c.pk = m.collection
            left join touch t on t.id = m.id {rest}""",
        values,
    )
    found = {pk: _record(row) for pk, *row in rows}
    if found:
        _add_names_and_links(connection, found)
    if touches:
        for memory in found.values():
            _count(memory, touches)
    return found


def _record(row: Sequence[Any]) -> Memory:
    """Return a memory without its names and links."""
    # A frozen dataclass sets its fields one by one, which costs more than reading the row.
    memory = object.__new__(Memory)
    held = memory.__dict__
    held.update(zip(_NAMES, row, strict=True))
    held["pinned"] = bool(held["pinned"])
    held["access_count"] = held["access_count"] or 0
    held["tags"], held["entities"], held["links"] = [], [], []
    return memory


def _add_names_and_links(connection: apsw.Connection, found: Mapping[int, Memory]) -> None:
    pks = (apsw.carray(array("q", found)),)
    for pk, name in connection.execute(
        """select n.memory, n.name from carray(?) a cross join tag n on n.memory = a.value
           order by n.ordinal""",
        pks,
    ):
        found[pk].tags.append(name)
    for pk, name in connection.execute(
        """select n.memory, n.name from carray(?) a cross join entity n on n.memory = a.value
           order by n.ordinal""",
        pks,
    ):
        found[pk].entities.append(name)
    for pk, to, rel in connection.execute(
        """select l.src, d.id, l.rel from carray(?) a cross join link l on l.src = a.value
           cross join memory d on d.pk = l.dst order by l.created_at, l.rel""",
        pks,
    ):
        found[pk].links.append(Link(to, rel))


def _count(memory: Memory, touches: Touches) -> None:
    waiting = touches.pending(memory.id)
    if waiting is not None:
        memory.__dict__["access_count"] += waiting[0]
        memory.__dict__["last_accessed"] = max(memory.last_accessed or 0.0, waiting[1])


def by_pks(
    connection: apsw.Connection, pks: Sequence[int], touches: Touches | None
) -> dict[int, Memory]:
    """Return memories by their file-local numbers."""
    if not pks:
        return {}
    wanted = (apsw.carray(array("q", pks)),)
    return select(connection, "where m.pk in (select value from carray(?))", wanted, touches)


def numbers(connection: apsw.Connection, ids: Iterable[str], collection: str) -> dict[str, int]:
    """Return the file-local numbers of those ids that a collection has, in the order given."""
    rows: list[tuple[Any, ...]] = connection.execute(
        """select m.id, m.pk from json_each(?) wanted cross join memory m on m.id = wanted.value
           where m.collection = (select pk from collection where name = ?) order by wanted.id""",
        (json.dumps(list(ids)), collection),
    ).fetchall()
    return dict(rows)


def ids(connection: apsw.Connection, pks: Iterable[int]) -> dict[int, str]:
    """Return the ids of memories by their file-local numbers."""
    rows: list[tuple[Any, ...]] = connection.execute(
        "select pk, id from memory where pk in (select value from json_each(?))",
        (json.dumps(list(pks)),),
    ).fetchall()
    return dict(rows)


def by_id(
    connection: apsw.Connection, id: str, collection: str, touches: Touches | None
) -> Memory | None:
    """Return one memory of a collection by its whole id."""
    found = select(connection, "where m.id = ? and c.name = ?", (id, collection), touches)
    return next(iter(found.values()), None)


def from_image(
    id: str, image: Image, links: Iterable[Link] = (), *, hash: str | None = None
) -> Memory:
    """Return the memory that an image of the journal shows; `hash` if known. Raises Corrupt."""
    try:
        hash = hash or text.content_hash(image["text"])
    except (AttributeError, KeyError, TypeError) as error:
        raise _unreadable(id) from error
    if not image.keys() <= _PLAIN.keys():
        raise _unreadable(id)
    # Filled like a record above; a past state is made of thousands of them.
    memory = object.__new__(Memory)
    held = memory.__dict__
    held.update(_PLAIN)
    held.update(image)
    held["id"], held["content_hash"], held["links"] = id, hash, list(links)
    held["pinned"] = bool(held["pinned"])
    held["tags"], held["entities"] = held["tags"] or [], held["entities"] or []
    return memory


def _unreadable(id: str) -> Corrupt:
    return Corrupt(f"The journal is damaged: memory {id} cannot be read from it.")
