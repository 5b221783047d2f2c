"""Understand a query: the words to look up, as an FTS5 expression that no text can break."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from houkai import text
from houkai.limits import QUERY_TERMS
from houkai.search.stopwords import STOP_WORDS

_COLUMNS: Final = "{text words names dates}"


@dataclass(frozen=True)
class Query:
    """What was asked, and the distinct words to look up for it."""

    text: str
    terms: tuple[str, ...]
    dense_share: float = 0.65
    """How much of the blend meaning gets: little where the model cannot read the script."""

    def match(self, scope: int | None) -> str | None:
        """Return the FTS5 expression, within one collection if given; None without words."""
        if not self.terms:
            return None
        words = f"{_COLUMNS} : ({' OR '.join(self.terms)})"
        return words if scope is None else f"scope : scope{scope} AND {words}"


def understand(query: str) -> Query:
    """Return the words of a query, without stop words when others remain."""
    found = list(dict.fromkeys(_terms(query)))
    content = [term for term in found if term.strip('"*') not in STOP_WORDS]
    return Query(query, tuple((content or found)[:QUERY_TERMS]), 0.65 - 0.45 * _foreign(query))


def _foreign(query: str) -> float:
    letters = [sign for sign in query if sign.isalnum()]
    return sum(text.is_spaceless(sign) for sign in letters) / max(1, len(letters))


def _terms(query: str) -> Iterator[str]:
    """Yield quoted words, names as phrases, parts of names, and bigrams of spaceless scripts."""
    for word in text.words_of(query):
        yield from _pieces(word)
    for name in text.names_in(query):
        parts = text.words_of(name)
        if 1 < len(parts) <= 8:
            yield f'"{" ".join(parts)}"'
            yield f'"{text.joined(name)}"'
    for word in text.raw_words(query):
        yield from (f'"{part}"' for part in text.camel_parts(word))


def _pieces(word: str) -> Iterator[str]:
    for piece in text.script_pieces(word):
        if not text.is_spaceless(piece):
            yield f'"{piece}"'
        elif len(piece) == 1:
            yield f'"{piece}"*'
        else:
            yield from (f'"{left}{right}"' for left, right in pairwise(piece))
