"""Re-embed: change a memory file over to another embedding model while it stays in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import sleep
from typing import Final

from houkai import params
from houkai.embed.port import Embedder
from houkai.embed.spec import as_embedder
from houkai.handle import Store
from houkai.rules import clean
from houkai.storage import reembedding, vectors
from houkai.storage.reembedding import Texts

Progress = Callable[[int, int], None]

TRIES: Final = 5
"""Attempts to change over with no text missing. Writers that never pause would put it off for
ever, so then the last few texts get their vectors just after."""
SLICE: Final = 500
"""Texts in one transaction of upkeep, some 20 ms."""
PAUSE_S: Final = 0.005
"""A gap between transactions, long enough for another process's busy handler to find it."""


@dataclass(frozen=True)
class Reembedded:
    """What a re-embedding did; `texts` are those of all memories and those undo can bring back."""

    model: str
    dim: int
    texts: int
    embedded: int
    dropped: int
    """Texts whose vectors of other models were deleted."""
    switched: bool
    """Whether this run changed the file's model."""


def reembed(
    store: Store,
    embedder: params.EmbedderSpec = None,
    *,
    batch_size: params.BatchSize = 128,
    progress: Progress | None = None,
) -> Reembedded:
    """Change the file over to an embedder, the store's own when none is given.

    Other processes go on reading and writing with the present model, whose vectors stay until
    every text has new ones; then the file changes over at once. It may be stopped at any moment
    and run again. Texts that undo could bring back are embedded too. With the model that the file
    has, whatever lacks vectors gets them. `progress` is called with (texts done, texts in all).
    This store goes on with the new embedder. Raises InputError, NotReady, StorageError.
    """
    size = clean(reembed, {"batch_size": batch_size})["batch_size"]
    chosen = store.embedder if embedder is None else as_embedder(embedder)
    run = _Run(store, chosen, size, progress)
    switched = run.change_over()
    run.embed()
    dropped = run.tidy()
    store.embedder = chosen
    return Reembedded(chosen.name, chosen.dim, run.total, run.embedded, dropped, switched)


class _Run:
    """One run towards one model; everything it must remember is in the file."""

    def __init__(
        self, store: Store, embedder: Embedder, size: int, progress: Progress | None
    ) -> None:
        if not embedder.dim:
            embedder.query("How long is a vector?")
        model = (embedder.name, embedder.dim, embedder.fingerprint)
        self.db = store.db
        self.embedder = embedder
        self.size = size
        self.progress = progress
        self.target = self.db.write(lambda connection: reembedding.begin(connection, *model))
        with self.db.read() as connection:
            self.total, self.missing = reembedding.census(connection, self.target)
        self.embedded = 0
        self._tell()

    def change_over(self) -> bool:
        """Embed what is missing and make the model the file's; False when it was that already."""
        with self.db.read() as connection:
            present = reembedding.arrived(connection, self.target)
        for left in reversed(range(TRIES)):
            if not present:
                self.embed()
            step = partial(reembedding.change_over, target=self.target, complete=left > 0)
            if self.db.write(step):
                break
        return not present

    def embed(self) -> None:
        """Embed every text that lacks vectors, a transaction a batch."""
        for texts in self._batches():
            arrays = self.embedder.passages(list(texts.values()))
            encoded = vectors.encode(texts, arrays)
            self.db.write(partial(reembedding.enter, target=self.target, encoded=encoded))
            self.embedded += len(texts)
            self._tell()

    def _batches(self) -> Iterator[Texts]:
        """Yield texts that lack vectors; no snapshot is held while they are embedded.

        What others write meanwhile waits for the next pass, or this one might never end.
        """
        with self.db.read() as connection:
            ends = reembedding.ends(connection)
        for source, end in ends.items():
            after = 0
            while after < end:
                with self.db.read() as connection:
                    after, texts = reembedding.unembedded(
                        connection, self.target, source, after, self.size
                    )
                if texts:
                    yield texts

    def _tell(self) -> None:
        done = self.total - self.missing + self.embedded
        self.total = max(self.total, done)
        if self.progress is not None:
            self.progress(done, self.total)

    def tidy(self) -> int:
        """Fill the sketch table and delete other models' vectors; return of how many texts."""
        while self.db.write(partial(vectors.fill_index, limit=SLICE)):
            sleep(PAUSE_S)
        after: bytes | None = b""
        dropped = 0
        while after is not None:
            step = partial(reembedding.drop_leftovers, after=after, limit=SLICE)
            after, number = self.db.write(step)
            dropped += number
            sleep(PAUSE_S)
        return dropped
