"""What every command shares: the store it works on, ids, questions, and what it prints."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from houkai import notes, render, settings, tables
from houkai.cli.place import Place
from houkai.errors import InputError

if TYPE_CHECKING:
    from houkai.model import JournalEntry, Memory
    from houkai.store import MemoryStore

ACTOR = "cli"


@contextmanager
def opened(ctx: typer.Context, *, make: bool = False) -> Iterator[MemoryStore]:
    """Open the store that the flags, the environment or the config file name.

    A file that was named for this command is made only if `make`. Raises InputError.
    """
    from houkai.store import MemoryStore

    place = ctx.ensure_object(Place)
    if not make:
        refuse_missing(settings.load(place.db, place.collection).db)
    with notes.listening() as heard:
        try:
            with MemoryStore(place.db, place.collection, actor=ACTOR) as store:
                yield store
        finally:
            for sentence in heard:
                from houkai.cli import wording  # only needed when there is something to say

                note(wording.retold(sentence, ctx.command.params))


def refuse_missing(db: settings.Place) -> None:
    """Refuse a file that is not there if a flag or the environment names it: it is mistyped.

    What the config file names and the default are made when they are first used.
    """
    if db.origin not in ("flag", "HOUKAI_DB") or db.value == ":memory:":
        return
    if not Path(db.value).expanduser().exists():
        raise InputError(
            f"There is no memory file at {db.value}.",
            hint="Check the path; `houkai remember` makes a new file.",
        )


def say(text: str) -> None:
    """Print text for people."""
    print(render.printable(text))


def note(text: str) -> None:
    """Print one line beside the result, where it spoils no pipe."""
    print(f"Note: {render.one_line(text)}", file=sys.stderr)


def show_memories(
    memories: Sequence[Memory],
    format: render.Format,
    extra: Sequence[dict[str, Any]] = (),
    *,
    keys: Collection[str] = (),
) -> None:
    """Print memories, each with what goes with it under `keys`."""
    beside = extra or [{}] * len(memories)
    records = [{**memory.to_dict(), **more} for memory, more in zip(memories, beside, strict=True)]
    show_records(records, render.memory_view(records, keys), format, "No memories found.")


def show_memory(memory: Memory, format: render.Format, text: str) -> None:
    """Print one memory: as `text` for people, else as a record."""
    record = memory.to_dict()
    if format == "auto":
        say(text)
    elif format == "json":
        show_json(record)
    else:
        tables.write([record], render.memory_view([record]), format, sys.stdout)


def show_entries(entries: Sequence[JournalEntry], format: render.Format) -> None:
    """Print journal entries, a line each."""
    records = [render.entry_record(entry) for entry in entries]
    show_records(records, render.JOURNAL, format, "The journal has nothing of that kind.")


def show_records(
    records: Sequence[dict[str, Any]], view: render.View, format: render.Format, nothing: str
) -> None:
    """Print records of a kind, or say that there are none."""
    if not records:
        print(nothing, file=sys.stderr)
        if tables.resolve(format, sys.stdout) == "rich":
            return
    tables.write(records, view, format, sys.stdout)


def show_json(value: Any) -> None:
    """Print a value as JSON."""
    print(render.json_text(value, ascii_only=not render.is_utf8(sys.stdout)))


def show_changes(entries: Sequence[JournalEntry], format: render.Format) -> None:
    """Print journal entries with the fields that each changed."""
    if format != "auto":
        show_entries(entries, format)
        return
    for entry in entries:
        for line in render.entry_lines(entry):
            say(line)


def confirm(question: str, *, yes: bool, about: Sequence[str] = ()) -> None:
    """Ask before something is taken away; without a terminal only `--yes` goes ahead."""
    if yes:
        return
    if not can_ask():
        raise InputError(
            f"{question} There is no terminal to answer on, so nothing was done.",
            hint="Add --yes to go ahead.",
        )
    for line in about:
        print(render.printable(line), file=sys.stderr)
    if ask(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        print("Nothing was done.", file=sys.stderr)
        raise typer.Exit(1)


def can_ask() -> bool:
    """Say whether somebody is there to answer."""
    return sys.stdin.isatty()


def ask(question: str) -> str:
    """Return the line that a question is answered with; "" at the end of input."""
    print(render.printable(question), end="", file=sys.stderr, flush=True)
    # Typer's own question would turn Ctrl-C into an ordinary failure.
    return sys.stdin.readline()
