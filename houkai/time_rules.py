"""The rules that moments and spans of time obey."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from houkai.clock import AGO, is_span, parse_duration, parse_time
from houkai.errors import InputError, shown


def is_plain(value: Any) -> bool:
    """Say whether a value is text or a number, since arrays, say, have no answer to `in`."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


@dataclass(frozen=True)
class AsMoment:
    """A moment; `span` tells which way a span such as "7d" counts, `zero` whether 0 is absence."""

    span: Literal["back", "forward", "refuse"] = "back"
    zero: Literal["absent", "moment"] = "absent"

    def clean(self, name: str, value: Any, at: float | None = None) -> float | None:
        """Return epoch seconds; spans count from `at`. Raises InputError."""
        # A command line and a careless agent write numbers as text.
        number = value.strip() if isinstance(value, str) else value
        if is_plain(number) and number in (0, "0") and self.zero == "absent":
            return None
        if self.span != "back" and isinstance(value, str) and is_span(value):
            if self.span == "refuse":
                raise InputError(f"{name} must be epoch seconds or an ISO date, got {value!r}.")
            value = parse_time("now", name, at=at) + parse_duration(value, name)
        meaning = {"back": AGO, "forward": "that long from now", "refuse": None}
        return parse_time(value, name, at=at, span=meaning[self.span])


@dataclass(frozen=True)
class AsSeconds:
    """A length of time above zero, in seconds or as a span."""

    def clean(self, name: str, value: Any) -> float:
        """Return seconds. Raises InputError."""
        if isinstance(value, bool):
            raise InputError(f"{name} must be seconds, got {shown(value)}.")
        seconds = parse_duration(value, name)
        if seconds <= 0:
            raise InputError(f"{name} must be more than zero, got {shown(value)}.")
        return seconds
