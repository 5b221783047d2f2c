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
from houkai.ops import meaning
from houkai.rules import clean
from houkai.storage import reembedding, vectors
from houkai.storage.reembedding import Row, Source

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
    run.finish()
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

    def finish(self) -> None:
        """Embed what came, or was moved by others, while the file changed over."""
        for _ in range(TRIES):
            if not self.embed():
                break

    def embed(self) -> bool:
        """Embed every text that lacks vectors, a transaction a batch; False when none did."""
        before = self.embedded
        for source, rows in self._batches():
            texts = {row.hash: row.text for row in rows}
            made = meaning.encoded(self.embedder, texts)
            encoded = {row.key: made[row.hash] for row in rows}
            step = partial(reembedding.enter, target=self.target, source=source, encoded=encoded)
            self.db.write(step)
            self.embedded += len(texts)
            self._tell()
        return self.embedded > before

    def _batches(self) -> Iterator[tuple[Source, list[Row]]]:
        """Yield texts that lack vectors; no snapshot is held while they are embedded.

        What others write meanwhile waits for the next pass, or this one might never end.
        """
        for source in reembedding.SOURCES:
            after = source.first
            with self.db.read() as connection:
                end = reembedding.last(connection, source)
            while rows := self._read(source, after, end):
                yield source, rows
                after = rows[-1].key

    def _read(self, source: Source, after: int | str, end: int | str) -> list[Row]:
        with self.db.read() as connection:
            return reembedding.unembedded(connection, self.target, source, after, end, self.size)

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
