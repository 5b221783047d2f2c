"""Turn what people write about time into epoch seconds (UTC, float), and back."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from houkai.errors import InputError, shown

Clock = Callable[[], float]
Moment = float | int | str | datetime

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)
AGO: Final = "that long ago"
LATEST: Final = 253_402_300_799.0
"""The last second of the year 9999: the latest moment a date can show."""


def now() -> float:
    """Return the present moment as epoch seconds."""
    return time.time()


def is_span(text: str) -> bool:
    """Say whether a text is a length of time, such as "7d"."""
    return _SPAN.fullmatch(text.strip()) is not None


def parse_duration(value: str | float, name: str = "duration") -> float:
    """Return seconds for a number or a span such as "90s", "24h", "7d". Raises InputError."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = _float(value)
    else:
        match = _SPAN.fullmatch(value.strip()) if isinstance(value, str) else None
        if match is None:
            raise InputError(f'{name} must be seconds or a span such as "24h", got {shown(value)}.')
        seconds = float(match[1]) * _UNITS[match[2].lower()]
    if not (math.isfinite(seconds) and 0 <= seconds <= LATEST):
        raise InputError(f"{name} must be a length of time, zero or more, got {shown(value)}.")
    return seconds


def parse_time(
    value: Moment, name: str = "time", *, at: float | None = None, span: str | None = AGO
) -> float:
    """Return epoch seconds for a moment; spans count back from `at`. Raises InputError.

    `span` is what a refusal says that a span means, None where none is allowed.
    """
    if isinstance(value, datetime):
        seconds = _stamp(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        seconds = _float(value)
    elif isinstance(value, str):
        seconds = _parse_text(value.strip(), name, now() if at is None else at, span)
    else:
        raise InputError(f"{name} must be {_accepted(span)}, got {shown(value)}.")
    if not (math.isfinite(seconds) and 0 <= seconds <= LATEST):
        raise InputError(f"{name} must lie between 1970 and 9999, got {shown(value)}.")
    return seconds


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _stamp(value: datetime) -> float:
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


def _accepted(span: str | None) -> str:
    if span is None:
        return "epoch seconds or an ISO date"
    return f'epoch seconds, an ISO date or time, or a span such as "7d" ({span})'


def _parse_text(text: str, name: str, at: float, span: str | None) -> float:
    if text.lower() == "now":
        return at
    length = _SPAN.fullmatch(text)
    if length is not None:
        return at - float(length[1]) * _UNITS[length[2].lower()]
    # "2024" and "20240501" are dates to whoever types them; any other number is an epoch.
    if re.fullmatch(r"(19|20)\d\d", text):
        return datetime(int(text), 1, 1, tzinfo=UTC).timestamp()
    if re.fullmatch(r"(19|20)\d{6}", text):
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return _stamp(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise InputError(f"{name} must be {_accepted(span)}, got {shown(text)}.") from None


def iso(seconds: float | None) -> str:
    """Return a moment as an ISO time in UTC, or "" for none."""
    if seconds is None:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def ago(seconds: float, at: float | None = None) -> str:
    """Return how long before `at` a moment was, in the largest whole unit: "3h", "2d"."""
    age = (now() if at is None else at) - seconds
    sign, age = ("in " if age < 0 else ""), abs(age)
    for unit, size in (("y", 31_557_600.0), ("mo", 2_629_800.0), ("d", 86400.0), ("h", 3600.0)):
        if age >= size:
            return f"{sign}{int(age // size)}{unit}"
    return f"{sign}{int(age // 60)}m" if age >= 60 else f"{sign}{int(age)}s"
