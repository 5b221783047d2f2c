"""Pack memories into a block of text for a prompt, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Unpack

from houkai import options, packing, params
from houkai.handle import Reranker, Store
from houkai.model import Memory
from houkai.ops.recall import find, tell_of_misses
from houkai.packing import Compression, PackResult, TokenCounter
from houkai.rules import clean
from houkai.stopwords import STOP_WORDS
from houkai.storage import memories
from houkai.storage.eligible import condition

PER_QUERY = 10
"""Memories that each query of a fan-out may bring."""
RRF_K = 60


def recall_pack(
    store: Store,
    query: params.Query,
    *,
    max_items: params.MaxItems = 50,
    touch: params.Touch = True,
    reranker: Reranker | None = None,
    token_counter: TokenCounter | None = None,
    **named: Unpack[options.PackOptions],
) -> PackResult:
    """Return the most relevant memories as a text block that fits a token budget.

    Items are taken in rank order; one too long for what is left is passed over. Text that is not
    trusted is quoted on its own line and marked. Where nothing is relevant, nothing is packed
    and `near_misses` says how many were held back. Raises InputError.
    """
    given = {"query": query, "max_items": max_items, "touch": touch, **named}
    values = clean(recall_pack, given, at=store.now())
    budget = _take_budget(values)
    k, touch = values.pop("max_items"), values.pop("touch")
    ranked = find(store, {**values, **_careful(store, values), "k": k}, reranker)
    tell_of_misses(ranked)
    hits = [(one.memory, one.score) for one in ranked]
    result = _pack(store, hits, values, budget, touch, token_counter)
    return replace(result, near_misses=ranked.near_misses)


def auto_context_pack(
    store: Store,
    task: params.Task,
    *,
    max_phrases: params.MaxPhrases = 3,
    touch: params.Touch = True,
    reranker: Reranker | None = None,
    token_counter: TokenCounter | None = None,
    **named: Unpack[options.PackOptions],
) -> PackResult:
    """Return a text block of what is known about a task, looked at from several angles.

    The task and its key phrases are each recalled; the answers are joined by their ranks, since
    scores of different queries do not compare. Raises InputError.
    """
    given = {"task": task, "max_phrases": max_phrases, "touch": touch, **named}
    values = clean(auto_context_pack, given, at=store.now())
    budget = _take_budget(values)
    task, phrases, touch = values.pop("task"), values.pop("max_phrases"), values.pop("touch")
    queries = [task, *packing.key_phrases(task, phrases, STOP_WORDS)]
    asked = {**values, **_careful(store, values), "k": PER_QUERY}
    answers = [find(store, {**asked, "query": query}, reranker) for query in queries]
    found = joined([one.memory for one in answer] for answer in answers)
    result = _pack(store, found, values, budget, touch, token_counter)
    if found:  # what one angle misses another may have found
        return replace(result, queries=queries)
    nearest = max(answers, key=lambda answer: answer.near_misses)
    tell_of_misses(nearest)
    return replace(result, queries=queries, near_misses=nearest.near_misses)


def _careful(store: Store, values: dict[str, Any]) -> dict[str, Any]:
    """Have nothing packed where nothing is relevant, by the model this was measured with."""
    from houkai.embed.minilm import MODEL  # what a pack loads anyway, and a listing never

    if "min_relevance" in values or store.embedder.name != MODEL:
        return {}
    return {"min_relevance": packing.LEAST_RELEVANCE}


def joined(answers: Iterable[Sequence[Memory]]) -> list[tuple[Memory, float]]:
    """Join ranked answers by reciprocal rank [Cormack et al., SIGIR 2009], best first."""
    score: dict[str, float] = {}
    found: dict[str, Memory] = {}
    for answer in answers:
        for rank, memory in enumerate(answer):
            found[memory.id] = memory
            score[memory.id] = score.get(memory.id, 0.0) + 1 / (RRF_K + rank)
    return [(found[id], score[id]) for id in sorted(score, key=lambda id: -score[id])]


def _take_budget(values: dict[str, Any]) -> dict[str, Any]:
    """Take the packing options out of a call's values, completed by their defaults."""
    return {
        name: values.pop(name, default)
        for name, default in (
            ("token_budget", 800),
            ("header", packing.HEADER),
            ("compress", False),
            ("compress_threshold", 0.30),
            ("compress_min_group", 2),
            ("include_pinned", False),
        )
    }


def _pack(
    store: Store,
    hits: list[tuple[Memory, float]],
    values: dict[str, Any],
    budget: dict[str, Any],
    touch: bool,
    count: TokenCounter | None,
) -> PackResult:
    if budget["include_pinned"]:
        hits = _pinned_first(store, hits, values)
    folding = Compression(budget["compress_threshold"], budget["compress_min_group"])
    result = packing.fit(
        hits,
        budget["token_budget"],
        header=budget["header"],
        count=count,
        compression=folding if budget["compress"] else None,
    )
    if touch:
        store.touches.add(result.ids(), store.now())
    return result


def _pinned_first(
    store: Store, hits: list[tuple[Memory, float]], values: dict[str, Any]
) -> list[tuple[Memory, float]]:
    """Put the pinned memories that the same filter lets through before the hits, newest first."""
    names = options.FilterOptions.__annotations__
    sql, bound = condition(store.where(**{n: v for n, v in values.items() if n in names}))
    with store.read() as connection:
        rows = connection.execute(
            f"""select m.pk from memory m where m.pinned = 1 and {sql}
                order by m.created_at desc, m.pk desc""",
            bound,
        ).fetchall()
        pks = [int(str(pk)) for (pk,) in rows]
        known = memories.by_pks(connection, pks, store.touches)
    top = max((score for _, score in hits), default=1.0)
    pinned = [(known[pk], top) for pk in pks]
    ids = {memory.id for memory, _ in pinned}
    return pinned + [hit for hit in hits if hit[0].id not in ids]
