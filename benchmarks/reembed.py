"""Measure re-embedding: how much it adds to the bare model, and how long others wait for it.

    python benchmarks/reembed.py [--texts 2000] [--large 50000]

The model's part is measured alone, in batches of the same size. On a busy machine compare
processor times. For the large file a table of random vectors stands for the model, so that what
is left is houkai's own work.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from houkai import MemoryStore  # noqa: E402
from houkai.embed import MiniLM  # noqa: E402
from houkai.testing import HashingEmbedder  # noqa: E402

BATCH = 128
WORDS = """
    deploy server release build key meeting notes database moved port user prefers coffee
    invoice review branch merged test failed again customer asked password budget plan
""".split()  # noqa: SIM905


class Random:
    """A model that costs next to nothing: rows of one table of random unit vectors."""

    def __init__(self, dim: int = 384) -> None:
        self.dim, self.name = dim, f"random-{dim}"
        self.fingerprint = self.name
        rows = np.random.default_rng(1).standard_normal((4096, dim)).astype(np.float32)
        self.rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def passages(self, texts: Sequence[str]) -> list[Any]:
        return [self.rows[hash(text) % 4096][None] for text in texts]

    def query(self, text: str) -> Any:
        return self.rows[hash(text) % 4096]


def notes(number: int) -> list[str]:
    """Return texts of 17 words on average."""
    dice = random.Random(5)
    return [
        f"{n} " + " ".join(dice.choice(WORDS) for _ in range(dice.randint(8, 26)))
        for n in range(number)
    ]


def timed(what: Callable[[], Any]) -> tuple[float, float, Any]:
    """Return processor seconds, wall seconds and the result."""
    processor, wall = time.process_time(), time.perf_counter()
    result = what()
    return time.process_time() - processor, time.perf_counter() - wall, result


def beside_the_model(folder: Path, number: int) -> None:
    texts, model = notes(number), MiniLM()
    model.passages(texts[:64])
    path = folder / "model.db"
    with MemoryStore(path, embedder=HashingEmbedder()) as store:
        store.remember_many(texts, batch_size=1000)

    def bare() -> None:
        for start in range(0, number, BATCH):
            model.passages(texts[start : start + BATCH])

    for _ in range(2):
        alone = timed(bare)
        with MemoryStore(path, embedder=HashingEmbedder()) as store:
            whole = timed(lambda store=store: store.reembed(model, batch_size=BATCH))
            store.reembed(HashingEmbedder())
        print(
            f"model alone {alone[0]:.2f} s CPU, {number / alone[1]:.0f} texts/s;"
            f" reembed {whole[0]:.2f} s CPU, {number / whole[1]:.0f} texts/s;"
            f" CPU ratio {whole[0] / alone[0]:.3f}"
        )


def large(folder: Path, number: int) -> None:
    path = folder / "large.db"
    with MemoryStore(path, embedder=Random()) as store:
        store.remember_many(notes(number), batch_size=5000)
    waits: list[float] = []
    stop = threading.Event()

    def write() -> None:
        with MemoryStore(path, embedder=Random()) as other:
            id = other.list_recent(1)[0].id
            while not stop.wait(0.05):
                begun = time.perf_counter()
                other.edit(id, pinned=len(waits) % 2 == 0)
                waits.append(time.perf_counter() - begun)

    thread = threading.Thread(target=write)
    thread.start()
    with MemoryStore(path, embedder=Random()) as store:
        processor, wall, done = timed(lambda: store.reembed(Random(512), batch_size=BATCH))
        stop.set()
        thread.join()
    print(
        f"{done.texts:,} texts without a model: {processor:.1f} s CPU, {wall:.1f} s,"
        f" {1e6 * processor / number:.0f} us CPU a text; a writer beside it waited"
        f" {1000 * np.median(waits):.0f} ms on average, {1000 * max(waits):.0f} ms at most"
        f" ({len(waits)} writes)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=2_000)
    parser.add_argument("--large", type=int, default=50_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        beside_the_model(Path(folder), given.texts)
        large(Path(folder), given.large)


if __name__ == "__main__":
    main()
