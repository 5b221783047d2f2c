"""BM25 as FTS5 computes it, for documents and word statistics that no index holds.

score = sum over phrases of idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average)), where f
is the phrase's frequency weighted by column, k1 = 1.2, b = 0.75 [SQLite, fts5.html, 5.1.1].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence, Set
from typing import Any, Final, NamedTuple

import apsw

K1: Final = 1.2
B: Final = 0.75
SMALLEST_IDF: Final = 1e-6
_TOKENIZER: Final = ("porter", ["unicode61", "remove_diacritics", "2"])
_AVERAGES: Final = 1
"""Row of FTS5's data table that holds the number of rows and of tokens a column."""

Tokenize = Callable[[str], list[str]]
Columns = Sequence[Sequence[str]]
"""A document: the tokens of each of its columns."""


class Phrase(NamedTuple):
    """A run of index tokens to find; `prefix` lets the last one go on."""

    tokens: tuple[str, ...]
    prefix: bool

    def may_be_in(self, seen: Set[str]) -> bool:
        """Say whether a document of these tokens may hold it; most hold few of a question's."""
        first, *more = self.tokens or ("",)
        return first in seen or (self.prefix and not more)


def tokenizer(connection: apsw.Connection) -> Tokenize:
    """Return the function that splits text into tokens as the index does."""
    split: Any = connection.fts5_tokenizer(*_TOKENIZER)

    def tokenize(text: str) -> list[str]:
        tokens: list[str] = split(
            text.encode("utf-8"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return tokens

    return tokenize


def phrase(term: str, tokenize: Tokenize) -> Phrase:
    """Return the phrase that a quoted term of a MATCH expression asks for."""
    return Phrase(tuple(tokenize(term.strip('"*'))), term.endswith("*"))


def idf(total: int, holding: int) -> float:
    """Return the inverse document frequency of a phrase that `holding` of `total` rows have."""
    return max(SMALLEST_IDF, math.log((total - holding + 0.5) / (holding + 0.5)))


def average_length(connection: apsw.Connection) -> float:
    """Return the tokens a row of the live index holds on average, all columns together."""
    rows, tokens = rows_and_tokens(connection)
    return max(1.0, tokens / rows) if rows else 1.0


def rows_and_tokens(connection: apsw.Connection) -> tuple[int, int]:
    """Return how many rows and tokens the live index holds, as it counts them itself."""
    block = connection.execute("select block from memory_fts_data where id = ?", (_AVERAGES,)).get
    rows, *tokens = _varints(block or b"") or [0]
    return rows, sum(tokens)


def _varints(block: bytes) -> list[int]:
    numbers, value = [], 0
    for byte in block:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return numbers


def holding(columns: Columns, phrases: Sequence[Phrase]) -> list[bool]:
    """Say which phrases a document holds."""
    seen = set().union(*columns)
    return [
        wanted.may_be_in(seen) and any(occurrences(tokens, wanted) for tokens in columns)
        for wanted in phrases
    ]


def score(
    columns: Columns,
    phrases: Sequence[Phrase],
    idfs: Sequence[float],
    average: float,
    weights: Sequence[float],
) -> float:
    """Return the BM25 score of one document, given as tokens a column."""
    length = sum(map(len, columns))
    norm = K1 * (1 - B + B * length / average)
    total = 0.0
    seen = set().union(*columns)
    for wanted, weight_of_phrase in zip(phrases, idfs, strict=True):
        if not wanted.may_be_in(seen):
            continue
        frequency = sum(
            weight * occurrences(tokens, wanted)
            for weight, tokens in zip(weights, columns, strict=True)
        )
        if frequency > 0:
            total += weight_of_phrase * frequency * (K1 + 1) / (frequency + norm)
    return total


def occurrences(tokens: Sequence[str], wanted: Phrase) -> int:
    """Count how often a phrase occurs in a run of tokens."""
    *head, last = wanted.tokens or ("",)
    if not last:
        return 0
    if not head:
        return (
            sum(t.startswith(last) for t in tokens) if wanted.prefix else list(tokens).count(last)
        )
    size = len(head)
    return sum(
        list(tokens[at : at + size]) == head
        and (tokens[at + size].startswith(last) if wanted.prefix else tokens[at + size] == last)
        for at in range(len(tokens) - size)
    )
