"""The `houkai` program: its commands by section, and how it ends.

Only the module of the command that was asked for is imported and built. Building all of them
costs more than most commands take, so their sentences stand here; a test holds them equal to
the docstrings they are taken from.
"""

from __future__ import annotations

import copy
import gc
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from houkai.cli import parsing
from houkai.cli.place import Place
from houkai.errors import HoukaiError


@dataclass(frozen=True)
class Entry:
    """A command or group of commands: its name, its module in this package, what it does."""

    name: str
    module: str
    sentence: str


SECTIONS: Final[dict[str, tuple[Entry, ...]]] = {
    "Write": (
        Entry("remember", "remember", "Store a memory and print its id."),
        Entry("edit", "edit", "Change fields of a memory, with flags or in your editor."),
        Entry("tag", "edit", "Add tags to a memory, or take them off."),
        Entry("bump", "edit", "Raise or lower the importance of a memory."),
        Entry("forget", "forget", "Delete memories with their links; undo brings them back."),
        Entry("nuke", "forget", "Delete every memory of the collection; undo brings them back."),
    ),
    "Find": (
        Entry("recall", "recall", "Find the memories that answer a query, best first."),
        Entry("pack", "pack", "Pack the answers to a query into a block for a prompt."),
        Entry("auto-context", "pack", "Pack what is known about a task, seen from several angles."),
        Entry("list", "listing", "List memories, the newest first."),
        Entry("show", "listing", "Show everything about one memory."),
    ),
    "Link": (
        Entry("link", "links", "Link one memory to another."),
        Entry("unlink", "links", "Remove the links from one memory to another."),
        Entry("neighbors", "links", "Show the memories linked to one, nearest first."),
        Entry("graph", "links", "Draw the memories that some lead to along their links."),
        Entry("path", "links", "Show a shortest chain of links between two memories."),
    ),
    "Curate": (
        Entry("conflicts", "conflicts", "Find memories that contradict or repeat each other."),
        Entry("supersede", "conflicts", "Replace a memory by a newer one; the old one is hidden."),
        Entry("restore", "conflicts", "Show a superseded memory again."),
        Entry("merge", "curation", "Fold one memory into another, which keeps its id."),
        Entry("versions", "curation", "Show what a memory said before each change of it."),
        Entry("tags", "tags", "Count, rename, merge and delete tags."),
        Entry("trash", "trash", "Put memories aside, bring them back, or drop them for good."),
    ),
    "Look back": (
        Entry("history", "history", "Show every change of one memory, forgotten or not."),
        Entry("journal", "journal", "Look at the record of every change."),
        Entry("state-at", "past", "List the memories as the store knew them at a moment."),
        Entry("get-at", "past", "Show one memory as the store knew it at a moment."),
        Entry("diff", "past", "Show what changed between two moments."),
        Entry("undo", "undo", "Undo the last operation, a named one, or all since a moment."),
        Entry("redo", "undo", "Bring back what an undo took away."),
    ),
    "Look after": (
        Entry(
            "stats", "health", "Count what the store holds: the collection, then the whole file."
        ),
        Entry("doctor", "health", "Check the file, its indexes and the model."),
        Entry("salvage", "health", "Copy what can be read of a damaged file into a new one."),
        Entry(
            "reembed",
            "reembed",
            "Change the file over to another embedding model; stop it and run it again at will.",
        ),
        Entry("eval", "evaluate", "Measure recall on questions whose answers are known."),
        Entry("model", "models", "Look at the embedding models' files, or pull their originals."),
        Entry("version", "health", "Show the versions of houkai and of what it stands on."),
    ),
    "Connect": (Entry("mcp", "doors", "Serve the store to an agent over MCP."),),
    "Get to know it": (Entry("demo", "demo", "Tour a temporary file; yours is not touched."),),
}
ENTRIES: Final = {entry.name: entry for group in SECTIONS.values() for entry in group}

INTERRUPTED: Final = 130


@contextmanager
def _advising() -> Iterator[None]:
    """Say what to type where words do not fit."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "message"):  # an error, not the end of --help
            from houkai.cli import slips

            slips.advise(error)
        raise


class Commands(TyperGroup):
    """The commands, each built when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = dict.fromkeys(ENTRIES)  # type: ignore[assignment]

    def list_commands(self, _ctx: Any) -> list[str]:
        """Name every command."""
        return list(ENTRIES)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what stands before the command."""
        parsing.lighten([self], ctx)
        with _advising():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _advising():
            return super().invoke(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Build a command."""
        if cmd_name not in ENTRIES:
            return None
        command = typer.main.get_command(_part(ENTRIES[cmd_name]))
        parsing.lighten([command], ctx)
        _accept_place(command, [p for p in self.params if p.name in ("db", "collection")])
        _speak_as_typed(command)
        return command

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write the commands by section."""
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{entry.name:<8}", entry.sentence) for entry in entries])


def _part(entry: Entry) -> typer.Typer:
    """Return the Typer application of one command, or of the group that a module is."""
    home: typer.Typer = import_module(f"houkai.cli.{entry.module}").app
    if home.info.name == entry.name:
        return home
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    alone.registered_commands += [
        info for info in home.registered_commands if info.name == entry.name
    ]
    return alone


def _accept_place(command: Any, places: list[Any]) -> None:
    """Let --db and --collection also stand after the command, where people type them."""
    for child in getattr(command, "commands", {}).values():
        _accept_place(child, places)
    if hasattr(command, "commands"):
        return
    taken = {flag for parameter in command.params for flag in parameter.opts}
    for place in places:
        if taken.isdisjoint(place.opts):
            late = copy.copy(place)
            late.expose_value, late.hidden, late.callback = False, True, _place_late
            command.params.append(late)


def _place_late(ctx: Any, parameter: Any, value: str | None) -> None:
    if value is not None:
        setattr(ctx.obj, parameter.name, value)


def _speak_as_typed(command: Any) -> None:
    """Have a command's errors name options and arguments as its user types them."""
    for child in getattr(command, "commands", {}).values():
        _speak_as_typed(child)
    run = command.invoke

    def invoke(ctx: Any) -> Any:
        try:
            return run(ctx)
        except HoukaiError as error:
            from houkai.cli import wording  # only needed when something went wrong

            wording.retell(error, command.params)
            raise

    if not hasattr(command, "commands"):
        command.invoke = invoke


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    subcommand_metavar="COMMAND ...",
    no_args_is_help=True,
)


def _version(wanted: bool) -> None:
    if wanted:
        from houkai import __version__

        print(f"houkai {__version__}")
        raise typer.Exit


Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        "-S",
        metavar="PATH",
        help="The memory file; else HOUKAI_DB, the config file, ~/.houkai/memory.db.",
    ),
]
Collection = Annotated[
    str | None,
    typer.Option(
        "--collection",
        "-C",
        metavar="NAME",
        help='The collection; else HOUKAI_COLLECTION, the config file, "default".',
    ),
]
Version = Annotated[
    bool,
    typer.Option("--version", "-V", callback=_version, is_eager=True, help="Show the version."),
]


@app.callback()
def root(
    ctx: typer.Context,
    db: Db = None,
    collection: Collection = None,
    version: Version = False,  # noqa: ARG001 - its callback does the work
) -> None:
    """Keep what an agent learns in one file: remember it, recall it by meaning, undo anything."""
    ctx.obj = Place(db, collection)


def main() -> None:
    """Run the command line and end the process with its code."""
    # Modules being loaded leave no garbage; looking for it takes a fourteenth of a recall.
    gc.set_threshold(100_000)
    _prepare_streams()
    # Unwinds and so closes the file, where the signal's own effect would leave the log beside it.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    sys.exit(_run())


def _run() -> int:
    try:
        code = _ended()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - nobody is left to see it
        from houkai.cli import ending

        return ending.failed(error)


def _ended() -> int:
    """Run the command and return the code that it ends with by itself."""
    try:
        typer.main.get_command(app).main(prog_name="houkai")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _prepare_streams() -> None:
    """Print every sign on any console: one that it cannot show is written out."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
