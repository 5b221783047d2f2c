"""How a command that failed ends: what is said on stderr, and the code of the process."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from typing import Final

from houkai import render
from houkai.errors import HoukaiError, NotFound

FAILED: Final = 1
NOT_THERE: Final = 3
BUG: Final = 70
"""What sysexits.h calls EX_SOFTWARE, so that no script takes a bug for a refusal."""


def failed(error: Exception) -> int:
    """Say what went wrong, with the traceback where HOUKAI_DEBUG asks for it; return the code."""
    if os.environ.get("HOUKAI_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, HoukaiError):
        return _refused(error)
    return _gave_up(error) if isinstance(error, OSError) else _owned_up(error)


def _refused(error: HoukaiError) -> int:
    print(f"Error: {render.one_line(error.line())}", file=sys.stderr)
    for one in getattr(error, "conflicts", ()):
        line = f"  {one.kind} {render.short(one.b.id)} {render.excerpt(one.b.text, 80)}"
        print(line, file=sys.stderr)
    return NOT_THERE if isinstance(error, NotFound) else FAILED


def _gave_up(error: OSError) -> int:
    """Tell what the system refused, unless the reader went away, which is its right."""
    if not isinstance(error, BrokenPipeError):
        what = error.strerror or str(error)
        where = f": {error.filename}" if error.filename is not None else ""
        print(f"Error: {render.one_line(what + where)}.", file=sys.stderr)
    # What could not be written would be tried again at exit, and complained of.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED


def _owned_up(bug: Exception) -> int:
    what = render.excerpt(f"{type(bug).__name__}: {bug}", 200).rstrip(": .")
    print(
        f"Error: This is a bug of houkai, not your mistake ({what}). What was stored before is "
        "intact. Please report it where you have houkai from, with what HOUKAI_DEBUG=1 before "
        "the command shows.",
        file=sys.stderr,
    )
    return BUG
