"""Pure rules: do two memories of similar meaning repeat or contradict each other?

Negation is told by English words alone: texts of which one holds an odd and the other an even
number of them differ. In any other language no text is negated, so that a contradiction shows
only by polarity, by a function of the caller, or by a link, and two opposite statements come out
as duplicates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Final

from houkai.model import Conflict, Memory
from houkai.vocabulary import ConflictKind, ConflictReason

ConflictFn = Callable[[Memory, Memory], bool]

DIGITS: Final = 4
"""Similarities are rounded to this many digits, and compared as they are shown."""
DUPLICATE_SIMILARITY: Final = 0.80
"""The default threshold for repeats and contradictions alike (benchmarks/conflicts.py).

F1 of repeats is best here: .74 on SICK, .67 on STS-B; at .92 precision there is .86 and .83, but
recall .40 and .34. A negation has precision .95 and recall .37 on SICK. Messages of one chat hardly
ever conflict, yet of a thousand 76 (LoCoMo) or 65 (BEAM) pairs are flagged as repeats and 12 or 19
as contradictions; at .92 6 at most and hardly one. A lower threshold for contradictions pays on
SICK alone: at .65 they have precision .91 and recall .77 there, but the chats yield 505 or 264.
"""
CONTRADICTION_SIMILARITY: Final = 0.60
"""What a contradiction needs in deep mode: with a negation, precision .87 and recall .82 on SICK,
against .95 and .37 at 0.80. At 0.50 a chat of 769 messages yields 712 pairs instead of 331."""

NEGATIONS: Final = frozenset(
    """
    not never no none nor neither nothing nobody nowhere without avoid cannot
    aint arent cant couldnt didnt doesnt dont hadnt hasnt havent isnt mustnt neednt shouldnt
    wasnt werent wont wouldnt
    """.split()  # noqa: SIM905 - a paragraph reads better than a column of quotes
)
_WORD: Final = re.compile(r"\w+")
_APOSTROPHES: Final = str.maketrans("", "", "'\u2019\u02bc")


@lru_cache(maxsize=1 << 14)
def is_negated(text: str) -> bool:
    """Say whether a text holds an odd number of English negations."""
    words = _WORD.findall(text.lower().translate(_APOSTROPHES))
    return sum(word in NEGATIONS for word in words) % 2 == 1


def may_conflict(a: Memory, b: Memory) -> bool:
    """Say whether two memories speak of one thing: the same type, and tags that do not differ.

    Tags differ where both have some and share none.
    """
    return a.type == b.type and (not a.tags or not b.tags or share(a.tags, b.tags))


def share(a: Collection[str], b: Collection[str]) -> bool:
    """Say whether two collections have something in common."""
    return not set(a).isdisjoint(b)


def contradiction(a: Memory, b: Memory, custom: ConflictFn | None) -> ConflictReason | None:
    """Return why two memories contradict each other, None when nothing says they do."""
    if a.polarity * b.polarity < 0:
        return "polarity_diff"
    if is_negated(a.text) != is_negated(b.text):
        return "negation_diff"
    if custom is not None and custom(a, b):
        return "custom_fn"
    return None


def reach(threshold: float) -> float:
    """Return the least similarity that is shown as the threshold."""
    return threshold - 0.5 * 10**-DIGITS


def judge(
    a: Memory,
    b: Memory,
    similarity: float,
    threshold: float,
    custom: ConflictFn | None = None,
    *,
    floor: float | None = None,
) -> Conflict | None:
    """Return how two memories conflict, None when they do not.

    Below `threshold` nothing repeats, but down to `floor` a contradiction still counts.
    """
    similarity = round(similarity, DIGITS)
    if similarity < min(threshold, threshold if floor is None else floor):
        return None
    if not may_conflict(a, b):
        return None
    reason = contradiction(a, b, custom)
    if reason is None and similarity < threshold:
        return None
    kind: ConflictKind = "duplicate" if reason is None else "contradiction"
    return Conflict(a, b, similarity, kind, reason or "similarity")
