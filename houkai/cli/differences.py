"""Print what became of rows, or would become: a line each, with the fields that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from houkai import render
from houkai.cli import session
from houkai.model import Difference

VIEW: Final = render.View(
    fields={
        "change": lambda r: r["change"],
        "kind": lambda r: r["kind"],
        "id": lambda r: r["id"],
        "fields": lambda r: ",".join(_changed(r)),
        "text": lambda r: _text(r),
    },
    columns={
        "change": lambda r: r["change"],
        "kind": lambda r: r["kind"],
        "id": lambda r: _short(r["id"]),
        "what": lambda r: "\n".join(_what(r)),
    },
)


def show(found: Sequence[Difference], format: render.Format, nothing: str) -> None:
    """Print differences, or say that there are none."""
    session.show_records([_record(one) for one in found], VIEW, format, nothing)


def _record(one: Difference) -> dict[str, Any]:
    return {
        "change": one.change,
        "kind": one.kind,
        "id": one.id,
        "before": one.before,
        "after": one.after,
    }


def _short(key: str) -> str:
    """Return the key of a row for people; that of a link holds two ids and a relation."""
    first, *rest = key.split("|")
    return "|".join([render.short(first), *rest[:-1], *map(render.short, rest[-1:])])


def _text(record: render.Record) -> str:
    """Return the text of the memory that a row is, or keeps in the trash; "" for a link."""
    image = record["after"] or record["before"]
    return str(image.get("memory", image).get("text", ""))


def _changed(record: render.Record) -> list[str]:
    """Name the fields that differ in a row that was there at both moments."""
    before, after = record["before"], record["after"]
    if before is None or after is None:
        return []
    names = dict.fromkeys([*before, *after])
    return [name for name in names if before.get(name) != after.get(name)]


def _what(record: render.Record) -> Iterator[str]:
    before, after = record["before"], record["after"]
    if before is None or after is None:
        yield render.excerpt(_text(record))
    for name in _changed(record):
        old, new = (render.field_text(name, image.get(name)) for image in (before, after))
        yield f"{name}: {old} -> {new}"
