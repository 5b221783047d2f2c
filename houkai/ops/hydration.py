"""Turn the numbers of a pool into memories, as they are or as they were."""

from __future__ import annotations

import apsw

from houkai.handle import Store
from houkai.model import Memory
from houkai.ops.history import as_known
from houkai.storage import memories
from houkai.storage.eligible import Filter


def hydrate(
    store: Store, connection: apsw.Connection, where: Filter, pks: list[int]
) -> dict[int, Memory]:
    """Return the memories of a pool's numbers, as they were when a moment was asked about."""
    found = memories.by_pks(connection, [pk for pk in pks if pk > 0], store.touches)
    for pk in pks:
        if pk < 0 and where.known_by is not None:
            id = connection.execute("select id from past where pk = ?", (-pk,)).get
            memory = as_known(connection, where.known_by, id)
            if memory is not None:
                found[pk] = memory
    return found
