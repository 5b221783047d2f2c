"""`model`: the files of the embedding models."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from houkai import render, tables
from houkai.cli import options, progress, session

if TYPE_CHECKING:
    from houkai.ops.models import ModelFile

app = typer.Typer(
    name="model",
    help="Look at the embedding models' files, or pull their originals.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

Name = Annotated[str, typer.Argument(metavar="MODEL", help="The model, as `model list` names it.")]
AnyName = Annotated[str | None, typer.Argument(metavar="MODEL", help="Only this model's files.")]
Files = Annotated[
    list[str] | None, typer.Argument(metavar="FILE...", help="Only these files; else all of them.")
]

VIEW: Final = render.View(
    fields={
        "model": lambda r: r["model"],
        "origin": lambda r: r["origin"],
        "file": lambda r: r["file"],
        "bytes": lambda r: str(r["bytes"]),
        "state": lambda r: r["state"],
        "path": lambda r: r["path"],
    },
    columns={
        "model": lambda r: r["model"],
        "from": lambda r: r["origin"],
        "file": lambda r: r["file"],
        "size": lambda r: render.size(r["bytes"]),
        "state": lambda r: r["state"],
    },
)


@app.command("list")
def list_(format: options.Output = "auto") -> None:
    """List the files that models.lock pins, and which of them are here."""
    from houkai.ops.models import model_files

    _show(model_files(), format)


@app.command("verify")
def verify(name: AnyName = None, format: options.Output = "auto") -> None:
    """Hash the files that are here; code 1 when one is damaged or the package lacks one."""
    from houkai.ops.models import model_files

    found = model_files(name, hashed=True)
    _show(found, format)
    bad = [
        one
        for one in found
        if one.state == "damaged" or (one.origin == "package" and one.state != "verified")
    ]
    for one in bad:
        what = "Run: pip install --force-reinstall houkai"
        if one.origin == "hub":
            what = f"Run: houkai model pull {one.model} {one.file}"
        session.note(f"{one.path} is {one.state}. {what}")
    if bad:
        raise typer.Exit(1)


@app.command("pull")
def pull(name: Name, files: Files = None) -> None:
    """Download a model's original files from the hub, verified; run again to go on after a cut.

    HF_ENDPOINT names another hub than huggingface.co. The bundled model needs none of them.
    """
    from houkai.embed import hub

    for file in hub.hub_model(name).chosen(files or ()):
        with progress.shown(file.name, in_bytes=True) as tell:
            (path,) = hub.pull(name, [file.name], progress=partial(_tell, tell))
        session.say(str(path))


def _tell(tell: progress.Tell, _file: str, done: int, total: int) -> None:
    tell(done, total)


def _show(found: Sequence[ModelFile], format: render.Format) -> None:
    records = [dataclasses.asdict(one) for one in found]
    tables.write(records, VIEW, format, sys.stdout)
