"""What eligibility and ranking ask of memories, as parallel arrays.

`mask` says in arrays what `storage/eligible.py` says in SQL, for a process that holds the facts of
all memories and need not look each one up; a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import count, islice
from typing import Any, Final

import apsw
import numpy as np

from houkai.search.arrays import Floats, Ints, Mask, bound, marked
from houkai.storage.eligible import ANY_COLLECTION, Filter
from houkai.vocabulary import MEMORY_TYPES, TRUST_LEVELS

NOBODY: Final = -1
"""The code of an absent text."""
_UNHEARD: Final = -2
"""The code of a text that nothing has."""
_TYPES: Final = {name: code for code, name in enumerate(MEMORY_TYPES)}
_TRUST: Final = {name: code for code, name in enumerate(TRUST_LEVELS)}
_CHUNK: Final = 20_000
_COLUMNS: Final = """m.pk, m.collection, m.operation, m.type, m.trust, m.importance, m.polarity,
  m.created_at, m.expires_at, m.valid_from, m.valid_until, m.superseded_by is not null,
  length(m.text), m.position, m.source, m.author"""


class Labels(dict[str | None, int]):
    """Numbers for texts: the same for the same text, as long as this is kept."""

    def __init__(self) -> None:
        super().__init__({None: NOBODY})
        self.texts: dict[int, str | None] = {NOBODY: None}
        self._next = count()

    def __missing__(self, text: str | None) -> int:
        """Give a text its number; two threads at once agree on one."""
        number = self.setdefault(text, next(self._next))
        self.texts[number] = text
        return number


@dataclass(frozen=True)
class Facts:
    """Memories in the order of their numbers; NaN stands for an absent time."""

    labels: Labels
    pk: Ints
    collection: Ints
    operation: Ints
    type: Ints
    trust: Ints
    importance: Floats
    polarity: Floats
    created_at: Floats
    expires_at: Floats
    valid_from: Floats
    valid_until: Floats
    superseded: Mask
    length: Ints
    position: Ints
    source: Ints
    author: Ints

    def __len__(self) -> int:
        """Return the number of memories."""
        return len(self.pk)

    def take(self, at: Ints | Mask) -> Facts:
        """Return those at some places."""
        return Facts(self.labels, *(getattr(self, name)[at] for name in _ARRAYS))

    def joined(self, more: Facts) -> Facts:
        """Return these and others behind them, of the same labels."""
        pairs = ((getattr(self, name), getattr(more, name)) for name in _ARRAYS)
        return Facts(self.labels, *(np.concatenate(pair) for pair in pairs))


_ARRAYS: Final = tuple(field.name for field in fields(Facts))[1:]
_KINDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("pk", "operation", "position"), np.int64),
    **dict.fromkeys(("collection", "length", "source", "author"), np.int32),
    **dict.fromkeys(("type", "trust"), np.int8),
    "superseded": np.bool_,
}
"""How the arrays are kept; the others hold floats."""


def read(connection: apsw.Connection, labels: Labels, rest: str, values: Any = ()) -> Facts:
    """Read the facts of memories or past versions; `rest` ends a select of them as `m`."""
    cursor = connection.execute(f"select {_COLUMNS} from {rest}", values)
    parts = [_arrays([], labels)]
    while rows := list(islice(cursor, _CHUNK)):
        parts.append(_arrays(rows, labels))
    return Facts(labels, *(np.concatenate(some) for some in zip(*parts, strict=True)))


def _arrays(rows: list[tuple[Any, ...]], labels: Labels) -> list[Any]:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_ARRAYS)
    coded: dict[str, dict[Any, int]] = {
        "type": _TYPES,
        "trust": _TRUST,
        "source": labels,
        "author": labels,
    }
    arrays = []
    for name, column in zip(_ARRAYS, columns, strict=True):
        values: Iterable[Any] = column
        if name in coded:
            values = list(map(coded[name].__getitem__, column))
        elif name == "position":
            values = [place or 0 for place in column]
        arrays.append(np.array(values, _KINDS.get(name, np.float64)))
    return arrays


def mask(facts: Facts, where: Filter, collection: int | None, tagged: Ints) -> Mask:
    """Return which memories a filter lets through.

    `collection` is the number of its collection; `tagged` holds the memories with its tag.
    """
    passing = np.ones(len(facts), bool)
    if where.collection != ANY_COLLECTION:
        passing &= facts.collection == (NOBODY if collection is None else collection)
    if where.tag is not None:
        passing &= marked(facts.pk, tagged)
    for name, test in _ASKED.items():
        value = getattr(where, name)
        if value is not None:
            passing &= test(facts, value)
    if not where.include_superseded:
        passing &= ~facts.superseded
    if not where.include_expired:
        passing &= ~(facts.expires_at <= where.now)
    if not where.include_retired:
        then = where.now if where.valid_at is None else where.valid_at
        passing &= ~((facts.valid_from > then) | (facts.valid_until <= then))
    return passing


_ASKED: Final[Mapping[str, Callable[[Facts, Any], Mask]]] = {
    "type": lambda facts, value: facts.type == _TYPES[value],
    "min_importance": lambda facts, value: facts.importance >= value,
    "source": lambda facts, value: facts.source == facts.labels.get(value, _UNHEARD),
    "author": lambda facts, value: facts.author == facts.labels.get(value, _UNHEARD),
    "since": lambda facts, value: facts.created_at >= value,
    "until": lambda facts, value: facts.created_at <= value,
    "min_trust": lambda facts, value: facts.trust <= _TRUST[value],
    "known_by": lambda facts, value: facts.operation <= value,
}
"""The fields of a filter that stand for nothing when absent, and what each asks."""


def of(connection: apsw.Connection, labels: Labels, table: str, pks: Ints) -> Facts:
    """Read the facts of some memories or past versions, in their order."""
    if not len(pks):
        return Facts(labels, *_arrays([], labels))
    rest = f"carray(?) a cross join {table} m on m.pk = a.value"
    return read(connection, labels, rest, (bound(pks),))
