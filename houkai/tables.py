"""Write records to a stream: as a table for people, as TSV or JSON for programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, TextIO

from houkai.render import Format, Record, View, is_utf8, json_text, printable, tsv_cell


def resolve(format: Format, stream: TextIO) -> Format:
    """Return the format that "auto" means: a table on a terminal that wants colour, else TSV."""
    if format != "auto":
        return format
    return "rich" if stream.isatty() and not os.environ.get("NO_COLOR") else "tsv"


def write(records: Sequence[Record], view: View, format: Format, stream: TextIO) -> None:
    """Write records to a stream in a format."""
    kind = resolve(format, stream)
    narrow = not is_utf8(stream)
    if kind == "json":
        stream.write(json_text(list(records), ascii_only=narrow) + "\n")
    elif kind == "jsonl":
        for record in records:
            stream.write(json_text(record, ascii_only=narrow, indent=None) + "\n")
    elif kind == "tsv":
        stream.write("\t".join(view.fields) + "\n")
        for record in records:
            stream.write("\t".join(tsv_cell(cell(record)) for cell in view.fields.values()) + "\n")
    else:
        _write_table(records, view, stream)


def _write_table(records: Sequence[Record], view: View, stream: TextIO) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
        header_style="bold",
    )  # fmt: skip
    *others, last = view.columns
    for name in others:
        if name == "tags":
            table.add_column(name, max_width=16, overflow="fold", style="cyan")
        else:
            table.add_column(name, no_wrap=True, style="dim" if name == "age" else "")
    table.add_column(last, overflow="fold", ratio=1)
    for record in records:
        table.add_row(*(Text(printable(cell(record))) for cell in view.columns.values()))
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    console = Console(file=stream, color_system=colours, highlight=False, emoji=False, markup=False)
    console.print(table)
    if view.note and records:
        console.print(Text(view.note, style="dim"))
