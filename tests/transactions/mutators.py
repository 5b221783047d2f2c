"""Every operation that changes memories, each with the scene it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from houkai import MemoryStore

Ids = dict[str, str]


def scene(store: MemoryStore) -> Ids:
    """Fill a store with memories that links, tags and supersession tie together."""
    made = store.remember_many(
        [
            {"text": "alpha is the first letter", "tags": ["greek", "letter"], "source": "book"},
            {"text": "beta follows alpha", "tags": ["greek"], "entities": ["Beta"], "pinned": True},
            {"text": "gamma is the third", "author": "user", "importance": 0.9},
            {"text": "delta was the fourth", "trust": "reported"},
        ]
    )
    ids = dict(zip("abcd", (memory.id for memory in made), strict=True))
    store.link(ids["a"], ids["b"], "related")
    store.link(ids["c"], ids["b"], "refines")
    store.supersede(ids["d"], ids["c"])
    store.trash(store.remember("epsilon was thrown away", tags=["greek"], pinned=True).id)
    return ids


@dataclass(frozen=True)
class Mutator:
    """One call that changes a store: what it does in the scene, and the operation it records."""

    run: Callable[[MemoryStore, Ids], Any]
    op: str
    before: Callable[[MemoryStore, Ids], Any] = lambda _store, _ids: None
    """What is done first, and is no part of what the tests look at."""


MUTATORS: dict[str, Mutator] = {
    "remember": Mutator(
        lambda s, _: s.remember("zeta is new", tags=["greek", "new"], source="book"), "remember"
    ),
    "remember_idempotent": Mutator(
        lambda s, _: s.remember("ALPHA is a  letter of its own", idempotent=True), "remember"
    ),
    "remember_many": Mutator(
        lambda s, _: s.remember_many(["one more", {"text": "and another", "tags": ["x"]}]),
        "remember_many",
    ),
    "edit_text": Mutator(lambda s, i: s.edit(i["a"], text="alpha has a new text"), "edit"),
    "edit_fields": Mutator(
        lambda s, i: s.edit(
            i["b"], tags=["latin"], importance=0.1, author="user", pinned=False, entities=[]
        ),
        "edit",
    ),
    "forget": Mutator(lambda s, i: s.forget(i["b"]), "forget"),
    "forget_superseder": Mutator(lambda s, i: s.forget(i["c"]), "forget"),
    "forget_many": Mutator(lambda s, i: s.forget_many([i["b"], i["c"], "none"]), "forget"),
    "nuke": Mutator(lambda s, _: s.nuke(), "nuke"),
    "link": Mutator(lambda s, i: s.link(i["a"], i["c"], "causes"), "link"),
    "unlink": Mutator(lambda s, i: s.unlink(i["a"], i["b"]), "unlink"),
    "supersede": Mutator(lambda s, i: s.supersede(i["b"], i["a"]), "supersede"),
    "restore": Mutator(lambda s, i: s.restore(i["d"]), "restore"),
    "merge": Mutator(lambda s, i: s.merge(i["a"], i["b"]), "merge"),
    "rename_tag": Mutator(lambda s, _: s.rename_tag("greek", "hellenic"), "rename_tag"),
    "merge_tags": Mutator(lambda s, _: s.merge_tags(["greek", "letter"], "both"), "merge_tags"),
    "delete_tag": Mutator(lambda s, _: s.delete_tag("greek"), "delete_tag"),
    "trash": Mutator(lambda s, i: s.trash(i["b"]), "trash"),
    "trash_many": Mutator(lambda s, i: s.trash_many([i["c"], "none", i["d"]]), "trash"),
    "trash_restore": Mutator(
        lambda s, _: s.trash_restore(s.trash_list()[0].memory_id), "trash_restore"
    ),
    "trash_restore_many": Mutator(
        lambda s, i: s.trash_restore_many([i["b"], "none", i["c"]]),
        "trash_restore",
        lambda s, i: s.trash_many([i["b"], i["c"]]),
    ),
    "remember_and_supersede": Mutator(
        lambda s, _: s.remember("alpha is the FIRST letter", on_conflict="supersede"), "remember"
    ),
    "undo": Mutator(
        lambda s, i: s.undo(s.history(i["a"])[-1]),
        "undo",
        lambda s, i: s.edit(i["a"], text="to be undone"),
    ),
    "undo_last": Mutator(lambda s, _: s.undo_last(), "undo", lambda s, i: s.forget(i["b"])),
    "undo_since": Mutator(
        lambda s, _: s.undo_since(s.journal(1)[0].ts), "undo", lambda s, i: s.forget(i["b"])
    ),
    "redo": Mutator(lambda s, _: s.redo(), "redo", lambda s, i: (s.forget(i["b"]), s.undo_last())),
}

FINAL: dict[str, Mutator] = {
    "trash_purge": Mutator(lambda s, _: s.trash_purge(), "trash_purge"),
    "prune_journal": Mutator(lambda s, _: s.prune_journal(keep_last=2), "prune"),
}
"""Operations that exist to take the way back away."""
