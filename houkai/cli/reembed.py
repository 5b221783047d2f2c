"""`reembed`: another embedding model for the file."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from houkai import params, render
from houkai.cli import options, progress, session

if TYPE_CHECKING:
    from houkai.store import MemoryStore

app = typer.Typer()

Spec = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        "-e",
        metavar="SPEC",
        help="minilm, openai:MODEL or ollama:MODEL; else HOUKAI_EMBEDDER, the config file.",
    ),
]
Batch = Annotated[
    int, typer.Option("--batch-size", metavar="N", help=options.sentence(params.BatchSize))
]


@app.command("reembed")
def reembed(
    ctx: typer.Context,
    embedder: Spec = None,
    batch_size: Batch = 128,
    yes: options.Yes = False,
    as_json: options.AsJson = False,
) -> None:
    """Change the file over to another embedding model; stop it and run it again at will.

    The file stays in use meanwhile. Texts that an undo could bring back are embedded too.
    """
    with session.opened(ctx) as store:
        chosen = store.embedder.name if embedder is None else _name(embedder)
        _ask(store, chosen, yes=yes)
        try:
            with progress.shown("Embedding") as tell:
                done = store.reembed(embedder, batch_size=batch_size, progress=tell)
        except KeyboardInterrupt:
            session.note("Stopped. Run the same command again to go on from here.")
            raise
    if as_json:
        ascii_only = not render.is_utf8(sys.stdout)
        print(render.json_text(dataclasses.asdict(done), ascii_only=ascii_only))
        return
    what = "now has" if done.switched else "has"
    session.say(
        f"The file {what} vectors of {done.model} ({done.dim} dimensions): "
        f"{done.embedded:,} of {done.texts:,} texts embedded, {done.dropped:,} old ones dropped."
    )
    if embedder is not None and done.switched:
        session.note(f'Set HOUKAI_EMBEDDER={embedder}, or embedder = "{embedder}" in config.toml.')


def _name(spec: str) -> str:
    from houkai.embed.spec import build_embedder

    return build_embedder(spec).name


def _ask(store: MemoryStore, chosen: str, *, yes: bool) -> None:
    """Ask before the vectors of another change that has begun are given up."""
    coming = store.stats()["reembedding"]
    if coming not in (None, chosen):
        session.confirm(
            f"A change to {coming} has begun; its vectors would be dropped. Go on with {chosen}?",
            yes=yes,
        )
