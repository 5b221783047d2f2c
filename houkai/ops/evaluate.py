"""Measure how well recall answers questions whose answers are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Unpack

from houkai import evaluation, options, params
from houkai.errors import InputError, shown
from houkai.handle import Store
from houkai.ops.recall import find, recall
from houkai.rules import Doc, clean


@dataclass(frozen=True)
class EvalCase:
    """A question, the ids that answer it, and how to ask where that differs from the rest."""

    query: str
    relevant_ids: tuple[str, ...]
    k: int | None = None
    mode: str | None = None


@dataclass(frozen=True)
class EvalResult:
    """Means over all cases, and each case's own measures; `k` is -1 when cases differ."""

    n: int
    k: int
    recall_at_k: float
    precision_at_k: float
    mrr: float
    map: float
    ndcg_at_k: float
    per_case: list[dict[str, Any]]


def eval_recall(
    store: Store,
    cases: Annotated[
        Iterable[EvalCase | Mapping[str, Any]],
        Doc("Questions, each with the ids of the memories that answer it."),
    ],
    k: params.K = 5,
    **named: Unpack[options.EvalOptions],
) -> EvalResult:
    """Measure recall, precision, MRR, MAP and nDCG of recall on questions with known answers.

    A case is {"query", "relevant_ids", optional "k" and "mode"}. Nothing is touched.
    Raises InputError.
    """
    settings = clean(eval_recall, {"k": k, **named}, at=store.now())
    base = settings.pop("k")
    if not isinstance(cases, Iterable):
        raise InputError(f"cases must be a list of questions with ids, got {shown(cases)}.")
    checked = [_case(case) for case in cases]
    rows = [_measure(store, case, case.k or base, settings) for case in checked]
    sizes = {row["k"] for row in rows}
    names = ("recall_at_k", "precision_at_k", "mrr", "map", "ndcg_at_k")
    means = {name: sum(row[name] for row in rows) / len(rows) if rows else 0.0 for name in names}
    return EvalResult(len(rows), sizes.pop() if len(sizes) == 1 else -1, **means, per_case=rows)


def _case(case: EvalCase | Mapping[str, Any]) -> EvalCase:
    if isinstance(case, EvalCase):
        return case
    if not isinstance(case, Mapping) or "query" not in case or "relevant_ids" not in case:
        raise InputError(f"A case needs query and relevant_ids, got {shown(case)}.")
    ids = case["relevant_ids"]
    if isinstance(ids, str) or not isinstance(ids, Iterable):
        raise InputError(f"relevant_ids must be a list of ids, got {shown(ids)}.")
    known = {name: case.get(name) for name in ("k", "mode")}
    query = clean(recall, {"query": case["query"]})["query"]
    return EvalCase(query, tuple(str(id) for id in ids), **known)


def _measure(store: Store, case: EvalCase, k: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    asked = clean(eval_recall, {"k": k, **({"mode": case.mode} if case.mode else {})})
    found = [one.memory.id for one in find(store, {**settings, **asked, "query": case.query})]
    relevant = set(case.relevant_ids)
    return {
        "query": case.query,
        "k": k,
        "found": found,
        "relevant_ids": list(case.relevant_ids),
        "recall_at_k": evaluation.recall_at_k(found, relevant, k),
        "precision_at_k": evaluation.precision_at_k(found, relevant, k),
        "mrr": evaluation.reciprocal_rank(found, relevant),
        "map": evaluation.average_precision(found, relevant),
        "ndcg_at_k": evaluation.ndcg_at_k(found, relevant, k),
    }
