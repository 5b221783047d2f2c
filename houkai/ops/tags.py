"""Tags across a collection: count, rename, merge and delete them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from houkai import params
from houkai.handle import Store
from houkai.model import TagCount, TagRename
from houkai.ops.drafts import RememberItem
from houkai.rules import clean
from houkai.storage.journal import Tx
from houkai.storage.rows import trim


def list_tags(
    store: Store, *, include_superseded: params.IncludeSuperseded = False
) -> list[TagCount]:
    """Return every tag with the number of memories that carry it, most used first."""
    values = clean(list_tags, {"include_superseded": include_superseded})
    with store.read() as connection:
        rows: list[tuple[Any, ...]] = connection.execute(
            """select t.name, count(*) as number from tag t join memory m on m.pk = t.memory
               where m.collection = (select pk from collection where name = :collection)
                 and (:hidden or m.superseded_by is null)
               group by t.name order by number desc, t.name""",
            {"collection": store.collection, "hidden": values["include_superseded"]},
        ).fetchall()
    return [TagCount(*row) for row in rows]


def rename_tag(store: Store, old: params.Tag, new: params.Tag) -> TagRename:
    """Rename a tag on every memory, hidden ones too; undone as one. Raises InputError."""
    values = clean(rename_tag, {"old": old, "new": new})
    return _replace(store, "rename_tag", _tags([values["old"]]), *_tags([values["new"]]))


def merge_tags(store: Store, sources: params.Tags, into: params.Tag) -> TagRename:
    """Replace several tags by one on every memory; undone as one. Raises InputError."""
    values = clean(merge_tags, {"sources": sources, "into": into})
    return _replace(store, "merge_tags", values["sources"], *_tags([values["into"]]))


def delete_tag(store: Store, tag: params.Tag) -> TagRename:
    """Take a tag off every memory; the memories stay. Undone as one. Raises InputError."""
    names = _tags([clean(delete_tag, {"tag": tag})["tag"]])
    return replace(_replace(store, "delete_tag", names), tag=names[0])


def _tags(names: list[str]) -> list[str]:
    """Return tags as memories carry them. Raises InputError."""
    tags: list[str] = clean(RememberItem, {"tags": names})["tags"]
    return tags


def _replace(store: Store, op: str, sources: list[str], into: str | None = None) -> TagRename:
    """Put one tag in the place of others; where a memory has it already, the others just go."""
    gone = set(sources) - {into}

    def work(tx: Tx) -> int:
        changed = 0
        for id in _carriers(store, tx, gone):
            image = tx.get("memory", id) or {}
            tags = [into if name in gone else name for name in image["tags"]]
            kept = [name for name in dict.fromkeys(tags) if name is not None]
            changed += tx.put("memory", id, trim({**image, "tags": kept}))
        return changed

    return TagRename(store.write(op, work), into or "")


def _carriers(store: Store, tx: Tx, tags: Iterable[str]) -> list[str]:
    found: set[str] = set()
    for tag in tags:
        rows: list[tuple[Any, ...]] = tx.connection.execute(
            """select m.id from tag t join memory m on m.pk = t.memory where t.name = ?
               and m.collection = (select pk from collection where name = ?)""",
            (tag, store.collection),
        ).fetchall()
        found.update(id for (id,) in rows)
    return sorted(found)
