"""Measure the time machine: past states, one memory's past, recall as of then, what journals cost.

    python benchmarks/history.py [--memories N] [--changes N] [PART ...]

The parts are states, recall and writes. CPU milliseconds of one warm process, medians; every ratio
is taken within one run, since machines differ and are never idle. Vectors are those of
houkai.testing.HashingEmbedder, whose cost is taken off.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median

import reads

from houkai import MemoryStore
from houkai.storage.journal import Tx, recorded_series
from houkai.testing import HashingEmbedder

ROUNDS = 9
BATCH = 1_000
EMBEDDER = HashingEmbedder()
WORDS = """agent answer branch budget build cache client coffee commit config contract customer
  database deadline deploy design editor error feature friday invoice kernel latency library
  meeting memory migration monday network office password phone prefers project python query
  release report review rollback schema server session sprint storage team test thread token
  travel""".split()  # noqa: SIM905 - a paragraph reads better than a column of quotes
TARGETS = {"state_at": 300.0, "get_at": 2.0, "history": 2.0, "recall": 100.0}
"""Milliseconds not to exceed."""


def texts(count: int, seed: int = 1) -> Iterator[str]:
    """Yield short texts, no two alike; a fifth of their words are rare."""
    chance = random.Random(seed)
    for number in range(count):
        rare = [f"w{chance.randrange(5_000)}" for _ in range(3)]
        yield f"{' '.join(chance.choices(WORDS, k=12))} {' '.join(rare)} {seed}.{number}"


def spent(call: Callable[[int], object], rounds: int = ROUNDS) -> float:
    """Return the median CPU milliseconds of a call, after one that warms."""
    taken = []
    for turn in range(rounds + 1):
        began = time.process_time()
        call(turn)
        taken.append(time.process_time() - began)
    return 1e3 * median(taken[1:])


def told(done: int, of: int, what: str) -> None:
    """Say on stderr how far it is."""
    if done % max(1, of // 20) == 0 or done >= of:
        print(f"\r{what}: {done:,}/{of:,}", end="\n" if done >= of else "", file=sys.stderr)


def row(name: str, value: float, note: str = "", target: str = "") -> None:
    """Print one line of the table."""
    aim = f"target {TARGETS[target]:g}" if target else ""
    print(f"  {name:<44}{value:>10.2f}  {aim:<12}{note}")


def edit_at_random(store: MemoryStore, ids: list[str], count: int) -> None:
    """Change importance or tags, each in an operation of its own; a thousand share a commit."""
    chance = random.Random(3)

    def work(tx: Tx, done: Sequence[int]) -> int | None:
        if len(done) == BATCH:
            return None
        id = chance.choice(ids)
        image = dict(tx.get("memory", id) or {})
        if chance.random() < 0.8:
            image["importance"] = chance.random()
        else:
            image["tags"] = chance.sample(WORDS, 2)
        tx.put("memory", id, image)
        return tx.seq

    job = recorded_series(store.act("edit"), store.now, work)
    for start in range(0, count, BATCH):
        store.db.write(job)
        told(start + BATCH, count, "edits")


def states(folder: Path, memories: int, changes: int) -> None:
    """Time past states, one memory's past and comparisons, in a file of many changes."""
    with MemoryStore(folder / "s.db", embedder=EMBEDDER, durability="normal") as store:
        ids = [m.id for m in store.remember_many(list(texts(memories)), batch_size=1_000)]
        before = store.stats()["bytes"]
        edit_at_random(store, ids, changes - memories)
        first, last = store.journal(None)[-1].ts, store.now()
        moments = [first + (last - first) * share for share in (0.1, 0.5, 0.9, 1.0)]
        print(f"\n{memories:,} memories, {changes:,} changes; CPU ms")
        for share, moment in zip((10, 50, 90, 100), moments, strict=True):
            cost = spent(lambda _, t=moment: store.state_at(t), 5)
            row(f"state_at, {share} % of the way", cost, target="state_at")
        middle = moments[1]
        busy = max(ids[:200], key=lambda id: len(store.history(id)))
        row("get_at", spent(lambda n: store.get_at(ids[n], middle)), target="get_at")
        many = len(store.history(busy))
        note = f"{many} changes"
        row("history of one memory", spent(lambda _: store.history(busy)), note, "history")
        row("versions of one memory", spent(lambda _: store.versions(busy)))
        for name, since in (("1 %", 0.99), ("10 %", 0.9), ("all", 0.0)):
            moment = first + (last - first) * since
            rows = len(store.diff(moment))
            cost = spent(lambda _, t=moment: store.diff(t), 3)
            row(f"diff over the last {name} of the time", cost, f"{rows:,} rows")
        row("journal(20)", spent(lambda _: store.journal(20)))
        row("verify_journal", spent(lambda _: store.verify_journal(), 3))
        bytes_each = (store.stats()["bytes"] - before) / (changes - memories)
        row("bytes of file for each edit", bytes_each)


def wide(folder: Path, changes: int) -> None:
    """Time past states in a file where every change made a memory of its own."""
    with MemoryStore(folder / "w.db", embedder=EMBEDDER, durability="normal") as store:
        for start in range(0, changes, 10_000):
            store.remember_many(list(texts(10_000, start + 5)), batch_size=1_000)
            told(start + 10_000, changes, "memories")
        half = store.journal(None)[changes // 2_000].ts
        print(f"\n{changes:,} memories, each with one change; CPU ms")
        row(f"state_at, {changes // 2:,} memories", spent(lambda _: store.state_at(half), 3))
        row(f"state_at, {changes:,} memories", spent(lambda _: store.state_at("now"), 3))


def recall(folder: Path, memories: int) -> None:
    """Time recall as of a moment before and amid as many edits as there are memories."""
    with MemoryStore(folder / "r.db", embedder=EMBEDDER, durability="normal") as store:
        lines = list(reads.texts(2 * memories))
        made = store.remember_many(lines[:memories], batch_size=1_000)
        asked = reads.queries(store, 4)
        moments = {"before all edits": store.now()}
        for number, (memory, text) in enumerate(zip(made, lines[memories:], strict=True), 1):
            store.edit(memory.id, text=text)
            if number == memories // 2:
                moments["amid the edits"] = store.now()
            told(number, memories, "edits")
        own = spent(lambda n: EMBEDDER.query(asked[n]))
        print(f"\n{memories:,} memories and as many edits of their texts; CPU ms")
        for mode in ("hybrid", "semantic"):
            now = spent(lambda n, m=mode: store.recall(asked[n], mode=m, touch=False)) - own
            row(f"recall now, {mode}", now)
            for name, moment in moments.items():
                cost = spent(
                    lambda n, t=moment, m=mode: store.recall(asked[n], as_of=t, mode=m, touch=False)
                )
                note = f"{(cost - own) / now:.1f} times now"
                row(f"recall(as_of) {name}, {mode}", cost - own, note, "recall")


def writes(folder: Path, count: int = 600) -> None:
    """Compare writes with and without the journal, turn by turn in one run."""
    print(f"\n{count} writes each; CPU ms a write, median")
    stores = {
        on: MemoryStore(
            folder / f"j{on}.db", embedder=EMBEDDER, durability="normal", journal_enabled=on
        )
        for on in (True, False)
    }
    made: dict[bool, list[str]] = {True: [], False: []}
    fresh = {on: texts(3 * count, 11) for on in stores}
    calls: dict[str, Callable[[bool, int], object]] = {
        "remember": lambda on, _: made[on].append(stores[on].remember(next(fresh[on])).id),
        "edit importance": lambda on, n: stores[on].edit(made[on][n], importance=n / count),
        "edit text": lambda on, n: stores[on].edit(made[on][n], text=next(fresh[on])),
        "link": lambda on, n: stores[on].link(made[on][n], made[on][n - 1]),
        "forget": lambda on, n: stores[on].forget(made[on][n]),
    }
    for name, call in calls.items():
        taken: dict[bool, list[float]] = {True: [], False: []}
        for number in range(count):
            for on in (True, False) if number % 2 else (False, True):
                began = time.process_time()
                call(on, number)
                taken[on].append(time.process_time() - began)
        cost, bare = (1e3 * median(taken[on]) for on in (True, False))
        row(name, cost, f"{bare:.2f} without the journal, ratio {cost / bare:.2f}")
    sizes = {on: store.stats()["bytes"] / 2**20 for on, store in stores.items()}
    print(f"  files: {sizes[True]:.1f} MiB with the journal, {sizes[False]:.1f} without")
    for store in stores.values():
        store.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("parts", nargs="*", choices=["states", "recall", "writes", []])
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=100_000)
    given = parser.parse_args()
    parts = given.parts or ["states", "recall", "writes"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if "states" in parts:
            states(folder, given.memories, given.changes)
            wide(folder, given.changes)
        if "recall" in parts:
            recall(folder, given.memories)
        if "writes" in parts:
            writes(folder)


if __name__ == "__main__":
    main()
