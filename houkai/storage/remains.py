"""Make out what a damaged file held: the newest readable image of everything it knew of.

A memory is in the file twice, as a row and in the journal, so that either can stand in.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import apsw

from houkai import text as words
from houkai.storage.journal import FOREVER
from houkai.storage.pages import Value
from houkai.storage.rows import KINDS, MEMORY_FIELDS, Image, split_link_key, trim
from houkai.vocabulary import LINK_RELS, MEMORY_TYPES, TRUST_LEVELS

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASH: Final = re.compile(r"[0-9a-f]{64}")
_REALS: Final = (
    "importance", "created_at", "expires_at", "valid_from", "valid_until", "superseded_at",
)  # fmt: skip
LOST: Final = "salvaged"
"""The collection of memories whose own collection cannot be told."""

Table = Mapping[str, int]
"""Where each column of `memory` is in a record of this schema."""


@dataclass
class _Version:
    """An image with the operation that made it; None for a row that was deleted by it.

    One that does not stand had been replaced by another, which could not be read.
    """

    operation: int
    image: Image | None
    stands: bool = True


class Memory(NamedTuple):
    """The newest readable image of a memory, and what is known of it."""

    image: Image
    from_row: bool
    stands: bool


@dataclass
class Remains:
    """Everything that was read, by key; of several versions of one row the newest."""

    journal: dict[tuple[str, str], _Version] = field(default_factory=dict)
    rows: dict[str, tuple[_Version, int, bytes]] = field(default_factory=dict)
    """Memories as rows: the version, the row's number, the hash of its text."""
    collections: dict[int, str] = field(default_factory=dict)
    models: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    vectors: dict[tuple[int, bytes], dict[int, tuple[bytes, bytes]]] = field(default_factory=dict)
    first_windows: dict[int, set[tuple[int, bytes]]] = field(default_factory=dict)
    """The texts whose first window was read in a row of that number."""
    token_rows: dict[int, set[tuple[int, bytes]]] = field(default_factory=dict)
    """What was read of the token vectors that belong to the first window of that number."""

    def take(self, table: Table, records: Iterable[tuple[int, list[Value]]]) -> None:
        """Sort records by the tables whose rows they must be."""
        for rowid, values in records:
            match values:
                case [None, str(id), int(), str(type), *_] if _UUID.fullmatch(id):
                    if type in MEMORY_TYPES and len(values) <= len(table):
                        self._take_memory(table, rowid, values)
                case [None, int(operation), str(kind), str(key), _, _, _, after, int(until)]:
                    if kind == "link" or (kind in KINDS and _UUID.fullmatch(key)):
                        self._take_change(operation, kind, key, after, until == FOREVER)
                case [None, str(name), float() | int()]:
                    self.collections[rowid] = name
                case [None, str(name), int(dim), str(mark)] if _HASH.fullmatch(mark):
                    self.models[rowid] = (name, dim, mark)
                case [None, bytes(hash), int(model), int(window), bytes(vector), bytes(sketch)]:
                    windows = self.vectors.setdefault((model, hash), {})
                    windows[window] = (vector, sketch)
                    if window == 0:
                        self.first_windows.setdefault(rowid, set()).add((model, hash))
                case [None, int(count), bytes(pieces)]:
                    self.token_rows.setdefault(rowid, set()).add((count, pieces))

    def _take_memory(self, table: Table, rowid: int, values: list[Value]) -> None:
        row = {name: values[at] for name, at in table.items() if at < len(values)}
        operation, id, hash = row.get("operation"), str(row["id"]), row.get("text_hash")
        if not isinstance(operation, int) or not isinstance(hash, bytes):
            return
        # SQLite stores a real that is whole as an integer.
        image: Image = {
            name: float(value) if name in _REALS and isinstance(value, int) else value
            for name in MEMORY_FIELDS
            if (value := row.get(name)) is not None
        }
        image["collection"] = row["collection"]
        older = self.rows.get(id)
        if older is None or older[0].operation <= operation:
            self.rows[id] = (_Version(operation, trim(image)), rowid, hash)

    def _take_change(self, operation: int, kind: str, key: str, after: Value, stands: bool) -> None:
        older = self.journal.get((kind, key))
        if older is not None and older.operation >= operation:
            return
        image: Any = None
        if isinstance(after, bytes):
            try:
                image = apsw.jsonb_decode(after)
            except ValueError:
                return  # an older image is better than none
        if image is None or isinstance(image, dict):
            self.journal[kind, key] = _Version(operation, image, stands)

    def memories(self) -> dict[str, Memory]:
        """Return every memory that was alive, or may have been, as it was last readable."""
        self._name_collections()
        ids = [*self.rows, *(key for kind, key in self.journal if kind == "memory")]
        found = {id: newest for id in ids if (newest := self._newest(id)) is not None}
        return {id: memory for id, memory in found.items() if is_memory(memory.image)}

    def _newest(self, id: str) -> Memory | None:
        recorded = self.journal.get(("memory", id), _Version(0, None))
        stored, image = self.rows.get(id), recorded.image
        told = None if image is None else Memory(image, False, recorded.stands)
        if stored is None or stored[0].operation < recorded.operation:
            return told
        version, _, hash = stored
        row = version.image or {}
        # The journal knows the tags too; a row whose text fits its hash corrects it.
        trusted = recorded.operation == version.operation and (
            _fits(recorded.image, hash) or not _fits(row, hash)
        )
        if recorded.image is not None and trusted:
            return Memory(recorded.image, False, True)
        named = {**row, "collection": self.collections.get(row["collection"], LOST)}
        return Memory(named, True, True) if told is None or is_memory(named) else told

    def _name_collections(self) -> None:
        """Learn from memories that are there twice what a collection of a number is called."""
        for id, (version, _, _) in self.rows.items():
            recorded = self.journal.get(("memory", id))
            if recorded is not None and recorded.image is not None and version.image is not None:
                name = recorded.image.get("collection")
                if isinstance(name, str):
                    self.collections.setdefault(version.image["collection"], name)

    def others(self, kind: str) -> dict[str, Image]:
        """Return the newest images of links or of the trash that were there."""
        return {
            key: version.image
            for (one, key), version in self.journal.items()
            if one == kind and version.image is not None
        }

    @cached_property
    def tokens(self) -> dict[tuple[int, bytes], tuple[int, bytes]]:
        """Hold the token vectors of texts where all that was read agrees, once all is read."""
        return {
            text: tokens
            for row, found in self.token_rows.items()
            if len(found) == len(texts := self.first_windows.get(row, set())) == 1
            for text, tokens in zip(texts, found, strict=True)
        }

    def model(self) -> int | None:
        """Return the model that most vectors are of."""
        count = Counter(model for model, _ in self.vectors if model in self.models)
        return count.most_common(1)[0][0] if count else None


def _fits(image: Image | None, hash: bytes) -> bool:
    said = (image or {}).get("text")
    return isinstance(said, str) and words.text_hash(said) == hash


def is_memory(image: Image) -> bool:
    """Say whether an image is one that could have been stored."""
    texts = ("text", "collection", "source", "author", "superseded_by")
    return (
        bool(image.get("text"))
        and image.get("type") in MEMORY_TYPES
        and image.get("trust", "trusted") in TRUST_LEVELS
        and image.get("polarity", 0) in (-1, 0, 1)
        and image.get("pinned", 0) in (0, 1, 2)
        and all(isinstance(image.get(name) or "", str) for name in texts)
        and all(_is_number(image.get(name, 0)) for name in _REALS)
        and 0 <= image.get("importance", -1) <= 1
        and "created_at" in image
        and all(_are_names(image.get(name, [])) for name in ("tags", "entities"))
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def ends_of(key: str) -> tuple[str, str] | None:
    """Return the two memories of a link's key, None when it is no such key."""
    if key.count("|") != 2:
        return None
    src, rel, dst = split_link_key(key)
    return (src, dst) if rel in LINK_RELS else None
