"""`eval`: measure recall on a file of questions whose answers are known."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from houkai import options as groups
from houkai import params, render
from houkai.cli import options, session
from houkai.cli.recall import ranking
from houkai.errors import InputError, NotFound

if TYPE_CHECKING:
    from houkai.store import MemoryStore

app = typer.Typer()

Gold = Annotated[
    str,
    typer.Argument(
        metavar="GOLD.jsonl",
        help='One {"query": ..., "relevant_ids": [...]} a line; "k" and "mode" may be added.',
    ),
]
PerCase = Annotated[bool, typer.Option("--per-case", help="Also show each question.")]

MEASURES: Final = {
    "recall_at_k": "recall",
    "precision_at_k": "precision",
    "mrr": "MRR",
    "map": "MAP",
    "ndcg_at_k": "nDCG",
}


def _measure(name: str, digits: int) -> render.Cell:
    return lambda record: f"{record[name]:.{digits}f}"


VIEW: Final = render.View(
    fields={
        **{name: _measure(name, 4) for name in MEASURES},
        "query": lambda r: r["query"],
    },
    columns={
        **{short: _measure(name, 3) for name, short in MEASURES.items()},
        "query": lambda r: render.excerpt(r["query"]),
    },
)


class EvalOptions(groups.EvalOptions, total=False):
    """How to ask."""

    k: params.K


@app.command("eval")
@options.takes(EvalOptions, leave=("collection",))
def evaluate(
    ctx: typer.Context,
    gold: Gold,
    per_case: PerCase = False,
    as_json: options.AsJson = False,
    **more: Any,
) -> None:
    """Measure recall on questions whose answers are known.

    Ids may be shortened as for every command; one that is unknown is an error. Nothing is touched.
    """
    given = ranking(more)
    with session.opened(ctx) as store:
        cases = list(_cases(store, gold, forgotten="as_of" in given))
        result = store.eval_recall(cases, **given)
    if as_json:
        told = asdict(result)
        session.show_json(told if per_case else {k: v for k, v in told.items() if k != "per_case"})
        return
    if per_case:
        session.show_records(result.per_case, VIEW, "auto", "")
        print()
    means = {short: f"{getattr(result, name):.4f}" for name, short in MEASURES.items()}
    k = "differs" if result.k < 0 else str(result.k)
    session.say(render.pairs({"questions": str(result.n), "k": k, **means}))


def _cases(store: MemoryStore, gold: str, *, forgotten: bool) -> Iterator[dict[str, Any]]:
    """Yield the questions of a file with whole ids. Raises InputError, naming the line."""
    number = 0
    for number, line in _lines(gold):
        try:
            case = _case(line)
            ids = [store.find_id(id, forgotten=forgotten) for id in case["relevant_ids"]]
        except (InputError, NotFound) as error:
            raise InputError(f"Line {number}: {error.message}", hint=error.hint) from None
        yield {**case, "relevant_ids": ids}
    if not number:
        raise InputError(f"{gold} holds no question.")


def _lines(gold: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, numbered from 1. Raises InputError."""
    try:
        text = (
            sys.stdin.buffer.read().decode("utf-8-sig")
            if gold == "-"
            else Path(gold).read_text(encoding="utf-8-sig")
        )
    except OSError as error:
        raise InputError(f"{gold} cannot be read: {error.strerror or error}.") from None
    except ValueError:
        raise InputError(f"{gold} is no UTF-8 text.") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


def _case(line: str) -> dict[str, Any]:
    try:
        case = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("this is no JSON.") from None
    ids = case.get("relevant_ids") if isinstance(case, dict) else None
    if not isinstance(ids, list) or "query" not in case:
        raise InputError('a question is {"query": ..., "relevant_ids": [...]}.')
    return dict(case)
