"""Bring texts and the file's embedding model together; two models are never mixed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import apsw

from houkai import text as words
from houkai.embed.port import Embedder, Question, gives_tokens
from houkai.errors import ModelMismatch, NotReady
from houkai.handle import Store
from houkai.notes import note
from houkai.storage import known, vectors
from houkai.storage.vectors import Encoded, StoredModel


def mismatch(store: Store, model: StoredModel | None) -> ModelMismatch | None:
    """Return the error that tells why this store's embedder cannot read the file's vectors."""
    if model is None:
        return None
    mine = store.embedder
    fingerprint = fingerprint_of(mine, model.dim)
    # A callable's name says nothing of its width, which only its first vector tells.
    if model.fingerprint == fingerprint and mine.dim in (0, model.dim):
        return None
    hint = "Open it with the first model, or run `reembed` to change over."
    if model.coming == fingerprint:
        hint = "It is being changed over; run `reembed` to go on if nobody does."
    return ModelMismatch(
        f"{store.db.name} holds vectors of the model {model.name!r} ({model.dim} dimensions), "
        f"but the store was opened with {mine.name!r} ({mine.dim or 'unknown'} dimensions).",
        hint=hint,
    )


def fingerprint_of(embedder: Any, dim: int) -> str:
    """Return an embedder's fingerprint, taking the file's word for a dimension not yet known.

    That spares a remote model a request; its first vector tells whether the file was right.
    """
    if not embedder.dim and hasattr(embedder, "fingerprint_at"):
        return str(embedder.fingerprint_at(dim))
    return str(embedder.fingerprint)


def of_query(store: Store, text: str, *, needed: bool) -> Question | None:
    """Embed a query. Unless its vector is needed, recall goes on by words without, and says so."""
    with store.read() as connection:
        model = vectors.current_model(connection)
    if model is None:
        return None
    try:
        if (error := mismatch(store, model)) is not None:
            raise error
        embedder = store.embedder
        if gives_tokens(embedder):
            return embedder.query_tokens(text)
        return Question(embedder.query(text))
    except NotReady as error:
        _go_by_words(error, needed)
        return None


def confirmed(
    store: Store,
    connection: apsw.Connection,
    meant: Question | None,
    *,
    needed: bool,
) -> Question | None:
    """Let a query's vectors go if the file's model has changed since, or has another width."""
    error = None if meant is None else mismatch(store, vectors.current_model(connection))
    if error is None:
        return meant
    _go_by_words(error, needed)
    return None


def _go_by_words(error: NotReady, needed: bool) -> None:
    if needed:
        raise error
    note(f"Recall by words only: {error.line()}")


def embed(store: Store, texts: Iterable[str], *, fresh: bool = False) -> dict[bytes, Encoded]:
    """Embed the texts whose vectors the file lacks, outside any transaction.

    A single `fresh` text that the store has not met is not looked for: of threads that write at
    once, each would pay for that almost as for its own write. `keep` has the last word anyway.
    Raises ModelMismatch before any work when the file belongs to another model.
    """
    by_hash = {words.text_hash(text): text for text in texts}
    unmet = [hash for hash in by_hash if not store.lately.met(hash)]
    if fresh and store.lately.model_fits and len(unmet) == len(by_hash) == 1:
        return encoded(store.embedder, by_hash)
    with store.read() as connection:
        model = vectors.current_model(connection)
        if (error := mismatch(store, model)) is not None:
            raise error
        missing = list(by_hash)
        if model is not None:
            missing = vectors.lacking(connection, missing, model.pk)
    store.lately.model_fits = model is not None
    if not missing:
        return {}
    return encoded(store.embedder, {hash: by_hash[hash] for hash in missing})


def encoded(embedder: Embedder, texts: Mapping[bytes, str]) -> dict[bytes, Encoded]:
    """Embed texts by hash, with their tokens if the embedder gives any, in one run of the model."""
    hashes, said = list(texts), list(texts.values())
    if gives_tokens(embedder):
        passages = embedder.tokens(said)
        made = vectors.encode(hashes, *zip(*passages, strict=True))
    else:
        made = vectors.encode(hashes, embedder.passages(said))
    return {one.hash: one for one in made}


def keep(store: Store, connection: apsw.Connection, encoded: Iterable[Encoded]) -> None:
    """Store vectors inside a write transaction, adopting the model in a file that has none."""
    fresh = list(encoded)
    if not fresh:
        return
    facts = known.of(connection)
    model = facts.model = facts.model or vectors.current_model(connection)
    if model is None:
        embedder = store.embedder
        model = vectors.adopt_model(connection, embedder.name, embedder.dim, embedder.fingerprint)
    if (error := mismatch(store, model)) is not None:
        store.lately.model_fits = False
        raise error
    vectors.keep(connection, fresh, model.pk)
