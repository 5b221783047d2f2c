"""Pure functions over text: hashes, and the words an index adds to what SQLite finds itself.

FTS5's unicode61 splits at everything that is no letter or digit. What it cannot see, the stored
column `words` adds: bigrams of scripts without spaces, the parts of CamelCase names, joined
snake_case names, and the plain form of compatibility characters (full width, ligatures).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

SPACELESS: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3"
_RUN: Final = re.compile(f"[{SPACELESS}]+")
_WORD: Final = re.compile(r"[^\W_]+")
_MARKS: Final = re.compile("[\u0300-\u0331]")
"""Accents that stand by themselves, which FTS5 passes over inside a word."""
_TIE: Final = re.compile(r"[_\-./:@#](?=[_\-./:@#]*[^\W_])")
"""What a text with a joined name has; looking for it first is much quicker."""
_JOINED: Final = re.compile(r"[^\W_]+(?:[_\-./:@#]+[^\W_]+)+")
_CAMEL: Final = re.compile(
    r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+",
)
# [a-z][A-Z] or [A-Z]{2}[a-z] or [A-Za-z]\d or \d[A-Za-z], such that re skips to a capital or digit.
_HAS_CAMEL: Final = re.compile(
    r"[A-Z\d](?:(?<=[a-z][A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z]\d)|(?<=\d)(?=[A-Za-z]))"
)


@cache
def _mixed() -> re.Pattern[str]:
    # It takes 20 ms to compile, which a process that meets only ASCII need not pay.
    return re.compile(f"[{SPACELESS}]+|[^\\W_{SPACELESS}]+")


def text_hash(text: str) -> bytes:
    """Return the 16 bytes that name a text, letter for letter."""
    return hashlib.sha256(text.encode("utf-8")).digest()[:16]


def content_hash(text: str) -> str:
    """Return 32 hex digits that ignore case and white space, as the idempotent write compares."""
    return hashlib.sha256(" ".join(text.lower().split()).encode("utf-8")).hexdigest()[:32]


def fold(text: str) -> str:
    """Return text as the index compares it: compatibility forms, case and loose accents removed."""
    if text.isascii():
        return text.lower()
    return _MARKS.sub("", unicodedata.normalize("NFKC", text).casefold())


def words_of(text: str) -> list[str]:
    """Return the folded words of a text in order, as unicode61 would split them."""
    return _WORD.findall(fold(text))


def has_spaceless(word: str) -> bool:
    """Say whether a word holds signs of a script that writes no spaces."""
    return not word.isascii() and _RUN.search(word) is not None


def spaceless_runs(text: str) -> list[str]:
    """Return the runs of a text in scripts that write no spaces."""
    return [] if text.isascii() else _RUN.findall(text)


def bigrams(run: str) -> Iterator[str]:
    """Yield the overlapping pairs of a run, and its last sign so that a prefix finds every one."""
    for left, right in pairwise(run):
        yield left + right
    yield run[-1]


def camel_parts(word: str) -> list[str]:
    """Return the parts of a CamelCase or letter-digit name, folded; [] when there is one part."""
    if not _HAS_CAMEL.search(word):
        return []
    parts = [part.casefold() for part in _CAMEL.findall(word)]
    return parts if len(parts) > 1 else []


def joined(name: str) -> str:
    """Return a snake_case, kebab-case or dotted name without its separators, folded."""
    return "".join(_WORD.findall(fold(name)))


def index_words(text: str) -> str | None:
    """Return the extra words to index for a text, or None when SQLite sees them all.

    Pairs of signs stand as often as in the text, since BM25 counts them; names stand once.
    """
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    wide = [] if text.isascii() else list(_wide_words(text, plain))
    return " ".join([*wide, *dict.fromkeys(_names_apart(plain))]) or None


def _names_apart(plain: str) -> Iterator[str]:
    """Yield names joined without their separators, and the parts of CamelCase names."""
    if _TIE.search(plain):
        # isalnum spares most words the search, which takes ten times as long.
        tied = [one for one in plain.split() if not one.isalnum() and _TIE.search(one)]
        for name in [name for piece in tied for name in _JOINED.findall(piece)]:
            if len(whole := joined(name)) <= 64:
                yield whole
    if _HAS_CAMEL.search(plain):
        for word in _WORD.findall(plain):
            yield from camel_parts(word)


def _wide_words(text: str, plain: str) -> Iterator[str]:
    for token in _WORD.findall(plain):
        pieces = _mixed().findall(token)
        for piece in pieces:
            if _RUN.fullmatch(piece):
                yield from bigrams(piece)
            elif len(pieces) > 1:
                yield piece.casefold()
    # SQLite folds letter by letter: it knows neither ß as ss nor a ligature as its letters.
    seen = set(_WORD.findall(_MARKS.sub("", text.lower())))
    yield from (word for word in words_of(plain) if word not in seen)


def index_names(tags: Iterable[str], entities: Iterable[str], author: str | None) -> str | None:
    """Return the names a memory carries, as text for the index."""
    names = [*tags, *entities, *([author] if author else [])]
    extra = [more for name in names if (more := index_words(name))]
    return "\n".join([*names, *extra]) or None


def index_dates(created_at: float) -> str:
    """Return the day, month, year and weekday of a moment as words."""
    return _words_of_day(int(created_at // 86_400))


@lru_cache(maxsize=1_024)
def _words_of_day(day: int) -> str:
    moment = datetime.fromtimestamp(day * 86_400, UTC)
    return f"{moment.day} {_MONTHS[moment.month - 1]} {moment.year} {_DAYS[moment.weekday()]}"


_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
