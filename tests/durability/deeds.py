"""Random operations of every kind, each with what it may leave behind when it is cut short."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from houkai import Diverged, MemoryStore, ModelMismatch, NotFound
from houkai.errors import InputError
from houkai.storage import vectors
from houkai.testing import HashingEmbedder
from tests.durability.checks import EMBEDDER, Contents, Say
from tests.support import contents

WORDS = ["build", "cache", "client", "deploy", "editor", "friday", "invoice", "kernel", "network"]
BATCH = 4
MODELS = (EMBEDDER, HashingEmbedder(40))
"""The models between which a file is changed over."""
MOST = 60
"""Memories at which it is time for a nuke."""


class Deed(NamedTuple):
    """An operation to do, and the changes it makes at most, in how many transactions."""

    name: str
    do: Callable[[], object]
    changes: int | None = None
    operations: int = 1


def sentence(chance: random.Random) -> str:
    """Return a text that is hardly ever the same twice."""
    return f"{' '.join(chance.choices(WORDS, k=6))} {chance.randrange(10**9)}"


def choose(store: MemoryStore, chance: random.Random) -> Deed:
    """Choose what to do next, of everything that changes a store."""
    held = contents(store)
    links = sum(len(memory["links"]) for memory in held.values())
    if len(held) > MOST or chance.random() < 0.02:
        return Deed("nuke", store.nuke, len(held) + links)
    if len(held) < 5 or chance.random() < 0.25:
        return Deed(
            "remember",
            lambda: store.remember(sentence(chance), tags=chance.sample(WORDS, 2)),
            1,
        )
    return chance.choice(_DEEDS)(store, chance, held)


def _many(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    items = [sentence(chance) for _ in range(chance.randrange(1, 3 * BATCH))]
    return Deed(
        "remember_many",
        lambda: store.remember_many(items, batch_size=BATCH),
        min(BATCH, len(items)),
        -(-len(items) // BATCH),
    )


def _edit(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    id = chance.choice(list(held))
    fields: dict[str, Any] = chance.choice(
        [
            {"text": sentence(chance)},
            {"importance": chance.random()},
            {"tags": chance.sample(WORDS, 3), "text": sentence(chance)},
            {"pinned": not held[id]["pinned"], "created_at": 1_600_000_000 + chance.random()},
        ]
    )
    return Deed("edit", lambda: store.edit(id, **fields), 1)


def _forget(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    id = chance.choice(list(held))
    marks = sum(memory["superseded_by"] == id for memory in held.values())
    ties = len(held[id]["links"]) + sum(
        link["to"] == id for memory in held.values() for link in memory["links"]
    )
    return Deed("forget", lambda: store.forget(id), 1 + ties + marks)


def _link(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    one, other = chance.sample(list(held), 2)
    return Deed("link", lambda: store.link(one, other), 1)


def _supersede(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    one, other = chance.sample(list(held), 2)
    return Deed("supersede", lambda: store.supersede(one, other))


def _recall(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    return Deed("recall", lambda: store.recall(sentence(chance), k=3), 0, 0)


def _restore(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    hidden = [id for id, memory in held.items() if memory["superseded_by"]]
    if not hidden:
        return _supersede(store, chance, held)
    id = chance.choice(hidden)
    return Deed("restore", lambda: store.restore(id))


def _merge(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    one, other = chance.sample(list(held), 2)
    return Deed("merge", lambda: store.merge(one, other))


def _unlink(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    ties = [(id, link["to"]) for id, memory in held.items() for link in memory["links"]]
    if not ties:
        return _link(store, chance, held)
    src, dst = chance.choice(ties)
    return Deed("unlink", lambda: store.unlink(src, dst))


def _rename_tag(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    old, new = chance.sample(WORDS, 2)
    return Deed("rename_tag", lambda: store.rename_tag(old, new))


def _merge_tags(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    *old, new = chance.sample(WORDS, 3)
    return Deed("merge_tags", lambda: store.merge_tags(old, new))


def _delete_tag(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    tag = chance.choice(WORDS)
    return Deed("delete_tag", lambda: store.delete_tag(tag))


def _trash(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    id = chance.choice(list(held))
    return Deed("trash", lambda: store.trash(id))


def _trash_restore(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    thrown = store.trash_list()
    if not thrown:
        return _trash(store, chance, held)
    id = chance.choice(thrown).memory_id
    return Deed("trash_restore", lambda: store.trash_restore(id))


def _trash_purge(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    thrown = store.trash_list()
    if not thrown:
        return _trash(store, chance, held)
    id = chance.choice(thrown).memory_id
    return Deed("trash_purge", lambda: store.trash_purge(id))


def _undo(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    return Deed("undo_last", store.undo_last)


def _undo_one(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    entry = chance.choice(store.journal(8))
    return Deed("undo", lambda: store.undo(entry))


def _undo_since(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    # Those of another process that come meanwhile are taken back too, however many they are.
    since = chance.choice(store.journal(4)).ts
    return Deed("undo_since", lambda: store.undo_since(since), None, 1_000)


def _redo(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    return Deed("redo", store.redo)


def _prune(store: MemoryStore, chance: random.Random, held: Contents) -> Deed:
    return Deed("prune_journal", lambda: store.prune_journal(keep_last=chance.randrange(20, 40)))


_DEEDS = (_many, _many, _edit, _edit, _edit, _recall, _forget, _link, _unlink, _supersede,
          _restore, _merge,
          _rename_tag, _merge_tags, _delete_tag, _trash, _trash_restore, _trash_purge, _undo,
          _undo_one, _undo_since, _redo, _redo, _prune)  # fmt: skip
NAMES = {"nuke", "recall", "remember", "remember_many", "edit", "forget", "link", "unlink",
         "supersede",
         "restore", "merge", "rename_tag", "merge_tags", "delete_tag", "trash", "trash_restore",
         "trash_purge", "undo_last", "undo", "undo_since", "redo", "prune_journal",
         "reembed"}  # fmt: skip
"""Every deed there is, that a test may tell whether it has met them all."""


def follow(store: MemoryStore) -> MemoryStore:
    """Let a store use the model that its file has, which another process may have changed."""
    with store.read() as connection:
        model = vectors.current_model(connection)
    store.embedder = next(one for one in MODELS if model and one.fingerprint == model.fingerprint)
    return store


def _reembed(store: MemoryStore) -> Deed:
    """Change the file over to the other model, in several transactions that record nothing."""
    other = next(one for one in MODELS if one is not store.embedder)
    return Deed("reembed", lambda: store.reembed(other, batch_size=BATCH), None, 0)


def digest(held: Contents) -> str:
    """Return a short name of a store's contents."""
    plain = json.dumps(held, sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def attempt(deed: Deed) -> bool:
    """Do a deed and say whether it was possible."""
    try:
        deed.do()
    except (Diverged, NotFound, InputError):  # another's change came first, or nothing to undo
        return False
    except ModelMismatch:  # another has changed the model meanwhile
        return False
    except UserWarning as told:  # which a recall says, and goes by words
        if "holds vectors of the model" not in str(told):
            raise
        return False
    return True


def go_on(say: Say, store: MemoryStore, chance: random.Random) -> None:
    """Do one deed; say what it is before, and once it is acknowledged what the store holds."""
    deed = _reembed(follow(store)) if chance.random() < 0.04 else choose(follow(store), chance)
    say({"about": deed.name, "changes": deed.changes, "operations": deed.operations})
    if not attempt(deed):
        return
    last = store.journal(1, actor=store.actor)
    seq = last[0].operation if last else 0
    say({"done": deed.name, "seq": seq, "holds": digest(contents(store))})
