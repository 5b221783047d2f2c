"""The recall pipeline, top to bottom: one query in, ranked memories with their evidence out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.embed.port import Question
from houkai.errors import InputError, shown
from houkai.handle import Reranker, Store
from houkai.model import ExpandSpec, Memory
from houkai.ops import meaning
from houkai.ops.history import known_by
from houkai.ops.hydration import hydrate
from houkai.search import (
    blend,
    centre,
    dense,
    expansion,
    late,
    lexical,
    past,
    pool,
    proximity,
    ranking,
    select,
)
from houkai.search.pool import Pool
from houkai.search.query import Query
from houkai.search.ranking import Ranking, Scored
from houkai.storage.eligible import Filter

if TYPE_CHECKING:
    Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Entry:
    """One candidate on its way through the pipeline."""

    pk: int
    score: float
    explain: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ranked:
    """One memory of the answer, its score, and how that came about."""

    memory: Memory
    score: float
    explain: dict[str, Any]


def rank(
    store: Store,
    asked: Query,
    k: int,
    where: Filter,
    how: Ranking,
    *,
    as_of: float | None = None,
    reranker: Reranker | None = None,
) -> list[Ranked]:
    """Return up to `k` eligible memories, best first, and what expansion appends to them."""
    if k <= 0:
        return []
    needed = how.mode == "semantic"
    meant = meaning.of_query(store, asked.text, needed=needed)
    with store.read() as connection:
        if as_of is not None:
            last = known_by(connection, as_of, where.now)
            where = replace(where, now=as_of, known_by=last)
        meant = meaning.confirmed(store, connection, meant, needed=needed)
        found = _gather(store, connection, asked, meant and meant.vector, where, how, k)
        scored = _score(store, connection, found, asked, meant, how, where)
        entries = _best(found, scored, _depth(k, how, reranker))
        if reranker is None or not entries:
            return _finished(store, connection, entries, k, how, where)
        known = hydrate(store, connection, where, [entry.pk for entry in entries])
    # A model may take its time, and may use the store itself: no snapshot is held meanwhile.
    entries = _reranked(asked, entries, reranker, known)
    with store.read() as connection:
        there = hydrate(store, connection, where, list(known))
        entries = [e for e in entries if e.pk in there and there[e.pk].id == known[e.pk].id]
        return _finished(store, connection, entries, k, how, where)


def _finished(
    store: Store,
    connection: apsw.Connection,
    entries: list[Entry],
    k: int,
    how: Ranking,
    where: Filter,
) -> list[Ranked]:
    """Cut the candidates to the answer, and bring what is linked to it."""
    entries = _joined(connection, entries, k, how.expand, where)
    entries = _selected(store, connection, entries, k, how)
    entries += _appended(connection, entries, how.expand, where)
    found = hydrate(store, connection, where, [entry.pk for entry in entries])
    return [Ranked(found[e.pk], e.score, e.explain) for e in entries if e.pk in found]


def _gather(
    store: Store,
    connection: apsw.Connection,
    asked: Query,
    vector: Vector | None,
    where: Filter,
    how: Ranking,
    k: int,
) -> Pool:
    """Unite what both channels find among the eligible."""
    enough = k * how.overfetch
    held = store.sketches()
    channels = past if where.known_by is not None else dense
    near = dense.NONE
    if vector is not None:
        near = channels.search(connection, vector, where, held, enough)
    worded: dict[int, float] = {}
    if how.mode == "hybrid":
        lexicon = past.worded if where.known_by is not None else lexical.search
        worded = lexicon(connection, asked, where, max(enough, lexical.DEPTH))
    windows = partial(past.windows, connection, held)
    found = pool.gather(connection, asked, near, worded, vector, windows)
    return found if how.min_cosine is None else found.keep(found.cosine >= how.min_cosine)


def _score(
    store: Store,
    connection: apsw.Connection,
    found: Pool,
    asked: Query,
    meant: Question | None,
    how: Ranking,
    where: Filter,
) -> Scored:
    weights = how.weights or store.settings.hybrid_weights

    def blended() -> blend.Parts:
        held = past.terms_held if where.known_by is not None else lexical.terms_held
        windows = past.windows(connection, store.sketches(), found.pk)
        mean = store.centres().of(connection, where)
        common = centre.common(connection, mean, windows, found.pk)
        present, weight = held(connection, asked, found.pk, where)
        parts = blend.blend(asked, found, blend.Evidence(present, weight, common))
        return late.added(connection, found, windows, parts, meant and meant.tokens, asked.foreign)

    scored = ranking.score(found, how, weights, where.now, blended)
    if how.mode != "hybrid" or weights.graph <= 0:
        return scored
    links = expansion.links_within(connection, found.pk.tolist())
    near = proximity.proximity(ranking.seed(found, scored), links)
    return scored if near is None else ranking.with_graph(scored, near, weights.graph, found)


def _best(found: Pool, scored: Scored, depth: int) -> list[Entry]:
    """Return the candidates best first; newer memories win ties."""
    order = np.lexsort((-found.pk, -found.created_at, -scored.score))[:depth].tolist()
    return [Entry(int(found.pk[i]), float(scored.score[i]), scored.explain(i)) for i in order]


def _depth(k: int, how: Ranking, reranker: Reranker | None) -> int:
    choosy = how.diversity is not None or how.dedup_threshold is not None
    joining = how.expand is not None and how.expand.rerank
    return k * how.overfetch if reranker or choosy or joining else k


def _reranked(
    asked: Query,
    entries: list[Entry],
    reranker: Reranker,
    known: Mapping[int, Memory],
) -> list[Entry]:
    """Let a stronger model score the candidates anew. Raises InputError on what is no score."""
    if not callable(reranker):
        raise InputError(f"reranker must be a function, got {shown(reranker)}.")
    answer = reranker(asked.text, [known[entry.pk] for entry in entries])
    try:
        scores = [float(score) for score in answer]
    except (TypeError, ValueError):
        raise InputError(f"reranker must return a list of numbers, got {shown(answer)}.") from None
    if len(scores) != len(entries) or not np.isfinite(scores).all():
        raise InputError(
            "reranker must return one finite score a memory:"
            f" {len(entries)} expected, got {shown(scores)}."
        )
    order = sorted(range(len(entries)), key=lambda i: -scores[i])
    return [
        Entry(
            entries[i].pk,
            scores[i],
            {
                **entries[i].explain,
                "rerank": {
                    "first_stage_score": entries[i].score,
                    "first_stage_rank": i,
                    "score": scores[i],
                    "rank": place,
                },
            },
        )
        for place, i in enumerate(order)
    ]


def _neighbours(
    connection: apsw.Connection, entries: Sequence[Entry], spec: ExpandSpec, where: Filter
) -> list[Entry]:
    start = [entry.pk for entry in entries if entry.pk > 0]
    return [
        Entry(
            n.pk,
            n.score,
            {"source": "graph_expansion", "rel": n.rel, "hop": n.hop, "score": round(n.score, 4)},
        )
        for n in expansion.walk(connection, start, spec, where)
    ]


def _joined(
    connection: apsw.Connection,
    entries: list[Entry],
    k: int,
    spec: ExpandSpec | None,
    where: Filter,
) -> list[Entry]:
    """Let neighbours of the first k compete with the candidates."""
    if spec is None or not spec.rerank or not entries:
        return entries
    best, present = entries[0].score, {entry.pk for entry in entries}
    fresh = [
        replace(entry, score=min(1.0, max(0.0, entry.score)) * best)
        for entry in _neighbours(connection, entries[:k], spec, where)
        if entry.pk not in present
    ]
    return sorted([*entries, *fresh], key=lambda entry: -entry.score)


def _selected(
    store: Store, connection: apsw.Connection, entries: list[Entry], k: int, how: Ranking
) -> list[Entry]:
    """Cut to k, passing over what repeats when asked to."""
    if (how.diversity is None and how.dedup_threshold is None) or not entries:
        return entries[:k]
    kept = select.select(
        range(len(entries)),
        np.array([entry.score for entry in entries]),
        _first_windows(store, connection, [entry.pk for entry in entries]),
        k,
        diversity=how.diversity,
        dedup_threshold=how.dedup_threshold,
    )
    return [entries[at] for at in kept]


def _first_windows(store: Store, connection: apsw.Connection, pks: list[int]) -> Vector:
    """Return a vector for each memory, zero for one that has none."""
    windows = past.windows(connection, store.sketches(), np.array(pks, np.int64))
    if not len(windows.pk):
        return np.zeros((len(pks), 1), np.float32)
    read = dense.read_vectors(connection, windows.embedding)
    by_pk = dict(zip(windows.pk.tolist()[::-1], read[::-1], strict=True))
    none = np.zeros(read.shape[1], np.float32)
    return np.array([by_pk.get(pk, none) for pk in pks], np.float32)


def _appended(
    connection: apsw.Connection, entries: list[Entry], spec: ExpandSpec | None, where: Filter
) -> list[Entry]:
    """Add neighbours after the cut, beyond k."""
    if spec is None or spec.rerank:
        return []
    return _neighbours(connection, entries, spec, where)
