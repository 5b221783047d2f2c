"""`recall`: search by meaning and by words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer

from houkai import options as groups
from houkai import params
from houkai.cli import options, session
from houkai.errors import InputError
from houkai.model import ExpandSpec, HybridWeights
from houkai.rules import parameters

app = typer.Typer()


class RecallOptions(groups.CoreFilter, groups.RecallOptions, total=False):
    """What `recall` takes beside the query."""

    k: params.K
    touch: params.Touch
    explain: params.Explain


@app.command("recall")
@options.takes(RecallOptions)
def recall(
    ctx: typer.Context,
    query: options.Query,
    format: options.Output = "auto",
    **more: Any,
) -> None:
    """Find the memories that answer a query, best first."""
    given = ranking(more)
    with session.opened(ctx) as store:
        hits = store.recall(query, **given)
    extra: list[dict[str, Any]] = [
        {"score": hit.score, **({"explain": hit[2]} if len(hit) > 2 else {})} for hit in hits
    ]
    keys = ("score", "explain") if given.get("explain") else ("score",)
    session.show_memories([hit.memory for hit in hits], format, extra, keys=keys)


def ranking(more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the user gave, with what is written otherwise than in the library."""
    given = options.given(more)
    if "weights" in given:
        given["weights"] = weights(given["weights"])
    walk = {name: given.pop(f"expand_{name}", None) for name in parameters(ExpandSpec)}
    if walk := options.given(walk):
        given["expand"] = ExpandSpec(**walk)
    return given


def weights(pairs: Sequence[str]) -> HybridWeights:
    """Return the weights written as NAME=X. Raises InputError."""
    known = parameters(HybridWeights)
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InputError(f"--weight must be NAME=X, such as cosine=0.7, got {pair!r}.")
        if name not in known:
            raise InputError(f"--weight knows {', '.join(known)}, not {name!r}.")
        try:
            values[name] = value if known[name].words else float(value)
        except ValueError:
            raise InputError(f"--weight {name} needs a number, got {value!r}.") from None
    return HybridWeights(**values)
