"""What a store should do, in plain Python dicts: the oracle of the state machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Key = tuple[str, ...]
"""("memory", id), ("link", src, rel, dst) or ("trash", id)."""
Image = Mapping[str, Any] | None
State = dict[Key, Mapping[str, Any]]
Pair = tuple[Image, Image]


class Refused(Exception):
    """The store must refuse this undo."""


@dataclass
class Operation:
    """One recorded operation: what each row was before and after, and what it undid."""

    seq: int
    at: float
    op: str
    pairs: dict[Key, Pair]
    batch: int | None = None
    targets: list[int] = field(default_factory=list)
    left: set[Key] = field(default_factory=set)
    """The rows of which the journal still holds what became of them."""
    there: bool = True

    def __post_init__(self) -> None:
        self.left = set(self.pairs)


@dataclass
class Model:
    """A store as it should be: its rows now, its operations, and every state there was."""

    rows: State = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    moments: list[tuple[float, State]] = field(default_factory=list)
    erased: set[tuple[int, Key]] = field(default_factory=set)
    """The changes whose images are gone for good."""
    pruned: int = 0

    def next_at(self, now: float) -> float:
        """Return the moment that the next operation is recorded at."""
        last = self.operations[-1].at if self.operations else 0.0
        return max(now, last + 1e-6)

    def apply(
        self,
        op: str,
        now: float,
        after: Mapping[Key, Image],
        batch: int | None = None,
        targets: Iterable[int] = (),
        *,
        noted: bool = False,
    ) -> None:
        """Let an operation replace rows; nothing is recorded when nothing changes or is noted."""
        pairs = {
            key: (self.rows.get(key), image)
            for key, image in after.items()
            if self.rows.get(key) != image
        }
        if not pairs and not targets and not noted:
            return
        at = self.next_at(now)
        seq = len(self.operations) + 1
        self.operations.append(Operation(seq, at, op, pairs, batch, list(targets)))
        for key, (_, image) in pairs.items():
            if image is None:
                self.rows.pop(key)
            else:
                self.rows[key] = image
        self.moments.append((at, dict(self.rows)))

    def stands(self, seq: int) -> bool:
        """Say whether no undo that stands itself undid an operation."""
        later = self.operations[seq:]
        return not any(seq in undo.targets and self.stands(undo.seq) for undo in later)

    def undo(self, seq: int, now: float) -> None:
        """Undo an operation with the rest of its batch. Raises Refused."""
        group = self.group(seq)
        for operation in group:
            if operation.seq <= self.pruned or self.forgot(operation):
                raise Refused(operation)
        merged: dict[Key, Pair] = {}
        for operation in group:
            for key, (before, after) in operation.pairs.items():
                merged[key] = (merged[key][0] if key in merged else before, after)
        for key, (before, after) in merged.items():
            if self.rows.get(key) != after:
                raise Refused(key)
            if key[0] == "memory" and before is None and self.hangs_on(key[1]) - merged.keys():
                raise Refused(key)
        back = {key: before for key, (before, _) in merged.items()}
        self.refuse_adrift(back)
        op = "redo" if self.operations[seq - 1].op == "undo" else "undo"
        self.apply(op, now, back, targets=[operation.seq for operation in group])

    def group(self, seq: int) -> list[Operation]:
        """Return an operation and the rest of its batch, as far as they are recorded."""
        batch = self.operations[seq - 1].batch
        return [
            operation
            for operation in self.operations
            if operation.there
            and (operation.seq == seq or (batch is not None and operation.batch == batch))
        ]

    def forgot(self, operation: Operation) -> bool:
        """Say whether an image that undoing needs was erased: one of its own, or the one before."""
        for key in operation.left:
            earlier = [one.seq for one in self.operations[: operation.seq] if key in one.left]
            if any((seq, key) in self.erased for seq in earlier[-2:]):
                return True
        return False

    def purge(self, ids: Iterable[str]) -> None:
        """Erase what purged memories were, from every moment."""
        for id in ids:
            alive = ("memory", id) in self.rows
            gone = [("trash", id)] if alive else [("trash", id), ("memory", id)]
            self.erased |= {
                (operation.seq, key)
                for operation in self.operations
                for key in gone
                if key in operation.left and operation.pairs[key][1] is not None
            }
            for _, state in self.moments:
                for key in gone:
                    state.pop(key, None)

    def prune(self, cut: int, now: float) -> None:
        """Drop what had been replaced by an operation, and the operations that say no more."""
        if cut <= self.pruned:
            return
        for operation in self.operations[:cut]:
            operation.left = {
                key
                for key in operation.left
                if operation.pairs[key][1] is not None
                and (operation.seq, key) not in self.erased
                and not any(key in later.left for later in self.operations[operation.seq : cut])
            }
        undoing = {max(one.targets) for one in self.operations if one.there and one.targets}
        for operation in self.operations[:cut]:
            operation.there &= bool(operation.left) or operation.seq in undoing
        self.pruned = cut
        since = self.operations[cut - 1].at
        self.moments = [(at, state) for at, state in self.moments if at >= since]
        self.apply("prune", now, {}, noted=True)

    def refuse_adrift(self, back: Mapping[Key, Image]) -> None:
        """Refuse to bring back a link without its ends, or a memory with no way back."""
        rows = {key: image for key, image in {**self.rows, **back}.items() if image is not None}
        for key, image in back.items():
            if image is None:
                continue
            if key[0] == "link" and not {("memory", key[1]), ("memory", key[3])} <= rows.keys():
                raise Refused(key)
            seen, above = {key[1]}, image.get("superseded_by")
            while above is not None:
                if above in seen or ("memory", above) not in rows:
                    raise Refused(key)
                seen.add(above)
                above = rows["memory", above].get("superseded_by")

    def hangs_on(self, id: str) -> set[Key]:
        """Return the rows that need a memory: its links, and what it superseded."""
        return {
            key
            for key, image in self.rows.items()
            if (key[0] == "link" and id in (key[1], key[3])) or image.get("superseded_by") == id
        }

    def undoable(self) -> int | None:
        """Return the operation that `undo_last` should undo."""
        return self.newest(lambda operation: operation.op not in ("undo", "redo"))

    def redoable(self) -> int | None:
        """Return the undo that `redo` should undo."""
        return self.newest(lambda operation: operation.op == "undo")

    def newest(self, which: Any) -> int | None:
        """Return the newest standing operation that meets a condition."""
        for operation in reversed(self.operations):
            if (
                operation.there
                and operation.left
                and which(operation)
                and self.stands(operation.seq)
            ):
                return operation.seq
        return None

    def forgetting(self, ids: Iterable[str]) -> dict[Key, Image]:
        """Return what forgetting memories leaves of them and of what hangs on them."""
        after: dict[Key, Image] = {}
        for id in ids:
            for key in self.hangs_on(id):
                if key[0] == "link":
                    after[key] = None
                elif key not in after:
                    image = self.rows[key]
                    after[key] = {**image, "superseded_by": None, "superseded_at": None}
        return after | {("memory", id): None for id in ids}

    def next_position(self, source: str | None) -> int | None:
        """Return the place of a new memory in its source."""
        if source is None:
            return None
        taken = [
            image["position"]
            for key, image in self.rows.items()
            if key[0] == "memory" and image["source"] == source and image["position"] is not None
        ]
        return max(taken, default=-1) + 1

    def about(self, id: str) -> list[tuple[int, str]]:
        """Return (operation, kind) of every change that concerns a memory."""
        return [
            (operation.seq, key[0])
            for operation in self.operations
            for key in operation.left
            if id in key[1:] and key[0] != "trash"
        ]

    def known_at(self, moment: float, now: float) -> State:
        """Return the rows as a question about a moment must show them."""
        last = self.moments[-1][0] if self.moments else 0.0
        if now - 1.0 <= moment <= now < last:
            return self.rows
        known: State = {}
        for at, rows in self.moments:
            if at <= moment:
                known = rows
        return known


def memories_of(rows: State) -> dict[str, dict[str, Any]]:
    """Return the memories of a state by id, with their links, as a store shows them."""
    found: dict[str, dict[str, Any]] = {
        key[1]: {**image, "pinned": bool(image["pinned"]), "links": []}
        for key, image in rows.items()
        if key[0] == "memory"
    }
    for kind, *ends in sorted(rows):
        if kind == "link":
            src, rel, dst = ends
            if src not in found:  # purged: only its links are remembered
                continue
            found[src]["links"].append({"to": dst, "rel": rel})
    for memory in found.values():
        memory["links"].sort(key=lambda link: (link["to"], link["rel"]))
    return found
