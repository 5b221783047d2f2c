"""Read the time that a question names, as a window that gently favours what is from then."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Window:
    """Bound a stretch of time in epoch seconds."""

    start: float
    end: float


_MONTHS: Final = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_DAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_NUMBERS: Final = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
} | {"a": 1, "an": 1, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3, "several": 4}
_UNITS: Final = {"day": 1.0, "week": 7.0, "month": 30.4, "year": 365.25}
_COUNT: Final = r"(\d{1,3}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True)) + ")"
_UNIT: Final = r"(day|week|month|year)s?\b"
_AGO: Final = rf"\b{_COUNT} {_UNIT} ago\b"
_LAST_FEW: Final = rf"\b(?:last|past|previous) {_COUNT} {_UNIT}"
_LAST: Final = rf"\b(last|past|previous|this) {_UNIT}"
_NEAR_DAY: Final = r"\b(today|tonight|yesterday|this morning|last night)\b"
_WEEKDAY: Final = rf"\b(?:last|this|on) ({'|'.join(_DAYS)})\b"
_ISO: Final = r"\b(\d{4})-(\d\d)-(\d\d)\b"
_MONTH: Final = "|".join(_MONTHS)
_MONTH_DAY: Final = (
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})|({_MONTH}) (\d{{1,2}})(?:st|nd|rd|th)?)"
    r"\b(?:,? (\d{4}))?"
)
_IN_MONTH: Final = rf"\b(?:in|during|of|since|last|this|early|late) ({_MONTH})\b(?:,? (\d{{4}}))?"
_IN_YEAR: Final = r"\b(?:in|during|of|since) ((?:19|20)\d\d)\b"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _find(pattern: str, folded: str, hints: Iterable[str]) -> re.Match[str] | None:
    """Search where a hint stands: most questions name no time, and compiling costs milliseconds."""
    if not any(hint in folded for hint in hints):
        return None
    return _compiled(pattern).search(folded)


def time_window(folded: str, now: float | None) -> Window | None:
    """Return the first stretch of time a folded question names, None when it names none.

    Without `now` only dates that carry a year are understood.
    """
    today = None if now is None else datetime.fromtimestamp(now, UTC)
    for reader in (_dates, _months, _relative):
        if (window := reader(folded, today)) is not None:
            return window
    return None


def _span(start: datetime, days: float) -> Window:
    return Window(start.timestamp(), (start + timedelta(days=days)).timestamp())


def _moment(year: int, month: int, day: int) -> datetime | None:
    try:
        return datetime(year, month, day, tzinfo=UTC)
    except ValueError:
        return None


def _latest(month: int, day: int, today: datetime) -> datetime | None:
    this_year = _moment(today.year, month, day)
    if this_year is not None and this_year <= today:
        return this_year
    return _moment(today.year - 1, month, day)


def _dates(folded: str, today: datetime | None) -> Window | None:
    if found := _find(_ISO, folded, ("-",)):
        start = _moment(*(int(part) for part in found.groups()))
        return _span(start, 1) if start else None
    if found := _find(_MONTH_DAY, folded, _MONTHS):
        day = int(found[1] or found[4])
        month = _MONTHS.index(found[2] or found[3]) + 1
        if found[5]:
            start = _moment(int(found[5]), month, day)
        else:
            start = _latest(month, day, today) if today else None
        return _span(start, 1) if start else None
    return None


def _months(folded: str, today: datetime | None) -> Window | None:
    if found := _find(_IN_MONTH, folded, _MONTHS):
        month = _MONTHS.index(found[1]) + 1
        if found[2]:
            start = _moment(int(found[2]), month, 1)
        else:
            start = _latest(month, 1, today) if today else None
        return _span(start, 31) if start else None
    if found := _find(
        _IN_YEAR,
        folded,
        (
            "19",
            "20",
        ),
    ):
        start = _moment(int(found[1]), 1, 1)
        return _span(start, 366) if start else None
    return None


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text]


def _relative(folded: str, today: datetime | None) -> Window | None:
    if today is None:
        return None
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    if found := _find(_AGO, folded, (" ago",)):
        unit = _UNITS[found[2]]
        middle = midnight - timedelta(days=_number(found[1]) * unit)
        return _span(middle - timedelta(days=unit / 2), unit + 1)
    if found := _find(_LAST_FEW, folded, _UNITS):
        days = _number(found[1]) * _UNITS[found[2]]
        return _span(midnight - timedelta(days=days), days + 1)
    if found := _find(
        _NEAR_DAY,
        folded,
        (
            "today",
            "tonight",
            "yesterday",
            "this morning",
            "last night",
        ),
    ):
        back = 1 if found[1] in ("yesterday", "last night") else 0
        return _span(midnight - timedelta(days=back), 1)
    if found := _find(_WEEKDAY, folded, _DAYS):
        back = (midnight.weekday() - _DAYS.index(found[1])) % 7 or 7
        return _span(midnight - timedelta(days=back), 1)
    if found := _find(_LAST, folded, _UNITS):
        return _calendar(found[1], found[2], midnight)
    return None


def _calendar(which: str, unit: str, midnight: datetime) -> Window:
    back = 0 if which == "this" else 1
    if unit == "week":
        start = midnight - timedelta(days=midnight.weekday() + 7 * back)
        return _span(start, 7)
    if unit == "month":
        first = midnight.replace(day=1)
        start = (first - timedelta(days=1)).replace(day=1) if back else first
        return _span(start, 31)
    if unit == "year":
        return _span(midnight.replace(year=midnight.year - back, month=1, day=1), 366)
    return _span(midnight - timedelta(days=back), 1)


def in_window(created_at: NDArray[np.float64], window: Window | None) -> NDArray[np.float64]:
    """Return 1 inside the window, falling off outside by its own length (a day at least)."""
    if window is None:
        return np.zeros(len(created_at))
    outside = np.maximum(np.maximum(window.start - created_at, created_at - window.end), 0.0)
    return np.exp(-outside / max(window.end - window.start, 86400.0))
