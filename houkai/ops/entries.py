"""Candidates on their way to an answer: scored anew, joined by what is linked, cut to k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.errors import InputError, shown
from houkai.handle import Reranker
from houkai.model import ExpandSpec, Memory
from houkai.notes import tell
from houkai.search import expansion, past, select
from houkai.search.pool import Pool
from houkai.search.query import Query
from houkai.search.ranking import Ranking, Scored
from houkai.search.sketches import View
from houkai.storage.eligible import Filter

if TYPE_CHECKING:
    Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Entry:
    """One candidate on its way through the pipeline."""

    pk: int
    score: float
    explain: dict[str, Any] = field(default_factory=dict)


def best(found: Pool, scored: Scored, depth: int) -> list[Entry]:
    """Return the candidates best first; newer memories win ties."""
    order = np.lexsort((-found.pk, -found.created_at, -scored.score))[:depth].tolist()
    return [Entry(int(found.pk[i]), float(scored.score[i]), scored.explain(i)) for i in order]


def reranked(
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
    reached = expansion.walk(connection, start, spec, where)
    if not reached and spec.depth and spec.cap:
        _tell_of_other_links(expansion.passed_over(connection, start, spec, where), spec)
    return [
        Entry(
            n.pk,
            n.score,
            {"source": "graph_expansion", "rel": n.rel, "hop": n.hop, "score": round(n.score, 4)},
        )
        for n in reached
    ]


def _tell_of_other_links(rels: list[str], spec: ExpandSpec) -> None:
    """Say to a door why no linked memory came, where other relations would have brought some."""
    if rels:
        tell(
            f"No linked memory was added: the hits have links of {', '.join(rels)}, "
            f"and expand_rels follows {', '.join(spec.rels) or 'none'}."
        )


def joined(
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


def selected(view: View, entries: list[Entry], k: int, how: Ranking) -> list[Entry]:
    """Cut to k, passing over what repeats when asked to."""
    if (how.diversity is None and how.dedup_threshold is None) or not entries:
        return entries[:k]
    kept = select.select(
        range(len(entries)),
        np.array([entry.score for entry in entries]),
        _first_windows(view, [entry.pk for entry in entries]),
        k,
        diversity=how.diversity,
        dedup_threshold=how.dedup_threshold,
    )
    return [entries[at] for at in kept]


def _first_windows(view: View, pks: list[int]) -> Vector:
    """Return a vector for each memory, zero for one that has none."""
    windows = past.windows(view, np.array(pks, np.int64))
    if not len(windows.pk):
        return np.zeros((len(pks), 1), np.float32)
    read = view.vectors(windows.embedding)
    by_pk = dict(zip(windows.pk.tolist()[::-1], read[::-1], strict=True))
    none = np.zeros(read.shape[1], np.float32)
    return np.array([by_pk.get(pk, none) for pk in pks], np.float32)


def appended(
    connection: apsw.Connection, entries: list[Entry], spec: ExpandSpec | None, where: Filter
) -> list[Entry]:
    """Add neighbours after the cut, beyond k."""
    if spec is None or spec.rerank:
        return []
    return _neighbours(connection, entries, spec, where)
