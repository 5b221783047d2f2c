"""Recall: find the memories that answer a query, and say why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from houkai import options, params
from houkai.handle import Reranker, Store
from houkai.hits import Answer, ExplainedHit, Hit
from houkai.notes import tell
from houkai.ops.listing import tell_of_collections
from houkai.rules import clean

if TYPE_CHECKING:
    from houkai.ops.ranked import Ranked


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
    reranker: Reranker | None = None,
    **named: Unpack[options.RecallOptions],
) -> Answer[Hit] | Answer[ExplainedHit]:
    """Return the memories most relevant to a query, best first.

    Call it before starting a task. Fewer than `k` come back when fewer are eligible, none when
    `min_relevance` is given and not met; the answer then counts the near misses.
    Raises InputError; ModelMissing and ModelMismatch in semantic mode.
    """
    given = {"query": query, "k": k, "type": type, "tag": tag, "min_importance": min_importance}
    flags = {"touch": touch, "explain": explain}
    values = clean(recall, {**given, **flags, **named}, at=store.now())
    touch, explain = values.pop("touch"), values.pop("explain")
    ranked = find(store, values, reranker)
    tell_of_misses(ranked)
    if touch:
        chosen = [one for one in ranked if one.explain.get("source") != "graph_expansion"]
        store.touches.add([one.memory.id for one in chosen], store.now())
    answer: Answer[Any] = Answer(
        ExplainedHit(one.memory, one.score, one.explain) if explain else Hit(one.memory, one.score)
        for one in ranked
    )
    vars(answer).update(vars(ranked))
    return answer


def find(store: Store, values: dict[str, Any], reranker: Reranker | None = None) -> Answer[Ranked]:
    """Run the pipeline on a recall's cleaned parameters, without touching anything."""
    # numpy and the pipeline come with the first recall, so that listings never pay for them.
    from houkai.ops import ranked
    from houkai.search import query as queries
    from houkai.search.ranking import Ranking, checked

    now = values.pop("now", None) or store.now()
    asked, k = queries.understand(values.pop("query"), now), values.pop("k")
    as_of = values.pop("as_of", None)
    knobs = [name for name in Ranking.__dataclass_fields__ if name in values]
    how = checked(Ranking(**{name: values.pop(name) for name in knobs}))
    where = replace(store.where(**values), now=now)
    judge = reranker or store.settings.reranker
    answer = ranked.rank(store, asked, k, where, how, as_of=as_of, reranker=judge)
    if not answer:
        tell_of_collections(store, where.collection)
    return answer


def tell_of_misses(answer: Answer[Ranked]) -> None:
    """Say to a door that nothing was relevant, and how near it came."""
    if answer.near_misses:
        best = f", the best at {answer.best_score:.2f}" if answer.best_score is not None else ""
        tell(f"Nothing relevant: {answer.near_misses} near misses{best}.")
