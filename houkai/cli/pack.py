"""`pack` and `auto-context`: what is known, as a block of text for a prompt."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from houkai import options as groups
from houkai import params
from houkai.cli import options, session
from houkai.cli.recall import ranking
from houkai.cli.remember import spoken

if TYPE_CHECKING:
    from houkai.packing import PackResult

app = typer.Typer()

Form = Annotated[
    Literal["text", "json"],
    typer.Option(
        "--format",
        "-f",
        metavar="text|json",
        help="text: the block alone; json: also each memory, its score and what it cost.",
        show_default=False,
    ),
]
Task = Annotated[
    str,
    typer.Argument(
        metavar="TASK", help=options.sentence(params.Task) + ' "-" reads standard input.'
    ),
]


class PackOptions(groups.PackOptions, total=False):
    """What `pack` takes beside the query."""

    max_items: params.MaxItems
    touch: params.Touch


class ContextOptions(groups.PackOptions, total=False):
    """What `auto-context` takes beside the task."""

    max_phrases: params.MaxPhrases
    touch: params.Touch


@app.command("pack")
@options.takes(PackOptions)
def pack(
    ctx: typer.Context,
    query: options.Query,
    format: Form = "text",
    **more: Any,
) -> None:
    """Pack the answers to a query into a block for a prompt."""
    given = ranking(more)
    with session.opened(ctx) as store:
        result = store.recall_pack(query, **given)
    _show(result, format)


@app.command("auto-context")
@options.takes(ContextOptions)
def auto_context(
    ctx: typer.Context,
    task: Task,
    format: Form = "text",
    **more: Any,
) -> None:
    """Pack what is known about a task, seen from several angles.

    The task may come from a pipe: cat ticket.md | houkai auto-context -
    """
    given = ranking(more)
    with session.opened(ctx) as store:
        result = store.auto_context_pack(spoken(task), **given)
    _show(result, format)


def _show(result: PackResult, format: str) -> None:
    if format == "json":
        session.show_json(asdict(result))
        return
    if result.text:
        session.say(result.text)
    elif result.truncated:
        session.note("Nothing fits the budget.")
    else:
        session.note("No memories found.")
