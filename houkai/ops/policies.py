"""What remembering does about conflicts: nothing, a note, superseding, or refusal.

Conflicts are looked for in a snapshot before anything is written, and again inside the
transaction among what has changed since, so that no other process slips one in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import apsw

from houkai import conflict_rules as rules
from houkai.conflict_rules import ConflictFn
from houkai.errors import ConflictError, InputError
from houkai.handle import Store
from houkai.model import Conflict, Memory
from houkai.notes import note
from houkai.ops.superseding import hide
from houkai.storage import memories
from houkai.storage.eligible import allows, condition
from houkai.storage.journal import Tx
from houkai.storage.rows import Image
from houkai.storage.vectors import Encoded
from houkai.text import text_hash
from houkai.vocabulary import TRUST_LEVELS, ConflictPolicy

if TYPE_CHECKING:
    from houkai.search.arrays import Vector

NAMED: Final = 5
"""Conflicts that a sentence names; the rest it counts."""


@dataclass(frozen=True)
class Draft:
    """A memory about to be written; `similar` holds what is stored, or comes later in its batch."""

    memory: Memory
    windows: Vector
    similar: dict[str, float]


@dataclass(frozen=True)
class Look:
    """What a snapshot showed about the memories of a batch, by id, and its last operation.

    A memory that is hidden from the start, or has no vector, conflicts with nothing.
    """

    drafts: Mapping[str, Draft] = field(default_factory=dict)
    seq: int = 0


@dataclass
class Guard:
    """The conflict policy of one call, over all its batches."""

    store: Store
    asked: ConflictPolicy | None = None
    custom: ConflictFn | None = None
    written: set[str] = field(default_factory=set)
    """Memories of the batches that are written already: within a call, the earlier ones win."""
    told: list[Conflict] = field(default_factory=list)
    """What was left as it was, to be told of."""
    _answers: dict[tuple[str, str, str], bool] = field(default_factory=dict)

    @property
    def policy(self) -> ConflictPolicy:
        """Return what the call asks for, or else the store."""
        return self.asked or self.store.settings.conflict_policy

    def refuse_raise(self) -> None:
        """Refuse a policy that would leave several items half stored. Raises InputError."""
        if self.policy == "raise":
            raise InputError(
                "on_conflict must be one of: ignore, warn, supersede for many items — got 'raise'.",
                hint="Remember them one by one to have each refused or stored.",
            )

    def look(self, images: Mapping[str, Image], encoded: Mapping[bytes, Encoded]) -> Look:
        """Find what the memories of a batch are similar to. Raises ConflictError where refused."""
        if self.policy == "ignore":
            return Look()
        with self.store.read() as connection:
            look = _look(self.store, connection, images, encoded, self._least())
            # A caller's function may take its time, so it is asked here and not under the lock.
            for draft in look.drafts.values():
                others = _live(self.store, connection, draft.similar)
                others += [look.drafts[id].memory for id in draft.similar if id in look.drafts]
                self._refuse(self._judge(draft, others, draft.similar))
        return look

    def settle(self, tx: Tx, look: Look, made: Iterable[str]) -> list[Conflict]:
        """Act on the conflicts of what a batch has just written; return those to tell of.

        Raises ConflictError where the policy refuses; then nothing is written.
        """
        told: list[Conflict] = []
        fresh = _changed_since(self.store, tx.connection, look.seq) if look.drafts else {}
        for draft in [look.drafts[id] for id in made if id in look.drafts]:
            similar = {id: value for id, value in draft.similar.items() if id not in fresh}
            similar |= _similarities(draft, fresh, self._least())
            conflicts = self._judge(draft, _live(self.store, tx.connection, similar), similar)
            self._refuse(conflicts)
            told += conflicts if self.policy == "warn" else self._replace(tx, draft, conflicts)
        return told

    def tell(self) -> None:
        """Say in one note what there is to tell of."""
        if self.told:
            why = "" if self.policy == "warn" else ": the less trusted of two hides nothing"
            note(f"Stored beside {_described(self.told)}{why}.")

    def _least(self) -> float:
        return self.store.settings.conflict_threshold

    def _judge(
        self, draft: Draft, others: Iterable[Memory], similar: Mapping[str, float]
    ) -> list[Conflict]:
        found = [
            rules.judge(draft.memory, other, similar[other.id], self._least(), self._ask)
            for other in others
        ]
        return sorted((one for one in found if one), key=lambda one: -one.similarity)

    def _ask(self, new: Memory, other: Memory) -> bool:
        """Ask the caller's function about a pair, once."""
        custom = self.custom or self.store.settings.contradiction_fn
        key = (new.id, other.id, other.text)
        if custom is not None and key not in self._answers:
            self._answers[key] = bool(custom(new, other))
        return self._answers.get(key, False)

    def _refuse(self, conflicts: list[Conflict]) -> None:
        if self.policy == "raise" and conflicts:
            raise ConflictError(
                f"Nothing was stored, because of {_described(conflicts)}.",
                conflicts,
                hint="Edit or supersede what is stored, or choose another on_conflict.",
            )

    def _replace(self, tx: Tx, draft: Draft, conflicts: list[Conflict]) -> list[Conflict]:
        """Let the new memory or an earlier one of the call win; return where trust forbids it.

        Text from outside must not hide what the user said.
        """
        new = draft.memory
        if (tx.get("memory", new.id) or {}).get("superseded_by") is not None:
            return []
        earlier = [one for one in conflicts if one.b.id in self.written]
        winner = next((one.b for one in earlier if _distrust(one.b) <= _distrust(new)), None)
        if winner is not None:
            hide(tx, new.id, winner.id)
            return []
        trusted = [one for one in conflicts if _distrust(one.b) < _distrust(new)]
        for one in conflicts:
            if one not in earlier and one not in trusted:
                hide(tx, one.b.id, new.id)
        return [*earlier, *trusted]


def _look(
    store: Store,
    connection: apsw.Connection,
    images: Mapping[str, Image],
    encoded: Mapping[bytes, Encoded],
    least: float,
) -> Look:
    from houkai.search import pairs  # numpy, which ignoring conflicts never needs

    where, view = store.where(), store.sketches().at(connection)
    seq: int = connection.execute("select coalesce(max(seq), 0) from operation").get
    drafts: dict[str, Draft] = {}
    for id, image in images.items():
        windows = _windows(connection, image, encoded) if allows(where, image) else None
        if windows is not None:
            alike = replace(where, type=image["type"])
            near = pairs.around(view, windows, alike, rules.reach(least))
            known = memories.ids(connection, near)
            similar = {known[pk]: similarity for pk, similarity in near.items()}
            drafts[id] = Draft(memories.from_image(id, image), windows, similar)
    ids = list(drafts)
    for pair in pairs.among([draft.windows for draft in drafts.values()], rules.reach(least)):
        drafts[ids[pair.a]].similar[ids[pair.b]] = pair.similarity
    return Look(drafts, seq)


def _windows(
    connection: apsw.Connection, image: Image, encoded: Mapping[bytes, Encoded]
) -> Vector | None:
    """Return a text's vectors: just made, or stored before."""
    from houkai.search import pairs

    hash = text_hash(image["text"])
    if hash in encoded:
        return pairs.stacked([vector for vector, _ in encoded[hash].windows])
    rows: list[tuple[Any, ...]] = connection.execute(
        """select vector from embedding where text_hash = ?
           and model = (select value from meta where key = 'model') order by window""",
        (hash,),
    ).fetchall()
    return pairs.stacked([vector for (vector,) in rows]) if rows else None


def _changed_since(store: Store, connection: apsw.Connection, seq: int) -> dict[str, Vector]:
    """Return the vectors of the memories that other operations have changed, by id."""
    from houkai.search import pairs

    rows: list[tuple[Any, ...]] = connection.execute(
        "select distinct key from change where kind = 'memory' and operation > ?", (seq,)
    ).fetchall()
    numbers = memories.numbers(connection, [id for (id,) in rows], store.collection)
    windows = pairs.windows_of(connection, list(numbers.values()))
    return {id: windows[pk] for id, pk in numbers.items() if pk in windows}


def _similarities(draft: Draft, others: Mapping[str, Vector], least: float) -> dict[str, float]:
    from houkai.search import pairs

    exact = {id: pairs.similarity(draft.windows, windows) for id, windows in others.items()}
    return {id: value for id, value in exact.items() if value >= rules.reach(least)}


def _live(store: Store, connection: apsw.Connection, ids: Iterable[str]) -> list[Memory]:
    """Return those memories that are not hidden."""
    sql, values = condition(store.where())
    found = memories.select(
        connection,
        f"where m.id in (select value from json_each(:ids)) and {sql}",
        {**values, "ids": json.dumps(list(ids))},
    )
    return list(found.values())


def _distrust(memory: Memory) -> int:
    return TRUST_LEVELS.index(memory.trust)


def _described(conflicts: Sequence[Conflict]) -> str:
    named = [
        f"{one.kind} of {one.b.id[:8]} ({one.reason}, {one.similarity:.2f})"
        for one in conflicts[:NAMED]
    ]
    more = [f"{len(conflicts) - NAMED} more"] if len(conflicts) > NAMED else []
    count = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
    return f"{count}: {', '.join(named + more)}"
