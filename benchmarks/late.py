"""Measure what the second stage of recall costs: in time on a write and a recall, and in bytes.

    python benchmarks/late.py [--memories 10000] [--work DIR]

Thread CPU, medians, with and without in turn, so that other load hits both alike. Texts are made
of everyday words in the length of chat messages; their meaning does not matter here. A store is
kept in --work, since embedding it takes a minute or two.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from embedding import WORDS
from quality import WithoutTokens

from houkai import MemoryStore
from houkai.embed import MiniLM

ROUNDS = 61
BATCH = 64


def messages(count: int) -> list[str]:
    """Return texts of 5 to 40 words."""
    dice = random.Random(7)
    return [" ".join(dice.choices(WORDS, k=dice.randint(5, 40))) for _ in range(count)]


def apart(*works: Callable[[int], object], rounds: int = ROUNDS) -> list[float]:
    """Return the median thread CPU of each call in ms, all taken in turn."""
    taken: list[list[float]] = [[] for _ in works]
    for turn in range(rounds + 1):
        for work, times in zip(works, taken, strict=True):
            started = time.thread_time()
            work(turn)
            times.append(time.thread_time() - started)
    return [1000 * statistics.median(times[1:]) for times in taken]


def tell(name: str, without: float, with_it: float, unit: str = "ms") -> None:
    """Print a line of the table."""
    added = with_it - without
    print(f"{name:44} {without:9.3f} {with_it:9.3f} {added:+8.3f} {unit} ({added / without:+.1%})")


def start(model: MiniLM, texts: Sequence[str]) -> None:
    """Print what the first text pays for the matrix and the stop words, once the model is there."""
    model.passages(list(texts[:BATCH]))
    started = time.thread_time()
    model.tokens(list(texts[:1]))
    first = time.thread_time() - started
    (again,) = apart(lambda _: model.tokens(list(texts[:1])))
    print(f"{'matrix and stop words, once a process':44} {1000 * first - again:29.3f} ms")


def embedding(model: MiniLM, texts: Sequence[str]) -> None:
    """Print what tokens cost beside the windows."""
    one, plain = apart(lambda n: model.tokens([texts[n]]), lambda n: model.passages([texts[n]]))
    tell("embed a text", plain, one)
    parts = [list(texts[at : at + BATCH]) for at in range(0, 6 * BATCH, BATCH)]
    many, plain = apart(
        lambda n: model.tokens(parts[n % 6]), lambda n: model.passages(parts[n % 6]), rounds=11
    )
    tell(f"embed a text, {BATCH} at once", plain / BATCH, many / BATCH)


def in_the_file(store: MemoryStore) -> None:
    """Print how large the tokens are."""
    with store.read() as connection:
        count, pieces, size = connection.execute(
            "select count(*), avg(count), avg(length(vectors)) from token"
        ).get
    pages = store.db.path.stat().st_size / count if store.db.path else 0.0
    print(f"{'tokens a memory':44} {pieces:29.1f}")
    print(f"{'bytes of tokens a memory, of the file':44} {size:19.0f} {pages:9.0f}")


def recalls(full: MemoryStore, plain: MemoryStore, questions: Sequence[str]) -> None:
    """Print what a recall costs."""
    for k in (5, 50):
        with_it, without = apart(
            lambda n, k=k: full.recall(questions[n], k, touch=False),
            lambda n, k=k: plain.recall(questions[n], k, touch=False),
        )
        tell(f"recall of {k}, its embedding included", without, with_it)


def main() -> None:
    """Fill a store and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--work", type=Path)
    given = parser.parse_args()
    model, texts = MiniLM(threads=1), messages(given.memories)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.work or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"late-{given.memories}.db"
        with MemoryStore(path, embedder=model) as full:
            if full.count() < given.memories:
                full.remember_many(texts, batch_size=512)
            print(f"{'':44} {'without':>9} {'with':>9} {'added':>8}")
            start(MiniLM(threads=1), texts)
            embedding(model, texts)
            in_the_file(full)
            with MemoryStore(path, embedder=WithoutTokens(model)) as plain:
                recalls(full, plain, [" ".join(text.split()[:8]) for text in texts])


if __name__ == "__main__":
    main()
