"""Measure durable writes: alone, in a crowd on a slow disk, by many processes, and in bulk.

Run `python benchmarks/writes.py [--quick] [--in FOLDER] [PART ...]`; the parts are alone, crowd,
processes and bulk. Every ratio is taken within one run, since machines differ and are never idle.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import apsw

from houkai import MemoryStore
from houkai.testing import HashingEmbedder

WORDS = """agent answer branch budget build cache client coffee commit config contract customer
  database deadline deploy design editor error feature friday invoice kernel latency library
  meeting memory migration monday network office password phone prefers project python query
  release report review rollback schema server session sprint storage team test thread token
  travel"""
SYNC_S = 0.023
"""An fsync of the disk on which the other store's figures were measured."""
CROWD = {1: 39, 8: 290, 32: 900, 128: 1_900}
"""Writes a second to reach on that disk, by threads."""


def texts(count: int, seed: int = 1) -> Iterator[str]:
    """Yield short texts, no two alike."""
    chance, words = random.Random(seed), WORDS.split()
    for number in range(count):
        yield f"{' '.join(chance.choices(words, k=14))} {seed}.{number}"


def table(title: str, heads: list[str], rows: list[list[str]]) -> None:
    """Print a table for people."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    print(f"\n{title}")
    for row in [heads, *rows]:
        print("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)))


def micros(seconds: float) -> str:
    """Return a time in microseconds."""
    return f"{seconds * 1e6:,.0f}"


class Ready(HashingEmbedder):
    """An embedder that hands out vectors made before: the cost of a model is no write's."""

    def __init__(self) -> None:
        super().__init__()
        self.name = self.fingerprint = "ready"
        self._pool = super().passages(list(texts(512)))

    def passages(self, texts: Sequence[str]) -> list[Any]:
        """Return one window a text, (1, dim), the same for the same text."""
        return [self._pool[crc32(text.encode()) % len(self._pool)] for text in texts]


@contextmanager
def opened(folder: Path, embedder: Any) -> Iterator[MemoryStore]:
    """Yield a store in a new file that has its model and its tables warm."""
    with (
        tempfile.TemporaryDirectory(dir=folder) as place,
        MemoryStore(Path(place) / "memory.db", embedder=embedder) as store,
    ):
        store.remember("the first memory chooses the model")
        yield store


def alone(folder: Path, quick: bool) -> None:
    """Compare one caller's writes with a bare insert of the same bytes, taken in turns."""
    ours: list[float] = []
    bare: list[float] = []
    cpu = 0.0
    with opened(folder, Ready()) as store:
        plain = apsw.Connection(f"{store.db.path}.plain")
        plain.pragma("journal_mode", "wal")
        plain.pragma("synchronous", 2)
        plain.execute("create table t(pk integer primary key, text text, vector blob, image blob)")
        for text in texts(200 if quick else 1_000):
            began, used = time.perf_counter(), time.process_time()
            store.remember(text)
            ours.append(time.perf_counter() - began)
            cpu += time.process_time() - used
            row = (text, os.urandom(768 + 48), os.urandom(len(text) + 120))
            began = time.perf_counter()
            plain.execute("insert into t(text, vector, image) values (?, ?, ?)", row)
            bare.append(time.perf_counter() - began)
        plain.close()
    median, base = statistics.median(ours), statistics.median(bare)
    table(
        "alone: one durable write after the other (µs)",
        ["", "median", "p90", "CPU"],
        [
            ["houkai", micros(median), micros(at(ours, 0.9)), micros(cpu / len(ours))],
            ["bare insert", micros(base), micros(at(bare, 0.9)), ""],
            ["ratio", f"{median / base:.2f}", f"{at(ours, 0.9) / at(bare, 0.9):.2f}", "target 2"],
        ],
    )


def at(values: list[float], share: float) -> float:
    """Return a quantile."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


class SlowFile(apsw.VFSFile):
    """A file whose fsync takes as long as that of a slow disk."""

    def xSync(self, _flags: int) -> None:  # noqa: N802 - SQLite's name
        """Sleep."""
        time.sleep(SYNC_S)


class SlowDisk(apsw.VFS):
    """A file system of such files, in the place of the usual one while it is there."""

    def __init__(self) -> None:
        super().__init__("slow", "", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> SlowFile:  # noqa: N802 - SQLite's name
        """Open a slow file."""
        return SlowFile("unix", name, flags)


def crowd(folder: Path, quick: bool) -> None:
    """Let 1 to 128 threads write at once on a disk with a slow fsync."""
    usual = apsw.vfs_names()[0]
    disk = SlowDisk()
    try:
        rows = [_crowd(folder, threads, 1.0 if quick else 5.0) for threads in CROWD]
    finally:
        apsw.set_default_vfs(usual)
        disk.unregister()
    table(
        f"crowd: threads that write at once, an fsync takes {SYNC_S * 1e3:.0f} ms",
        ["threads", "writes/s", "target", "slowest:fastest", "p99 ms", "CPU µs"],
        rows,
    )


def _crowd(folder: Path, threads: int, seconds: float) -> list[str]:
    counts, waits = [0] * threads, list[float]()
    with opened(folder, Ready()) as store:
        stop = time.perf_counter() + seconds

        def work(me: int) -> None:
            for text in texts(1_000_000, me):
                began = time.perf_counter()
                if began > stop:
                    return
                store.remember(text)
                waits.append(time.perf_counter() - began)
                counts[me] += 1

        used, began = time.process_time(), time.perf_counter()
        everyone = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for one in everyone:
            one.start()
        for one in everyone:
            one.join()
        took, used = time.perf_counter() - began, time.process_time() - used
    done = sum(counts)
    rates = [str(threads), f"{done / took:,.0f}", f"{CROWD[threads]:,}"]
    shares = f"1:{max(counts) / max(1, min(counts)):.1f}"
    return [*rates, shares, f"{at(waits, 0.99) * 1e3:,.0f}", micros(used / done)]


WRITER = """
import sys, time
from houkai import MemoryStore
from houkai.testing import HashingEmbedder
path, me, writes = sys.argv[1], sys.argv[2], int(sys.argv[3])
with MemoryStore(path, embedder=HashingEmbedder()) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    longest, refused = 0.0, 0
    for number in range(writes):
        began = time.perf_counter()
        try:
            store.remember(f"process {me} writes fact number {number}")
        except Exception as error:
            refused += 1
            print(error, file=sys.stderr)
        longest = max(longest, time.perf_counter() - began)
print(longest, refused)
"""
READER = """
import sys, time
from houkai import MemoryStore
from houkai.testing import HashingEmbedder
count = 0
with MemoryStore(sys.argv[1], embedder=HashingEmbedder()) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    while not store.find_by_content_hash("stop reading"):
        store.recall("a fact of some process", touch=False)
        store.list_recent(20)
        count += 1
        time.sleep(0.02)
print(count, 0)
"""


def processes(folder: Path, quick: bool) -> None:
    """Let 8 processes write beside 4 that recall 50 times a second."""
    writes = 50 if quick else 500
    with opened(folder, HashingEmbedder()) as store:
        path = str(store.db.path)
        writers = [_started(WRITER, path, str(n), str(writes)) for n in range(8)]
        readers = [_started(READER, path) for _ in range(4)]
        for process in [*writers, *readers]:
            process.stdout.readline()
        for process in [*writers, *readers]:
            process.stdin.write("go\n")
            process.stdin.flush()
        began = time.perf_counter()
        told = [_ended(process) for process in writers]
        took = time.perf_counter() - began
        there = store.count() - 1
        store.remember("stop reading")
        reads = sum(int(_ended(process)[0]) for process in readers)
    table(
        f"processes: 8 write {writes} memories each, 4 read",
        ["writes/s", "refused", "lost", "longest wait s", "reads"],
        [
            [
                f"{8 * writes / took:,.0f}",
                str(sum(int(refused) for _, refused in told)),
                str(8 * writes - there),
                f"{max(float(longest) for longest, _ in told):.2f} (target 2)",
                f"{reads:,}",
            ]
        ],
    )


def _started(code: str, *arguments: str) -> Any:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _ended(process: Any) -> list[str]:
    return str(process.communicate()[0]).split()


def bulk(folder: Path, quick: bool) -> None:
    """Store 10,000 short texts with one call and take away what embedding them alone costs."""
    count = 2_000 if quick else 10_000
    rows = []
    for turn in range(3):
        stored = list(texts(count, turn))
        embedder = HashingEmbedder()
        embed = _cpu(lambda embedder=embedder, stored=stored: embedder.passages(stored))
        with opened(folder, HashingEmbedder()) as store:
            whole = _cpu(lambda store=store, stored=stored: store.remember_many(stored))
        rows.append((whole / count, embed / count))
    rest = [whole - embed for whole, embed in rows]
    table(
        f"bulk: remember_many of {count:,} texts, CPU µs each",
        ["whole", "embedding", "the rest", "target"],
        [
            [
                micros(statistics.median(whole for whole, _ in rows)),
                micros(statistics.median(embed for _, embed in rows)),
                f"{micros(statistics.median(rest))} (best {micros(min(rest))})",
                "150",
            ]
        ],
    )


def _cpu(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


PARTS = {part.__name__: part for part in (alone, crowd, processes, bulk)}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all when none is named")
    parser.add_argument("--quick", action="store_true", help="a fifth of the work")
    parser.add_argument("--in", dest="folder", type=Path, help="a folder on the disk to measure")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        for name in given.parts or PARTS:
            PARTS[name](Path(folder), given.quick)
    print(f"\n{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
