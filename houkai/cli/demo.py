"""`demo`: the tour."""

from __future__ import annotations

import typer

from houkai.cli import session

app = typer.Typer()


@app.command("demo")
def demo() -> None:
    """Tour a temporary file; yours is not touched."""
    from houkai import demo as tour

    tour.tell(session.say)
