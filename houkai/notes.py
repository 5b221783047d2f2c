"""What an operation says beside its result: a Python warning, unless a door listens.

`warnings.catch_warnings` swaps a hook of the whole process, so concurrent calls would take each
other's warnings; a context variable belongs to one call and follows it onto a worker thread.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

_heard: Final[ContextVar[list[str] | None]] = ContextVar("houkai_notes", default=None)


def note(sentence: str) -> None:
    """Say something beside the result, to whoever listens or else as a UserWarning."""
    heard = _heard.get()
    if heard is None:
        warnings.warn(sentence, stacklevel=_caller())
    elif sentence not in heard:
        heard.append(sentence)


def tell(sentence: str) -> None:
    """Say to a door what the result itself says to a caller of the library."""
    heard = _heard.get()
    if heard is not None and sentence not in heard:
        heard.append(sentence)


@contextlib.contextmanager
def listening() -> Iterator[list[str]]:
    """Yield a list that gathers the notes of this call and of the threads it hands work to."""
    heard: list[str] = []
    token = _heard.set(heard)
    try:
        yield heard
    finally:
        _heard.reset(token)


def _caller() -> int:
    """Return the stack level, counted from `note`, of the first frame outside houkai."""
    frame, level = sys._getframe(2), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "houkai":
        frame, level = frame.f_back, level + 1
    return level
