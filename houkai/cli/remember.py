"""`remember`: store what a person or a pipe says."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from houkai import limits, params
from houkai.cli import options, session
from houkai.errors import InputError

app = typer.Typer()

Text = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        show_default=False,
        help=options.sentence(params.Text) + ' "-" or nothing reads all of standard input.',
    ),
]


@app.command("remember")
@options.takes(options.RememberOptions)
def remember(
    ctx: typer.Context, text: Text = None, format: options.Output = "auto", **more: Any
) -> None:
    """Store a memory and print its id.

    The text may come from a pipe: git log -1 | houkai remember -t episodic -g release
    """
    said = spoken(text)
    with session.opened(ctx, make=True) as store:
        memory = store.remember(said, **options.given(more))
    session.show_memory(memory, format, memory.id)


def spoken(text: str | None) -> str:
    """Return the text of an argument, or of standard input for "-" or none. Raises InputError."""
    if text is not None and text != "-":
        return text
    if text is None and sys.stdin.isatty():
        raise typer.BadParameter('Give the text, or "-" to type it until end of file.')
    # A byte more than the limit is enough for the store to refuse; a pipe may have no end.
    piped = sys.stdin.buffer.read(limits.TEXT_BYTES + 1)
    try:
        return piped.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and len(piped) > limits.TEXT_BYTES:
            return piped.decode("utf-8-sig", errors="ignore") + " "
        raise InputError("Standard input is no UTF-8 text.", hint="Convert it first.") from None
