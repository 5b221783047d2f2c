"""Measure walks over a power-law graph: level by level as houkai walks, and by a recursive query.

    python benchmarks/graph.py [--nodes N] [--edges N] [--starts N]

Half the walks begin anywhere, half at the busiest hubs. CPU milliseconds, median and highest.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate
from pathlib import Path
from statistics import median

import apsw

from houkai import MemoryStore
from houkai.storage import walks
from houkai.testing import HashingEmbedder
from houkai.vocabulary import LINK_RELS

SKEW = 0.6
RECURSIVE = """
with recursive walk(pk, hop) as (
  select ?1, 0
  union select l.dst, hop + 1 from walk w join link l on l.src = w.pk where hop < ?2
  union select l.src, hop + 1 from walk w join link l on l.dst = w.pk where hop < ?2)
select pk, min(hop) from walk group by pk"""


def fill(connection: apsw.Connection, nodes: int, edges: int) -> None:
    """Enter memories and links straight into their tables, as journaling 100,000 takes minutes."""
    chance = random.Random(1)
    collection = connection.execute("select pk from collection").get
    connection.executemany(
        """insert into memory(id, collection, type, text, text_hash, content_hash, importance,
             created_at, operation) values (?, ?, 'semantic', ?, randomblob(16), ?, 0.5, ?, 1)""",
        [(f"{n:08x}", collection, f"memory {n}", str(n), float(n)) for n in range(nodes)],
    )
    pks = [pk for (pk,) in connection.execute("select pk from memory order by pk")]
    weights = list(accumulate((rank + 1) ** -SKEW for rank in range(len(pks))))
    made: set[tuple[int, str, int]] = set()
    while len(made) < edges:
        src, dst = chance.choice(pks), chance.choices(pks, cum_weights=weights)[0]
        if src != dst:
            made.add((src, chance.choice(LINK_RELS), dst))
    connection.executemany(
        "insert into link(src, rel, dst, created_at) values (?, ?, ?, 0)", sorted(made)
    )


def timed(call: Callable[[], object]) -> float:
    """Return the CPU milliseconds of a call, the best of three."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
    return best * 1e3


def report(name: str, depth: int, times: Iterable[float], sizes: Iterable[int]) -> None:
    """Print one line of the table."""
    spent = list(times)
    print(f"{name:<22}{depth:>6}{median(spent):>10.2f}{max(spent):>10.2f}{median(sizes):>12.0f}")


def recursive(connection: apsw.Connection, start: int, depth: int) -> list[object]:
    """Walk as one recursive query."""
    return list(connection.execute(RECURSIVE, (start, depth)))


def measure(store: MemoryStore, kind: str, starts: list[tuple[str, int]]) -> None:
    """Time every walk from some memories."""
    for depth in (1, 2, 3):
        with store.read() as db:
            sizes = [len(walks.reach(db, [pk], depth).hops) for _, pk in starts]
            levels = [timed(partial(walks.reach, db, [pk], depth)) for _, pk in starts]
            query = [timed(partial(recursive, db, pk, depth)) for _, pk in starts]
        report(f"{kind}: by level", depth, levels, sizes)
        report(f"{kind}: recursive", depth, query, sizes)
        for limit in (100, None):
            ask = partial(store.neighbors, depth=depth, limit=limit)
            whole = [timed(partial(ask, id)) for id, _ in starts]
            report(f"{kind}: neighbors({limit or ''})", depth, whole, sizes)
    pairs = [(a[0], b[0]) for a, b in zip(starts, reversed(starts), strict=True)]
    paths = [timed(partial(store.find_path, *pair)) for pair in pairs]
    report(f"{kind}: find_path()", 6, paths, [len(store.find_path(*pair)) for pair in pairs])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=33_000)
    parser.add_argument("--edges", type=int, default=100_000)
    parser.add_argument("--starts", type=int, default=40)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    with (
        tempfile.TemporaryDirectory() as folder,
        MemoryStore(Path(folder) / "graph.db", embedder=HashingEmbedder(8)) as store,
    ):
        store.remember("the first")
        store.db.write(lambda connection: fill(connection, given.nodes, given.edges))
        with store.read() as connection:
            nodes: list[tuple[str, int]] = connection.execute(
                "select id, pk from memory"
            ).fetchall()
            hubs: list[tuple[str, int]] = connection.execute(
                """select m.id, m.pk from link l join memory m on m.pk = l.dst
                   group by m.pk order by count(*) desc limit ?""",
                (given.starts // 4,),
            ).fetchall()
        print(f"{given.nodes:,} memories, {given.edges:,} links")
        print(f"{'':<22}{'depth':>6}{'median':>10}{'highest':>10}{'memories':>12}")
        measure(store, "anywhere", random.Random(2).sample(nodes, given.starts))
        measure(store, "hubs", hubs)


if __name__ == "__main__":
    main()
