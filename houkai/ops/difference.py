"""Compare what the store knew at two moments."""

from __future__ import annotations

from houkai import params
from houkai.handle import Store
from houkai.model import Difference
from houkai.ops.history import known_by
from houkai.rules import clean
from houkai.storage import history as log


def diff(store: Store, t1: params.AsOf, t2: params.AsOf = "now") -> list[Difference]:
    """Return what was added, removed or changed between two moments, by the journal's order.

    Rows that changed and changed back are left out. Raises InputError.
    """
    now = store.now()
    values = clean(diff, {"t1": t1, "t2": t2}, at=now)
    with store.read() as connection:
        first, last = (known_by(connection, values[name], now) for name in ("t1", "t2"))
        low, high = sorted((first, last))
        found = []
        for kind, key in log.changed_between(connection, low, high, store.collection):
            before = log.image_at(connection, first, kind, key)
            after = log.image_at(connection, last, kind, key)
            if before != after:
                found.append(Difference(kind, key, before, after))
    return found
