"""Memories to store at random, and what each must look like once it is stored."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from houkai import JournalEntry, MemoryStore
from houkai.storage.journal import Tx
from tests.properties.model import Image, Key, Model
from tests.support import START

words = st.one_of(
    st.sampled_from(
        ["alpha", "beta gamma", "Alpha  BETA", "日本語の記憶", "fooBar snake_case v1.2"]
    ),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip),
)
names = st.lists(st.sampled_from(["a", "b c", "Ünï", "日本", 'q"uote', "x,y"]), max_size=3)
moments = st.one_of(st.none(), st.sampled_from([START - 5e5, START + 7.0, START + 9e9]))
fields = st.fixed_dictionaries(
    {"text": words},
    optional={
        "type": st.sampled_from(["episodic", "semantic", "procedural", "feedback"]),
        "tags": names,
        "importance": st.sampled_from([0.0, 0.25, 0.5, 0.1 + 0.2, 1.0]),
        "source": st.sampled_from([None, "s1", "s2"]),
        "polarity": st.sampled_from([-1, 0, 1]),
        "expires_at": moments,
        "pinned": st.booleans(),
        "trust": st.sampled_from(["trusted", "reported", "untrusted"]),
        "created_at": moments,
        "author": st.sampled_from([None, "user"]),
        "entities": names,
    },
)


def expected(given: dict[str, Any], now: float, model: Model) -> dict[str, Any]:
    """Return the fields that a memory must have when it was stored with these."""
    created_at = given.get("created_at")
    return {
        "text": given["text"].strip(),
        "type": given.get("type", "semantic"),
        "tags": list(dict.fromkeys(given.get("tags", []))),
        "importance": given.get("importance", 0.5),
        "created_at": now if created_at is None else created_at,
        "source": given.get("source"),
        "superseded_by": None,
        "superseded_at": None,
        "polarity": given.get("polarity", 0),
        "expires_at": given.get("expires_at"),
        "pinned": given.get("pinned", False),
        "trust": given.get("trust", "trusted"),
        "valid_from": None,
        "valid_until": None,
        "author": given.get("author"),
        "position": model.next_position(given.get("source")),
        "entities": list(dict.fromkeys(given.get("entities", []))),
        "collection": "default",
    }


def mark(store: MemoryStore, old: str, new: str) -> None:
    """Hide a memory behind another, whatever supersedes what already."""

    def work(tx: Tx) -> None:
        image = tx.get("memory", old)
        assert image is not None
        tx.put("memory", old, {**image, "superseded_by": new, "superseded_at": tx.at})
        tx.put("link", f"{new}|supersedes|{old}", {"created_at": tx.at})

    store.write("supersede", work)


def shown(memories: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return memories as the model holds them."""
    for memory in memories.values():
        del memory["id"], memory["content_hash"]
    return memories


ABSENT: dict[str, Any] = {
    **dict.fromkeys(["source", "superseded_by", "superseded_at", "expires_at", "valid_from"]),
    **dict.fromkeys(["valid_until", "author", "position"]),
    "polarity": 0,
    "pinned": 0,
    "trust": "trusted",
}
"""What the journal leaves out of a memory's image."""


def recorded(entry: JournalEntry) -> tuple[Key, Image]:
    """Return the row that an entry is about and its image after, as the model holds them."""
    if entry.kind == "link":
        return ("link", entry.id, entry.meta["rel"], entry.meta["dst_id"]), entry.after
    if entry.kind == "memory" and entry.after is not None:
        return ("memory", entry.id), {"tags": [], "entities": [], **ABSENT, **entry.after}
    return (entry.kind, entry.id), entry.after
