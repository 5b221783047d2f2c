"""A progress bar on a terminal, plain lines of percent elsewhere, both on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from houkai import render

STEP: Final = 10
"""Percent between two plain lines."""

Tell = Callable[[int, int], None]


@contextmanager
def shown(label: str, *, in_bytes: bool = False) -> Iterator[Tell]:
    """Yield the function to call with (done, in all)."""
    count = render.size if in_bytes else "{:,}".format
    if sys.stderr.isatty():
        with _bar(label, count) as tell:
            yield tell
    else:
        yield _lines(label, count)


@contextmanager
def _bar(label: str, count: Callable[[int], str]) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = ("{task.description}", "{task.fields[counted]}")
    with Progress(
        TextColumn(columns[0]),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn(columns[1]),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(label, total=None, counted="")

        def tell(done: int, total: int) -> None:
            bar.update(
                task, completed=done, total=total, counted=f"{count(done)} of {count(total)}"
            )

        yield tell


def _lines(label: str, count: Callable[[int], str]) -> Tell:
    last = -STEP

    def tell(done: int, total: int) -> None:
        nonlocal last
        percent = 100 * done // total if total else 100
        if percent >= last + STEP or (percent == 100 and last < 100):
            last = percent
            print(f"{label}: {percent} % ({count(done)} of {count(total)})", file=sys.stderr)

    return tell
