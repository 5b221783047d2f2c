"""`mcp`: serve the store to other programs."""

from __future__ import annotations

import importlib
import os
from typing import Annotated, Literal

import typer

from houkai.cli.place import Place

app = typer.Typer()

Tools = Annotated[
    Literal["core", "all"],
    typer.Option("--tools", metavar="core|all", help="Which tools to offer; each costs context."),
]


@app.command("mcp")
def mcp(ctx: typer.Context, tools: Tools = "core") -> None:
    """Serve the store to an agent over MCP."""
    place = ctx.ensure_object(Place)
    # A flag stands above the environment, from which the server takes its settings.
    if place.db:
        os.environ["HOUKAI_DB"] = place.db
    if place.collection:
        os.environ["HOUKAI_COLLECTION"] = place.collection
    # Doors do not know each other; this one only starts the other, by name.
    server = importlib.import_module("houkai.doors.mcp_server")
    raise typer.Exit(server.main(["--tools", tools]))
