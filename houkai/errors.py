"""The one tree of errors; every error has a sentence, a hint and a code.

HoukaiError
├─ InputError (ValueError)      a value outside what is allowed
├─ NotFound (KeyError)          an id, operation or collection that is not there
├─ ConflictError                a write that contradicts what is stored
├─ Diverged                     an undo of rows that have moved on since
├─ NotReady                     something must be installed or chosen first
│  ├─ ModelMissing
│  ├─ ModelMismatch
│  └─ ExtraMissing
├─ StorageError                 the file or the disk below it
│  ├─ Busy        ├─ ReadOnly   ├─ Full
│  ├─ Corrupt     ├─ Foreign    └─ SchemaTooNew
└─ BadArchive                   an archive that cannot be read
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class HoukaiError(Exception):
    """Say in one sentence what went wrong, with a hint on what to do."""

    hint: str = ""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint

    @property
    def code(self) -> str:
        """Name the kind of error, the same on every door."""
        return type(self).__name__

    def __str__(self) -> str:
        """Return the sentence; KeyError alone would quote it."""
        return self.message

    def line(self) -> str:
        """Return sentence and hint as one line for people."""
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive pickling, so that process pools can pass errors on."""
        return (_rebuild, (type(self), self.message, self.__dict__.copy()))


def shown(value: object) -> str:
    """Return a refused value as a sentence shows it: its repr, cut short."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write out numbers of thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:79]}…"


def _rebuild(kind: type[HoukaiError], message: str, state: dict[str, Any]) -> HoukaiError:
    error = kind.__new__(kind, message)
    error.args = (message,)
    error.__dict__.update(state)
    return error


class InputError(HoukaiError, ValueError):
    """Refuse a value; the sentence names the parameter and what is allowed."""


class NotFound(HoukaiError, KeyError):
    """Report that nothing has this id, number or name."""


class ConflictError(HoukaiError):
    """Refuse a write that conflicts with stored memories, kept in `.conflicts`."""

    def __init__(
        self, message: str, conflicts: Sequence[Any] = (), *, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.conflicts = list(conflicts)


class Diverged(HoukaiError):
    """Refuse an undo because rows changed afterwards; `.rows` names them."""

    hint = "Undo the later operations first, newest before oldest."

    def __init__(self, message: str, rows: Sequence[str] = (), *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.rows = list(rows)


class NotReady(HoukaiError):
    """Report that something must be installed or chosen first."""


class ModelMissing(NotReady):
    """Report that the embedding model's files are absent or damaged."""


class ModelMismatch(NotReady):
    """Refuse to mix vectors of two embedding models in one file."""


class ExtraMissing(NotReady):
    """Report that an optional package is not installed."""


class StorageError(HoukaiError):
    """Report a failure of the file or of the disk below it."""


class Busy(StorageError):
    """Report that another process held the file for longer than the wait allows."""

    hint = "Try again; nothing was written."


class ReadOnly(StorageError):
    """Report that the file or its folder cannot be written."""


class Full(StorageError):
    """Report that the disk is full; nothing of the write remains."""

    hint = "Free some space and try again; what was stored before is intact."


class Corrupt(StorageError):
    """Report a damaged file; it is left as it was."""

    hint = "Run `houkai doctor` on the file, or restore a backup."


class Foreign(StorageError):
    """Refuse a file that houkai did not make; it is left as it was."""


class SchemaTooNew(StorageError):
    """Refuse a file that a newer houkai made; it is left as it was."""


class BadArchive(HoukaiError):
    """Refuse an archive that is not one, is damaged, or is from a newer version."""
