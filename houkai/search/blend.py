"""The default fusion: meaning, words, neighbours in a source, voices and times, in one score.

Every part stands on an absolute scale: a cosine as it is, and the share of the question's word
weight that a memory answers. So scores of different questions and collections compare, and one
threshold can say that nothing is relevant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from houkai.search.arrays import Floats, Ints, Mask
from houkai.search.pool import Pool
from houkai.search.query import Query
from houkai.search.when import in_window

Near = Sequence[tuple[int, Ints]]
SPAN: Final = 2
"""How many places away a neighbour still counts."""


@dataclass(frozen=True)
class Constants:
    """What the blend is made of; chosen by measurement on conversations, code and articles."""

    dense: float = 0.7
    """Share of meaning against words."""
    foreign: float = 0.1
    """What is left of that share for a question in no Latin script."""
    presence: float = 0.5
    """Share of a word's weight for being there at all, whatever BM25 says."""
    context: float = 0.8
    """Worth of a word said one place away, squared for two places."""
    utterance: float = 400.0
    """Characters up to which a text leans on its neighbours."""
    neighbour: float = 0.3
    """Share of the best neighbour's score."""
    machine: float = 0.2
    """Taken from what an assistant or a tool said."""
    named: float = 0.1
    """Given to what a speaker named in the question said."""
    centre: float = 0.4
    """Share of a memory's likeness to its whole collection that is taken off its cosine."""
    window: float = 0.1
    """Given to what was said in the time the question names."""
    entity: float = 0.1
    """Given for names that the question says and few memories carry."""
    linked: float = 0.1
    """Share of the best score among what a memory is linked to."""
    late: float = 0.4
    """Worth of the second stage, in which words meet one by one; 0 leaves it out."""


MEASURED: Final = Constants()


@dataclass(frozen=True)
class Evidence:
    """What only the blend asks for: the terms that each candidate holds, what each term weighs,
    what its names are worth, and the links between candidates, as pairs of places.
    """

    present: Mask
    weight: Floats
    entity: Floats | float = 0.0
    links: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class Parts:
    """The addends of a blended score, for explain."""

    cosine: Floats
    lexical: Floats
    neighbour: Floats
    entity: Floats
    linked: Floats
    voice: Floats
    time: Floats
    late: Floats
    dense: float

    def total(self) -> Floats:
        """Return the score."""
        own = self.dense * self.cosine + (1 - self.dense) * self.lexical
        beside = self.neighbour + self.entity + self.linked
        return own + beside + self.voice + self.time + self.late


def idf(documents: int, frequency: Floats) -> Floats:
    """Return FTS5's weight of words that occur in `frequency` of the documents."""
    weight = np.maximum(np.log((documents - frequency + 0.5) / (frequency + 0.5)), 1e-6)
    return np.where(frequency > 0, weight, 0.0)


def unknown_word(documents: int) -> float:
    """Return the weight of a word that none of the documents holds, which is the rarest of all."""
    return math.log((documents + 0.5) / 0.5)


def blend(query: Query, pool: Pool, evidence: Evidence, c: Constants = MEASURED) -> Parts:
    """Return the parts of every candidate's score."""
    near = neighbours(pool.source, pool.position, pool.created_at)
    dense = c.dense * (1 - (1 - c.foreign) * query.foreign) if evidence.weight.any() else 1.0
    # A memory close to everything is close to every question.
    cosine = np.nan_to_num(pool.cosine, nan=0.0) - c.centre * pool.common
    lexical = lexical_share(pool, evidence, near, query.foreign, c)
    own = dense * cosine + (1 - dense) * lexical
    return Parts(
        cosine,
        lexical,
        c.neighbour * lean(pool.length, c) * best_neighbour(own, near),
        c.entity * np.broadcast_to(evidence.entity, own.shape),
        c.linked * best_linked(own, evidence.links),
        c.named * pool.named - c.machine * pool.machine,
        c.window * in_window(pool.created_at, query.window),
        np.zeros(len(pool)),
        dense,
    )


def neighbours(source: Ints, position: Ints, created_at: Floats, span: int = SPAN) -> Near:
    """Return (distance, row of the memory that far away or -1) for each side up to span.

    Of several at one place the oldest counts, now as well as in a look at the past.
    """
    if not (source >= 0).any():
        return []
    order = np.lexsort((created_at, position, source))
    base = position - position.min()
    key = source * (int(base.max()) + 2 * span + 1) + base
    ranked = key[order]
    found = []
    for distance in range(1, span + 1):
        for sign in (-1, 1):
            wanted = key + sign * distance
            at = np.minimum(np.searchsorted(ranked, wanted), len(ranked) - 1)
            found.append((distance, np.where(ranked[at] == wanted, order[at], -1)))
    return found


def lean(length: Floats, c: Constants = MEASURED) -> Floats:
    """Return how far each text leans on its neighbours: 1 for an utterance, less for an essay."""
    return np.minimum(1.0, c.utterance / np.maximum(length, 1.0))


def lexical_share(
    pool: Pool, evidence: Evidence, near: Near, foreign: float = 0.0, c: Constants = MEASURED
) -> Floats:
    """Return what share of the question's word weight each memory answers, about 0 to 1.

    A word that a short text lacks counts in part when a short neighbour in its source says it; a
    long text carries its own context and lends none.
    """
    total = float(evidence.weight.sum())
    if not total:
        return np.zeros(len(pool))
    present = evidence.present
    presence = c.presence * (1 - foreign)  # overlapping pairs of signs would count twice
    own = (1 - presence) * pool.bm25 + presence * (present @ evidence.weight)
    if not near:
        return own / total
    short = lean(pool.length, c)
    lent = present * short[:, None]
    borrowed = np.zeros(lent.shape)
    for distance, row in near:
        said = np.where((row >= 0)[:, None], lent[row], 0.0)
        np.maximum(borrowed, c.context**distance * said, out=borrowed)
    borrowed[present] = 0.0
    share: Floats = (own + short * (borrowed @ evidence.weight)) / total
    return share


def best_linked(score: Floats, links: Sequence[tuple[int, int]]) -> Floats:
    """Return the best score that each memory is linked to, in either direction, 0 without links."""
    best = np.zeros(len(score))
    for one, other in links:
        best[one] = max(best[one], score[other])
        best[other] = max(best[other], score[one])
    return best


def best_neighbour(score: Floats, near: Near) -> Floats:
    """Return the best score next door, half of it two places away, 0 where there is nobody."""
    best = np.zeros(len(score))
    for distance, row in near:
        np.maximum(best, np.where(row >= 0, score[row], 0.0) / distance, out=best)
    return best
