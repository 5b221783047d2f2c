"""Time reading a store of short texts: listing, looking up, and recall without the embedding.

    python benchmarks/reads.py [--memories 10000] [--work DIR] [--json FILE]

Thread CPU in ms, medians, one warm process. Texts are twelve made-up words among eight stop words;
as in English without them [Mandelbrot 1953], a word's frequency falls as 1 / (rank + 60), so that
the commonest is in 3 % of the texts. Vectors are houkai.testing.HashingEmbedder's, whose cost is
taken off.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from houkai import MemoryStore
from houkai.search.warming import OFTEN
from houkai.testing import HashingEmbedder

ROUNDS = 15
COMMON = ["the", "of", "and", "to", "in", "a", "is", "that"]
OFFSET = 60
SIGNS = "bdfgklmnprstvz", "aeiou"


def vocabulary(count: int, dice: random.Random) -> list[str]:
    """Return made-up words of two to four syllables."""
    words: set[str] = set()
    while len(words) < count:
        words.add(
            "".join(
                dice.choice(SIGNS[0]) + dice.choice(SIGNS[1]) for _ in range(dice.randint(2, 4))
            )
        )
    return sorted(words, key=lambda _: dice.random())


def texts(count: int) -> Iterator[str]:
    """Yield texts of twenty words."""
    dice = random.Random(7)
    words = vocabulary(20_000, dice)
    weights = list(accumulate(1 / (rank + OFFSET) for rank in range(len(words))))
    for _ in range(count):
        made = dice.choices(words, cum_weights=weights, k=12) + COMMON
        dice.shuffle(made)
        yield " ".join(made)


def median(work: Callable[[int], object]) -> float:
    """Return the median thread CPU of a call in ms, after one call that warms."""
    work(0)
    taken = []
    for turn in range(1, ROUNDS + 1):
        started = time.thread_time()
        work(turn)
        taken.append(time.thread_time() - started)
    return 1000 * statistics.median(taken)


def queries(store: MemoryStore, words: int) -> list[str]:
    """Return questions cut from stored texts, without the stop words."""
    kept = ([w for w in m.text.split() if w not in COMMON] for m in store.list_recent(200))
    return [" ".join(found[:words]) for found in kept if len(found) >= words][: ROUNDS + 1]


def measure(store: MemoryStore, embedder: HashingEmbedder) -> dict[str, float]:
    """Print a line an operation; return what each took in ms."""
    recent = store.list_recent(50)
    for memory in recent[: 2 * OFTEN]:  # until the store holds what it asks
        store.recall(memory.text, touch=False)
    ids = [memory.id for memory in recent]
    rows: list[tuple[str, Callable[[int], object], list[str]]] = [
        ("get", lambda n: store.get(ids[n]), []),
        ("find_id by 8 digits", lambda n: store.find_id(ids[n][:8]), []),
        ("list_recent(20)", lambda _: store.list_recent(20), []),
        ("history of one", lambda n: store.history(ids[n]), []),
    ]
    for count in (4, 10):
        asked = queries(store, count)
        for name, options in (
            ("hybrid", {}),
            ("hybrid, a tag of 10 %", {"tag": "tenth"}),
            ("hybrid, a tag of 1 %", {"tag": "hundredth"}),
            ("semantic", {"mode": "semantic"}),
        ):
            rows.append(
                (
                    f"recall {name}, {count} words",
                    lambda n, q=asked, o=options: store.recall(q[n], touch=False, **o),
                    asked,
                )
            )
    took = {}
    for name, work, asked in rows:
        own = median(lambda n, q=asked: embedder.query(q[n])) if asked else 0.0
        took[name] = median(work) - own
        print(f"{name:36} {took[name]:8.2f} ms", flush=True)
    return took


def main() -> None:
    """Fill a store and time it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--json", type=Path, help="a file to add the figures to, a line each")
    given = parser.parse_args()
    embedder = HashingEmbedder()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.work or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        with MemoryStore(folder / f"reads-{given.memories}.db", embedder=embedder) as store:
            if not store.count():
                store.remember_many(
                    [
                        {"text": text, "tags": tags(number)}
                        for number, text in enumerate(texts(given.memories))
                    ],
                    batch_size=1000,
                )
            print(f"{store.count():,} memories")
            took = measure(store, embedder)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(f"peak memory {peak:.0f} MiB")
    if given.json:
        with given.json.open("a", encoding="utf-8") as out:
            for name, ms in took.items():
                row = {"memories": given.memories, "name": name, "ms": round(ms, 2)}
                out.write(json.dumps(row) + "\n")


def tags(number: int) -> list[str]:
    """Return the tags of a memory, by its number."""
    return (["tenth"] if number % 10 == 0 else []) + (["hundredth"] if number % 100 == 0 else [])


if __name__ == "__main__":
    main()
