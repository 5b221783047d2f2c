"""Time a warm recall beside Chroma and AI-Houkai, on the same texts and vectors in one run.

    pip install chromadb && pip install --no-deps ai-houkai
    python benchmarks/peers.py [--memories 1000 10000]

CPU of the calling process in ms without the embedding, medians of questions of four words. Chroma
finds by vectors alone, approximately; AI-Houkai ranks hybrid as houkai does. Both are optional.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from reads import queries, texts

from houkai import MemoryStore
from houkai.search.warming import OFTEN
from houkai.testing import HashingEmbedder

ROUNDS = 15
EMBEDDER = HashingEmbedder()


def vectors(given: list[str]) -> list[Any]:
    """Return a list of vectors, as the peers want them."""
    return [windows[0].tolist() for windows in EMBEDDER.passages(given)]


def median(work: Callable[[str], object], asked: list[str]) -> float:
    """Return the median CPU of a call, all threads of the process together."""
    work(asked[0])
    taken = []
    for query in asked[:ROUNDS]:
        started = time.process_time()
        work(query)
        taken.append(time.process_time() - started)
    return 1000 * statistics.median(taken)


def chroma(folder: Path, stored: list[str], asked: list[str]) -> float:
    """Return what a query of Chroma's own index costs."""
    import chromadb

    made = chromadb.PersistentClient(str(folder)).create_collection("memories")
    for start in range(0, len(stored), 1000):
        some = stored[start : start + 1000]
        made.add(
            ids=[f"m{start + n}" for n in range(len(some))],
            documents=some,
            embeddings=vectors(some),
        )
    ready = {query: vectors([query]) for query in asked}
    return median(lambda query: made.query(query_embeddings=ready[query], n_results=5), asked)


def ai_houkai(folder: Path, stored: list[str], asked: list[str]) -> float:
    """Return what a hybrid recall of AI-Houkai costs."""
    from ai_houkai.memory_system.store import MemoryStore as Peer

    peer = Peer(str(folder), embedding_function=vectors)
    for text in stored:
        peer.remember(text)
    own = median(lambda query: vectors([query]), asked)
    return median(lambda query: peer.recall(query, k=5, mode="hybrid", touch=False), asked) - own


def houkai(folder: Path, stored: list[str], asked: list[str], **options: Any) -> float:
    """Return what a recall of houkai costs."""
    with MemoryStore(folder / "memory.db", embedder=EMBEDDER) as store:
        if not store.count():
            store.remember_many(stored, batch_size=1000)
        for query in (2 * asked)[: 2 * OFTEN]:  # until the store holds what it asks
            store.recall(query, 5, touch=False)
        own = median(EMBEDDER.query, asked)
        return median(lambda query: store.recall(query, 5, touch=False, **options), asked) - own


def main() -> None:
    """Print a line a size and a system."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memories", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--without", nargs="*", default=[], choices=["chroma", "ai_houkai"])
    given = parser.parse_args()
    for count in given.memories:
        stored = list(texts(count))
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            with MemoryStore(folder / "memory.db", embedder=EMBEDDER) as store:
                store.remember_many(stored, batch_size=1000)
                asked = queries(store, 4)
            rows: list[tuple[str, Callable[[], float]]] = [
                ("houkai hybrid", partial(houkai, folder, stored, asked)),
                ("houkai semantic", partial(houkai, folder, stored, asked, mode="semantic")),
            ]
            for name, measure in (("chroma", chroma), ("ai_houkai", ai_houkai)):
                if name not in given.without:
                    rows.append((name, partial(measure, folder / name, stored, asked)))
            for name, measure in rows:
                print(f"{count:>9,} {name:18} {measure():9.2f} ms", flush=True)


if __name__ == "__main__":
    main()
