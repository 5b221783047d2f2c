"""One state of all memories in RAM: read whole, or patched where it has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search import facts as all_facts
from houkai.search.arrays import Ints, Mask, bound, held
from houkai.search.facts import Facts, Labels

_SKETCHES: Final = """select m.pk, e.pk, e.sketch from memory m
  join embedding e on e.text_hash = m.text_hash
  where e.model = (select value from meta where key = 'model')"""
_CHUNK: Final = 20_000
_PICK: Final = 0.25
"""Share of eligible windows below which picking them out is cheaper than passing over the rest."""


class At(NamedTuple):
    """Which state of the file: the last operation, the vectors' epoch, the operation's hash.

    The hash tells a file that was restored and written again from the one that it was.
    """

    seq: int
    epoch: int
    hash: bytes | None


@dataclass(frozen=True)
class Copy:
    """One state of all memories and their windows, by their numbers; never changed in place.

    `bits` holds a row for each 64 dimensions, so that distances add up along whole rows.
    """

    at: At
    facts: Facts
    pk: Ints
    embedding: Ints
    bits: NDArray[np.uint64]

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self.pk)

    @cached_property
    def single(self) -> bool:
        """Say whether no memory has two windows."""
        return bool((self.pk[1:] > self.pk[:-1]).all())

    def inside(self, eligible: Mask) -> Mask:
        """Return which windows belong to eligible memories."""
        if len(self.pk) == len(self.facts.pk):
            return eligible
        return eligible[np.searchsorted(self.facts.pk, self.pk)]

    def near(self, sketch: bytes, inside: Mask, limit: int, depth: int) -> Ints:
        """Return the places, of those inside, of the windows that differ in the fewest signs.

        At least `limit`, and all that differ in as many as the last of them; more where they are
        windows of fewer than `depth` memories.
        """
        some = np.flatnonzero(inside) if inside.mean() < _PICK else slice(None)
        distance = np.zeros(len(self.pk[some]), np.uint16)
        for row, word in zip(self.bits, _words(sketch), strict=True):
            distance += np.bitwise_count(row[some] ^ word)
        if isinstance(some, slice):
            distance[~inside] = np.iinfo(np.uint16).max
        upto, all_of_them = np.cumsum(np.bincount(distance)), int(np.count_nonzero(inside))
        while True:
            near = np.flatnonzero(distance <= int(np.searchsorted(upto, limit)))
            at: Ints = near if isinstance(some, slice) else some[near]
            if self.single or limit == all_of_them or owners(self.pk[at]) >= depth:
                return at
            limit = min(2 * limit, all_of_them)


def owners(pk: Ints) -> int:
    """Return how many memories some windows belong to, whose numbers are in order."""
    return int(np.count_nonzero(pk[1:] != pk[:-1])) + min(1, len(pk))


def read(connection: apsw.Connection, at: At) -> Copy:
    """Read all memories."""
    return _read(connection, Labels(), at, "true", "memory m order by m.pk", ())


def _read(
    connection: apsw.Connection,
    labels: Labels,
    state: At,
    which: str,
    rest: str,
    values: Sequence[Any],
) -> Copy:
    """Read memories; `which` chooses them for their sketches, `rest` for their facts."""
    facts = all_facts.read(connection, labels, rest, values)
    cursor = connection.execute(f"{_SKETCHES} and {which}", values)
    pk, embedding, bits = [np.empty(0, np.int64)], [np.empty(0, np.int64)], list[Any]()
    while rows := list(islice(cursor, _CHUNK)):
        pk.append(np.array([row[0] for row in rows], np.int64))
        embedding.append(np.array([row[1] for row in rows], np.int64))
        bits.append(_words(b"".join([_padded(row[2]) for row in rows])).reshape(len(rows), -1))
    pks, embeddings = np.concatenate(pk), np.concatenate(embedding)
    signs = np.concatenate(bits) if bits else np.empty((0, 1), np.uint64)
    order = np.lexsort((embeddings, pks))
    turned = np.ascontiguousarray(signs[order].T)
    return Copy(state, facts, pks[order], embeddings[order], turned)


def patched(connection: apsw.Connection, old: Copy, changed: Ints, state: At) -> Copy:
    """Put the changed memories in the place of what they were."""
    if not len(changed):
        return replace(old, at=state)
    which = "m.pk in (select value from carray(?))"
    values = (bound(changed),)
    labels = old.facts.labels
    fresh = _read(connection, labels, state, which, f"memory m where {which} order by m.pk", values)
    if changed[0] > old.facts.pk.max(initial=0):
        return _with(old, fresh)
    stay = old.facts.take(~held(old.facts.pk, changed))
    there = ~held(old.pk, changed)
    kept = Copy(state, stay, old.pk[there], old.embedding[there], old.bits[:, there])
    both = _with(kept, fresh)
    order = np.argsort(both.pk, kind="stable")
    facts = both.facts.take(np.argsort(both.facts.pk, kind="stable"))
    return Copy(state, facts, both.pk[order], both.embedding[order], both.bits[:, order])


def _with(old: Copy, fresh: Copy) -> Copy:
    """Return what two copies hold, one behind the other, in the state of the fresh one."""
    facts = old.facts.joined(fresh.facts)
    if not len(old) or not len(fresh):  # which has no bits to speak of
        return replace(fresh if len(fresh) else old, at=fresh.at, facts=facts)
    return Copy(
        fresh.at,
        facts,
        np.concatenate([old.pk, fresh.pk]),
        np.concatenate([old.embedding, fresh.embedding]),
        np.concatenate([old.bits, fresh.bits], axis=1),
    )


def _padded(sketch: bytes) -> bytes:
    return sketch.ljust(-(-len(sketch) // 8) * 8, b"\0")


def _words(sketch: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(_padded(sketch), np.uint64)
