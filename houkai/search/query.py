"""Understand a question: the words to look up, the script it is in, the time it names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from houkai import text
from houkai.limits import QUERY_TERMS
from houkai.search.when import Window, time_window
from houkai.stopwords import STOP_WORDS

_COLUMNS: Final = "{text words names dates}"
_MAY_IS_MONTH: Final = re.compile(
    r"\b(?:in|during|of|since|last|this|by|early|late|until|before|after) may\b|\bmay \d|\d may\b"
)
_LATIN_END: Final = "\u024f"


@dataclass(frozen=True)
class Term:
    """One word to look for; a prefix matches every word that begins with it."""

    text: str
    prefix: bool = False

    @property
    def phrase(self) -> str:
        """Return the term as an FTS5 string, which no text can break."""
        return f'"{self.text}"*' if self.prefix else f'"{self.text}"'


@dataclass(frozen=True)
class Query:
    """What a question asks for, apart from its vector."""

    text: str
    terms: tuple[Term, ...]
    words: frozenset[str] = frozenset()
    foreign: float = 0.0
    """Share of its letters that an English model cannot read."""
    window: Window | None = None

    def match(self, scope: int | None, rare: Collection[Term] | None = None) -> str | None:
        """Return the FTS5 expression that any term satisfies, within one collection if given.

        With `rare` one of those must be there; every term then counts twice in BM25.
        """
        if not self.terms:
            return None
        any_of = " OR ".join(term.phrase for term in self.terms)
        if rare is not None:
            common = [term.phrase for term in self.terms if term not in rare]
            some = " OR ".join(term.phrase for term in rare)
            any_of = f"({some}) AND ({' OR '.join([some, *common, *common])})"
        words = f"{_COLUMNS} : ({any_of})"
        return words if scope is None else f"scope : scope{scope} AND {words}"


def one_term(term: Term, scope: int | None = None) -> str:
    """Return the FTS5 expression that finds a single term."""
    words = f"{_COLUMNS} : {term.phrase}"
    return words if scope is None else f"scope : scope{scope} AND {words}"


def understand(question: str, now: float | None = None) -> Query:
    """Read a question; stop words count only when there are no others."""
    folded = text.fold(question)
    words = text.words_of(question)
    plain = [word for word in words if not text.has_spaceless(word)]
    stop = STOP_WORDS - {"may"} if _MAY_IS_MONTH.search(folded) else STOP_WORDS
    kept = [word for word in plain if word not in stop] or plain
    terms = dict.fromkeys(Term(word) for word in kept)
    terms |= dict.fromkeys(_pairs(folded))
    terms |= dict.fromkeys(_further(question, set(plain)))
    return Query(
        question,
        tuple(terms)[:QUERY_TERMS],
        frozenset(words),
        foreign_share(folded),
        time_window(folded, now),
    )


def _pairs(folded: str) -> Iterator[Term]:
    """Yield what to look up of scripts without spaces, as the index holds them."""
    for run in text.spaceless_runs(folded):
        if len(run) == 1:
            yield Term(run, prefix=True)
        else:
            yield from (Term(left + right) for left, right in pairwise(run))


def _further(question: str, known: set[str]) -> Iterator[Term]:
    """Yield the parts and joined forms of names, as the index holds them."""
    for word in (text.index_words(question) or "").split():
        if word not in known and word not in STOP_WORDS and not text.has_spaceless(word):
            yield Term(word)


def foreign_share(folded: str) -> float:
    """Return the share of letters outside the Latin script."""
    letters = [sign for sign in folded if sign.isalpha()]
    return sum(sign > _LATIN_END for sign in letters) / len(letters) if letters else 0.0
