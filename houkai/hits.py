"""What a recall returns: hits, best first, or the near misses of a question without an answer."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from houkai.model import Memory


class Hit(NamedTuple):
    """A recalled memory and its score."""

    memory: Memory
    score: float


class ExplainedHit(NamedTuple):
    """A recalled memory, its score, and how the score came about."""

    memory: Memory
    score: float
    explain: dict[str, Any]


T = TypeVar("T")


class Answer(list[T]):
    """What a recall found, best first; empty with near misses when nothing was relevant enough.

    `relevance` is about how surely the collection answers the question at all; None unless that
    was asked. `near_misses` counts what was held back, `best_score` is the best score among it.
    """

    relevance: float | None = None
    near_misses: int = 0
    best_score: float | None = None
