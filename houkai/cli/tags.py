"""`tags`: the tags of a collection, counted and changed everywhere at once."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypedDict

import typer

from houkai import params, render
from houkai.cli import options, session

app = typer.Typer(
    name="tags",
    help="Count, rename, merge and delete tags.",
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

Tag = Annotated[str, typer.Argument(metavar="TAG", help=options.sentence(params.Tag))]
Old = Annotated[str, typer.Argument(metavar="OLD", help=options.sentence(params.Tag))]
New = Annotated[str, typer.Argument(metavar="NEW", help="What it is called from now on.")]
Into = Annotated[str, typer.Argument(metavar="INTO", help="The tag that stays.")]
Sources = Annotated[list[str], typer.Argument(metavar="TAG", help="A tag that it replaces.")]

VIEW: Final = render.View(
    fields={"tag": lambda r: r["tag"], "memories": lambda r: str(r["memories"])},
    columns={"memories": lambda r: str(r["memories"]), "tag": lambda r: r["tag"]},
)


class TagsOptions(TypedDict, total=False):
    """Which memories count."""

    include_superseded: params.IncludeSuperseded


@app.command("list")
@options.takes(TagsOptions)
def list_(ctx: typer.Context, format: options.Output = "auto", **more: Any) -> None:
    """List the tags with how many memories carry them, most used first."""
    with session.opened(ctx) as store:
        found = store.list_tags(**options.given(more))
    session.show_records([one._asdict() for one in found], VIEW, format, "No memory has a tag.")


@app.command("rename")
def rename(ctx: typer.Context, old: Old, new: New) -> None:
    """Rename a tag on every memory, hidden ones too."""
    with session.opened(ctx) as store:
        done = store.rename_tag(old, new)
    _tell("Renamed it", done.changed, f"No memory has the tag {old!r}; nothing was renamed.")


@app.command("merge")
def merge(ctx: typer.Context, into: Into, tags: Sources) -> None:
    """Replace several tags by one on every memory."""
    with session.opened(ctx) as store:
        done = store.merge_tags(tags, into)
    _tell("Merged them", done.changed, "No memory has such a tag; nothing was merged.")


@app.command("delete")
def delete(ctx: typer.Context, tag: Tag, yes: options.Yes = False) -> None:
    """Take a tag off every memory; the memories stay."""
    with session.opened(ctx) as store:
        session.confirm(f"Take the tag {tag!r} off every memory?", yes=yes)
        done = store.delete_tag(tag)
    _tell("Took it off", done.changed, f"No memory has the tag {tag!r}; nothing was taken off.")


def _tell(what: str, changed: int, nothing: str) -> None:
    if not changed:
        session.note(nothing)
        return
    session.say(f"{what}: {changed} {'memory' if changed == 1 else 'memories'} changed.")
