"""The recall pipeline, top to bottom: one query in, ranked memories with their evidence out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.embed.port import Question
from houkai.handle import Reranker, Store
from houkai.hits import Answer
from houkai.model import Memory
from houkai.ops import entries, meaning
from houkai.ops.entries import Entry
from houkai.ops.history import known_by
from houkai.ops.hydration import hydrate
from houkai.search import (
    blend,
    bm25,
    dense,
    expansion,
    late,
    lexical,
    names,
    past,
    pool,
    proximity,
    ranking,
)
from houkai.search.arrays import Floats, Ints, Mask
from houkai.search.pool import Pool
from houkai.search.query import Query
from houkai.search.ranking import Ranking, Scored
from houkai.search.relevance import FIRST, relevance
from houkai.search.sketches import Probe, View
from houkai.storage.eligible import Filter

if TYPE_CHECKING:
    Vector = NDArray[np.float32]

SEEDS: Final = 10
"""Best of each channel whose links bring further candidates."""
BESIDE: Final = 200
"""Links that are followed."""


@dataclass(frozen=True)
class Ranked:
    """One memory of the answer, its score, and how that came about."""

    memory: Memory
    score: float
    explain: dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A recall: the question, its vectors, how many answers, what is eligible, how to rank."""

    query: Query
    meant: Question | None
    k: int
    where: Filter
    how: Ranking

    @property
    def blends(self) -> bool:
        """Say whether the default fusion ranks."""
        return self.how.mode == "hybrid" and self.how.resolved() == "blend"


@dataclass(frozen=True)
class Found:
    """Candidates of all channels, and what only some of the channels know about them."""

    pool: Pool
    worth: Floats
    """What the names that each carries are worth."""
    links: Sequence[tuple[int, int]]
    """Links between candidates, as pairs of places in the pool."""


def rank(
    store: Store,
    query: Query,
    k: int,
    where: Filter,
    how: Ranking,
    *,
    as_of: float | None = None,
    reranker: Reranker | None = None,
) -> Answer[Ranked]:
    """Return up to `k` eligible memories, best first, and what expansion appends to them."""
    if k <= 0:
        return Answer()
    needed, held = how.mode == "semantic", store.sketches()
    meant = meaning.of_query(store, query.text, needed=needed)
    with store.read() as connection:
        if as_of is not None:
            where = replace(where, now=as_of, known_by=known_by(connection, as_of, where.now))
        meant = meaning.confirmed(store, connection, meant, needed=needed)
        look = _Look(store, held.at(connection), Asked(query, meant, k, where, how))
        ordered = entries.best(look.found.pool, look.scored, _depth(k, how, reranker))
        if how.min_relevance and (sure := look.relevance) is not None and sure < how.min_relevance:
            return _nothing(ordered[:k], sure)
        if reranker is None or not ordered:
            return look.finished(ordered)
        known = hydrate(store, connection, where, [entry.pk for entry in ordered])
    # A model may take its time, and may use the store itself: no snapshot is held meanwhile.
    ordered = entries.reranked(query, ordered, reranker, known)
    with store.read() as connection:
        there = hydrate(store, connection, where, list(known))
        ordered = [e for e in ordered if e.pk in there and there[e.pk].id == known[e.pk].id]
        return replace(look, view=held.at(connection)).finished(ordered)


def _nothing(missed: list[Entry], sure: float) -> Answer[Ranked]:
    answer: Answer[Ranked] = Answer()
    answer.relevance, answer.near_misses = sure, len(missed)
    answer.best_score = missed[0].score if missed else None
    return answer


def _depth(k: int, how: Ranking, reranker: Reranker | None) -> int:
    choosy = how.diversity is not None or how.dedup_threshold is not None
    joining = how.expand is not None and how.expand.rerank
    return k * how.overfetch if reranker or choosy or joining else k


@dataclass(frozen=True)
class _Look:
    """A recall in one snapshot of the file; each stage is computed once, when it is needed."""

    store: Store
    view: View
    asked: Asked

    @property
    def connection(self) -> apsw.Connection:
        """Return the connection that sees the snapshot."""
        return self.view.connection

    @property
    def then(self) -> bool:
        """Say whether the past is asked about."""
        return self.asked.where.known_by is not None

    @cached_property
    def found(self) -> Found:
        """Unite what all channels find among the eligible."""
        query, where, how = self.asked.query, self.asked.where, self.asked.how
        enough = self.asked.k * how.overfetch
        near = dense.NONE
        if self._probe is not None:
            nearest = past.search if self.then else dense.search
            near = nearest(self.view, self._probe, where, enough)
        worded: dict[int, float] = {}
        if how.mode == "hybrid":
            worded = self._words.search(max(enough, lexical.DEPTH), enough)
        carried, pairs = self._beside(near.pk, list(worded)) if self.asked.blends else ({}, [])
        score = partial(past.scored, self.view, self._probe)
        others = {*carried, *(other for _, other in pairs)}
        gathered = pool.gather(self.view, query, near, worded, others, score)
        if how.min_cosine is not None:
            gathered = gathered.keep(gathered.cosine >= how.min_cosine)
        return _placed(gathered, carried, pairs)

    @cached_property
    def _probe(self) -> Probe | None:
        if self.asked.meant is None:
            return None
        centre = self.store.centres().of if self.asked.blends else None
        mean = centre(self.view, self.asked.where) if centre else None
        return Probe(self.asked.meant.vector, mean)

    def _beside(
        self, near: Ints, worded: list[int]
    ) -> tuple[dict[int, float], list[tuple[int, int]]]:
        """Return what names bring, and the links of the best that meaning and words bring."""
        carried = names.carrying(self.view, self.asked.query, self.asked.where)
        seeds = sorted({*near[:SEEDS].tolist(), *worded[:SEEDS]})
        one_hop = past.one_hop if self.then else expansion.one_hop
        return carried, one_hop(self.view, seeds, self.asked.where, BESIDE)

    @cached_property
    def terms(self) -> tuple[Mask, Floats]:
        """Return which of the question's words each candidate holds, and what each word weighs."""
        return self._words.held(self.found.pool.pk)

    @cached_property
    def _words(self) -> lexical.Lexicon | past.Lexicon:
        kind = past.Lexicon if self.then else lexical.Lexicon
        return kind(self.view, self.asked.query, self.asked.where)

    @cached_property
    def scored(self) -> Scored:
        """Score the candidates by the fusion, with the links among them where they weigh."""
        how, found = self.asked.how, self.found.pool
        weights = how.weights or self.store.settings.hybrid_weights
        if weights.recency_basis != "created" and not self.asked.blends:
            found = replace(found, accessed_at=pool.accessed(self.connection, found))
        scored = ranking.score(found, how, weights, self.asked.where.now, self._blended)
        if how.mode != "hybrid" or weights.graph <= 0:
            return scored
        links = expansion.links_within(self.connection, found.pk.tolist())
        near = proximity.proximity(ranking.seed(found, scored), links)
        return scored if near is None else ranking.with_graph(scored, near, weights.graph, found)

    def _blended(self) -> blend.Parts:
        query, found = self.asked.query, self.found
        present, weight = self.terms
        evidence = blend.Evidence(present, weight, found.worth, found.links)
        parts = blend.blend(query, found.pool, evidence)
        windows = partial(past.windows, self.view)
        tokens = None if self.asked.meant is None else self.asked.meant.tokens
        return late.added(self.connection, found.pool, windows, parts, tokens, query.foreign)

    @cached_property
    def relevance(self) -> float | None:
        """Return how surely the collection answers at all; None where no vector tells."""
        if self.asked.meant is None:
            return None
        present, weight = self.terms
        unknown = blend.unknown_word(bm25.rows_and_tokens(self.connection)[0])
        full = np.where(weight > 0, weight, unknown)
        first = np.argsort(-self.scored.score, kind="stable")[:FIRST]
        best = float(np.nan_to_num(self.found.pool.cosine, nan=0.0).max(initial=0.0))
        return relevance(self.asked.query.foreign, best, present[first], full)

    def finished(self, ordered: list[Entry]) -> Answer[Ranked]:
        """Cut the candidates to the answer, and bring what is linked to it."""
        k, how, where = self.asked.k, self.asked.how, self.asked.where
        chosen = entries.joined(self.connection, ordered, k, how.expand, where)
        chosen = entries.selected(self.view, chosen, k, how)
        chosen += entries.appended(self.connection, chosen, how.expand, where)
        known = hydrate(self.store, self.connection, where, [entry.pk for entry in chosen])
        answer = Answer(Ranked(known[e.pk], e.score, e.explain) for e in chosen if e.pk in known)
        answer.relevance = self.relevance if how.min_relevance is not None else None
        return answer


def _placed(found: Pool, carried: dict[int, float], pairs: list[tuple[int, int]]) -> Found:
    """Give what is known by number its place in the pool."""
    place = {pk: at for at, pk in enumerate(found.pk.tolist())} if carried or pairs else {}
    worth = np.zeros(len(found))
    for pk, value in carried.items():
        if pk in place:
            worth[place[pk]] = value
    links = [(place[a], place[b]) for a, b in pairs if a in place and b in place]
    return Found(found, worth, links)
