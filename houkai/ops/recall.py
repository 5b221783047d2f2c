"""Recall: find the memories that answer a query, and say why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import apsw

from houkai import params
from houkai.errors import NotReady
from houkai.handle import Store
from houkai.model import ExplainedHit, Hit, Memory
from houkai.notes import note
from houkai.ops.history import as_known, known_by
from houkai.ops.meaning import mismatch
from houkai.rules import clean
from houkai.storage import memories, vectors
from houkai.storage.eligible import Filter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from houkai.search.pool import Pool
    from houkai.search.query import Query
    from houkai.search.ranking import Ranking


def recall(
    store: Store,
    query: params.Query,
    k: params.K = 5,
    type: params.TypeFilter = None,
    tag: params.TagFilter = None,
    min_importance: params.MinImportance = None,
    *,
    touch: params.Touch = True,
    explain: params.Explain = False,
    **options: Unpack[params.RecallOptions],
) -> list[Hit] | list[ExplainedHit]:
    """Return the memories most relevant to a query, best first.

    Call it before starting a task. Fewer than `k` come back when fewer are eligible.
    Raises InputError; ModelMissing and ModelMismatch in semantic mode.
    """
    from houkai.search import query as queries
    from houkai.search import ranking

    given = {"query": query, "k": k, "type": type, "tag": tag, "min_importance": min_importance}
    values = clean(recall, {**given, **options})
    asked, k = queries.understand(values.pop("query")), values.pop("k")
    rank = _ranking(values)
    as_of = values.pop("as_of", None)
    where = store.where(**values)
    weights = ranking.check_weights(rank.weights or store.settings.hybrid_weights)
    if k <= 0:
        return []
    vector = _vector(store, asked, rank)
    with store.read() as connection:
        if as_of is not None:
            where = replace(where, now=as_of, known_by=known_by(store, connection, as_of))
        pool = _gather(store, connection, asked, vector, where, rank, k)
        scored = ranking.score(pool, rank, weights, _dense_share(asked), where.now)
        best = _order(scored.score, pool)[:k]
        found = _hydrate(store, connection, [int(pool.pk[i]) for i in best], where)
    hits = [(found[int(pool.pk[i])], float(scored.score[i]), i) for i in best]
    if touch:
        store.touches.add([memory.id for memory, _, _ in hits], where.now)
    if explain:
        return [ExplainedHit(memory, score, scored.explain(i)) for memory, score, i in hits]
    return [Hit(memory, score) for memory, score, _ in hits]


def _ranking(values: dict[str, Any]) -> Ranking:
    from houkai.search.ranking import Ranking

    names = [name for name in Ranking.__dataclass_fields__ if name in values]
    return Ranking(**{name: values.pop(name) for name in names})


def _vector(store: Store, asked: Query, rank: Ranking) -> NDArray[np.float32] | None:
    """Embed the query; hybrid recall goes on by words alone when it cannot, and says so."""
    try:
        with store.read() as connection:
            model = vectors.current_model(connection)
        if (error := mismatch(store, model)) is not None:
            raise error
        return store.embedder.query(asked.text) if model is not None else None
    except NotReady as error:
        if rank.mode == "semantic":
            raise
        note(f"Recall by words only: {error.line()}")
        return None


def _gather(
    store: Store,
    connection: apsw.Connection,
    asked: Query,
    vector: NDArray[np.float32] | None,
    where: Filter,
    rank: Ranking,
    k: int,
) -> Pool:
    from houkai.search import dense, lexical, past, pool

    enough = k * rank.overfetch
    held = store.sketches()
    channels = past if where.known_by is not None else dense
    near = dense.NONE
    if vector is not None:
        near = channels.search(connection, vector, where, held, enough)
    worded: dict[int, float] = {}
    if rank.mode == "hybrid":
        lexicon = past.worded if where.known_by is not None else lexical.search
        worded = lexicon(connection, asked, where, max(enough, lexical.DEPTH))
    found = pool.gather(connection, near, worded, vector, partial(past.windows, connection, held))
    if rank.min_cosine is not None:
        found = found.keep(found.cosine >= rank.min_cosine)
    return found


def _hydrate(
    store: Store, connection: apsw.Connection, pks: list[int], where: Filter
) -> dict[int, Memory]:
    """Return the memories of a pool's numbers, past versions as they were."""
    found = memories.by_pks(connection, [pk for pk in pks if pk > 0], store.touches)
    for pk in pks:
        if pk < 0 and where.known_by is not None:
            id = connection.execute("select id from past where pk = ?", (-pk,)).get
            memory = as_known(connection, where.known_by, id)
            if memory is not None:
                found[pk] = memory
    return found


def _dense_share(asked: Query) -> float:
    """Return how much of the blend meaning gets: little where the model cannot read the script."""
    from houkai import text

    letters = [sign for sign in asked.text if sign.isalnum()]
    foreign = sum(text.is_spaceless(sign) for sign in letters) / max(1, len(letters))
    return 0.65 - 0.45 * foreign


def _order(score: NDArray[np.float64], pool: Pool) -> Sequence[int]:
    """Return positions best first; newer memories win ties."""
    import numpy as np

    order: list[int] = np.lexsort((-pool.pk, -pool.created_at, -score)).tolist()
    return order
