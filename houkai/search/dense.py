"""The dense channel: which stored vectors are nearest to the query's, exactly scored.

The one planner: few eligible memories are all scored; of many, the nearest sketches are.
"""

from __future__ import annotations

import math
from typing import Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.search.resident import Resident
from houkai.storage import vectors
from houkai.storage.eligible import ANY_COLLECTION, Filter, condition
from houkai.storage.rows import collection_pk

EXACT: Final = 4_000
"""Eligible memories up to which every one is scored."""
FLOOR: Final = 320
PER_ROOT: Final = 8.0
"""Sketch candidates: max(FLOOR, PER_ROOT * sqrt(N))."""


def search(
    connection: apsw.Connection,
    vector: NDArray[np.float32],
    where: Filter,
    resident: Resident,
    at_least: int = 0,
) -> dict[int, float]:
    """Return the cosines of the nearest eligible memories, `at_least` many if there are."""
    sql, values = condition(where)
    few: list[tuple[Any, ...]] = connection.execute(
        f"select m.pk from memory m where {sql} limit {EXACT + 1}", values
    ).fetchall()
    if len(few) <= EXACT or len(vector) < 64:
        if len(few) > EXACT:
            few = connection.execute(f"select m.pk from memory m where {sql}", values).fetchall()
        return cosines(connection, [pk for (pk,) in few], vector)
    return _by_sketch(connection, vector, where, resident, at_least)


def _by_sketch(
    connection: apsw.Connection,
    vector: NDArray[np.float32],
    where: Filter,
    resident: Resident,
    at_least: int,
) -> dict[int, float]:
    """Widen the circle of nearest sketches until enough of them are eligible."""
    scope = (
        None if where.collection == ANY_COLLECTION else collection_pk(connection, where.collection)
    )
    total = connection.execute("select count(*) from embedding").get
    wanted = max(FLOOR, at_least, math.ceil(PER_ROOT * math.sqrt(total)))
    sql, values = condition(where)
    reach = wanted
    while True:
        near = resident.nearest(connection, vectors.sketch(vector), scope, reach)
        rows: list[tuple[Any, ...]] = connection.execute(
            f"""select m.pk from memory m
                where m.pk in (select value from carray(:near)) and {sql}""",
            {**values, "near": apsw.carray(near)},
        ).fetchall()
        if len(rows) >= wanted or reach >= total:
            return cosines(connection, [pk for (pk,) in rows], vector)
        reach *= 4


def cosines(
    connection: apsw.Connection, pks: list[int], vector: NDArray[np.float32]
) -> dict[int, float]:
    """Return the exact cosine of memories by number: of several windows, the best."""
    if not pks:
        return {}
    rows: list[tuple[Any, ...]] = connection.execute(
        """select m.pk, e.vector from memory m join embedding e on e.text_hash = m.text_hash
           where m.pk in (select value from carray(?))
             and e.model = (select value from meta where key = 'model')""",
        (apsw.carray(np.array(pks, np.int64)),),
    ).fetchall()
    if not rows:
        return {}
    stored = np.frombuffer(b"".join(row[1] for row in rows), "<f2").reshape(len(rows), -1)
    values = (stored.astype(np.float32) @ vector).tolist()
    best: dict[int, float] = {}
    for (pk, _), value in zip(rows, values, strict=True):
        if value > best.get(pk, -2.0):
            best[pk] = value
    return best
