"""`stats`, `doctor`, `salvage` and `version`: how the store is doing."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from houkai import render, settings
from houkai.cli import options, session
from houkai.cli.place import Place

app = typer.Typer()

Repair = Annotated[
    bool, typer.Option("--repair", help="First make the search indexes anew; no memory changes.")
]
Deep = Annotated[
    bool, typer.Option("--deep", help="Also embed every text again and compare: it takes long.")
]


@app.command("stats")
def stats(ctx: typer.Context, as_json: options.AsJson = False) -> None:
    """Count what the store holds: the collection, then the whole file."""
    with session.opened(ctx) as store:
        found = store.stats()
    if as_json:
        print(render.json_text(found, ascii_only=not render.is_utf8(sys.stdout)))
        return
    kinds = [f"{number} {name}" for name, number in sorted(found["by_type"].items())]
    more = ["…"] if found["collections"] > len(found["collection_names"]) else []
    told = {
        "collection": found["collection"],
        "  memories": _counted(found["count"], kinds),
        "file": found["path"],
        "  collections": _counted(found["collections"], found["collection_names"] + more),
        "  links": found["links"],
        "  operations": found["operations"],
        "  size": render.size(found["bytes"]),
        "  model": found["model"],
        "  without vector": found["unembedded"],
        "  changing over to": found["reembedding"],
    }
    session.say(
        render.pairs({name: str(value) for name, value in told.items() if value is not None})
    )


def _counted(number: int, what: Sequence[str]) -> str:
    return f"{number} ({', '.join(what)})" if what else str(number)


@app.command("doctor")
def doctor(
    ctx: typer.Context,
    repair: Repair = False,
    deep: Deep = False,
    as_json: options.AsJson = False,
) -> None:
    """Check the file, its indexes and the model.

    Ends with code 1 when something is wrong. A file that is not there is not made, and refused if
    it was named.
    """
    from houkai.ops import doctor as doctors
    from houkai.ops import health

    flags = ctx.ensure_object(Place)
    place = settings.load(flags.db, flags.collection)
    session.refuse_missing(place.db)
    path = Path(place.db.value).expanduser()
    if repair and path.exists():
        doctors.repair(path, place.embedder.value, deep=deep)
    checks = health.doctor(place, deep=deep)
    well = all(check.ok for check in checks)
    if as_json:
        told = {"ok": well, "checks": [check.to_dict() for check in checks]}
        print(render.json_text(told, ascii_only=not render.is_utf8(sys.stdout)))
    else:
        width = max(len(check.name) for check in checks)
        for check in checks:
            mark = "ok  " if check.ok else "FAIL"
            line = f"{mark}  {check.name:<{width}}  {check.found}"
            session.say(f"{line}  {check.hint}" if check.hint else line)
    if not well:
        raise typer.Exit(1)


@app.command("salvage")
def salvage(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="The damaged file; it is only read.")
    ],
    target: Annotated[Path, typer.Argument(metavar="NEW", help="The file to make.")],
    as_json: options.AsJson = False,
) -> None:
    """Copy what can be read of a damaged file into a new one.

    Tells what was copied and which memories are known to be lost. The history before is not kept.
    """
    from houkai.ops.salvage import salvage as copy

    report = copy(source, target).to_dict()
    if as_json:
        print(render.json_text(report, ascii_only=not render.is_utf8(sys.stdout)))
        return
    told = {
        name.replace("_", " "): ", ".join(value) if isinstance(value, list) else str(value)
        for name, value in report.items()
    }
    session.say(render.pairs({name: value or "none" for name, value in told.items()}))


@app.command("version")
def version() -> None:
    """Show the versions of houkai and of what it stands on."""
    from houkai.ops import health

    session.say(render.pairs(health.versions()))
