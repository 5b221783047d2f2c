"""The time that a question names: which words name one, which stretch it is, and which do not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from houkai.search.query import understand
from houkai.search.when import Window, in_window, time_window

NOW = datetime(2024, 5, 15, 14, 30, tzinfo=UTC)  # a Wednesday
NAMED = {
    "what did we decide yesterday?": ("2024-05-14", 1),
    "what is planned today": ("2024-05-15", 1),
    "who called last night?": ("2024-05-14", 1),
    "the meeting on monday": ("2024-05-13", 1),
    "last Wednesday": ("2024-05-08", 1),
    "notes of 2023-11-02": ("2023-11-02", 1),
    "on June 5, 2023": ("2023-06-05", 1),
    "the 3rd of March": ("2024-03-03", 1),
    "December 24": ("2023-12-24", 1),
    "what happened in March 2022": ("2022-03-01", 31),
    "during July": ("2023-07-01", 31),
    "in 2021": ("2021-01-01", 366),
    "this week": ("2024-05-13", 7),
    "last week": ("2024-05-06", 7),
    "last month": ("2024-04-01", 31),
    "this year": ("2024-01-01", 366),
    "the past two weeks": ("2024-05-01", 15),
    "in the last 3 days": ("2024-05-12", 4),
}
UNNAMED = [
    "how do I parse json in python",
    "may I ask who did this",
    "march on",
    "the last of the mohicans",
    "20 apples",
    "version 1-2-3",
    "two weeks",
    "2023-13-45",
    "February 31, 2023",
    "",
]


def days_of(window: Window) -> tuple[str, int]:
    """Return a window as its first day and its length in days."""
    start = datetime.fromtimestamp(window.start, UTC)
    return start.date().isoformat(), round((window.end - window.start) / 86_400)


@pytest.mark.parametrize(("question", "stretch"), NAMED.items(), ids=list(NAMED))
def test_a_time_is_read(question: str, stretch: tuple[str, int]) -> None:
    """What was said then must be favoured, and not what was said at another time."""
    window = understand(question, NOW.timestamp()).window
    assert window is not None
    assert days_of(window) == stretch


@pytest.mark.parametrize("question", UNNAMED)
def test_no_time_is_read_where_none_is_named(question: str) -> None:
    """A word that only looks like a time would favour memories at random."""
    assert understand(question, NOW.timestamp()).window is None


def test_ago_is_around_its_middle() -> None:
    """Two weeks ago may be a few days sooner or later, two days ago hardly."""
    for question, middle, width in (
        ("two weeks ago", NOW - timedelta(days=14), 8),
        ("3 days ago", NOW - timedelta(days=3), 2),
        ("a year ago", NOW - timedelta(days=365), 366),
    ):
        window = time_window(question, NOW.timestamp())
        assert window is not None
        assert window.start < middle.timestamp() < window.end
        assert round((window.end - window.start) / 86_400) == width


def test_without_a_present_only_full_dates_are_read() -> None:
    """Nobody can tell what yesterday was who does not know today."""
    assert time_window("yesterday", None) is None
    assert time_window("december 24", None) is None
    for question in ("2023-11-02", "in march 2022", "june 5, 2023", "in 2021"):
        assert time_window(question, None) is not None


@given(text=st.text(max_size=60), now=st.floats(0, 4e9))
def test_no_question_breaks_it(text: str, now: float) -> None:
    """Any text may be asked, at any time."""
    window = time_window(text.casefold(), now)
    assert window is None or window.start < window.end


@given(at=st.floats(0, 4e9), start=st.floats(0, 4e9), length=st.floats(1, 4e8))
def test_favour_falls_off_outside(at: float, start: float, length: float) -> None:
    """The favour is whole inside, never negative, and smaller the farther away."""
    window = Window(start, start + length)
    here, farther = in_window(np.array([at, at + 86_400 if at >= start else at - 86_400]), window)
    assert 0 <= farther <= here <= 1
    assert here == 1 or not window.start <= at <= window.end
    assert in_window(np.array([at]), None) == [0.0]
