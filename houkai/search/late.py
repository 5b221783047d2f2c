"""The second stage: the question's words meet the words of the best candidates one by one.

Each token of the question looks for the token of a memory that is most like it [ColBERT, Khattab
and Zaharia, SIGIR 2020]; the likenesses, weighted by how rare the words are, are one more addend
of the blend, on an absolute scale like the others. Memories stored without tokens, by an embedder
that gives none, get what the others get on average, which moves them neither up nor down.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai import text
from houkai.embed.pieces import SCALE, product
from houkai.embed.port import Question
from houkai.errors import Corrupt
from houkai.search.blend import MEASURED, Constants, Parts
from houkai.search.pool import Floats, Pool
from houkai.search.query import Query
from houkai.search.sketches import Ints, Windows

TOP: Final = 50
"""Candidates that the second stage looks at; the first stage has seldom lost one by then."""

Tokens = NDArray[np.int8]


class Weighed(NamedTuple):
    """The question's tokens, and what each is worth."""

    tokens: Tokens
    weight: Floats


def weighed(asked: Query, meant: Question | None, terms: Floats, size: int) -> Weighed | None:
    """Return the question's tokens with the idf of their words; None when there is no token.

    `terms` are the weights of the question's terms, of which one that no text holds has 0; such a
    word is the rarest of all among `size` texts.
    """
    if meant is None or meant.tokens is None or not len(meant.tokens):
        return None
    rarest = np.log1p(2.0 * size + 1)
    smooth = np.where(terms > 0, np.log1p(np.exp(terms)), rarest)
    by_word = {term.text: worth for term, worth in zip(asked.terms, smooth.tolist(), strict=True)}
    words = list(text.word_spans(asked.text))
    starts = [start for start, _ in words]
    of_piece = [words[bisect_right(starts, start) - 1][1] for start, _ in meant.spans]
    return Weighed(meant.tokens, np.array([by_word.get(word, rarest) for word in of_piece]))


def maxsim(question: Weighed, tokens: Tokens, counts: Ints) -> Floats:
    """Return how well each memory's tokens meet the question's, about 0 to 1.

    `tokens` holds the memories' tokens one after the other, `counts` how many each has; one that
    has none meets nothing.
    """
    best = np.zeros((len(counts), len(question.tokens)))
    some = np.flatnonzero(counts)
    if len(some):
        turned = np.ascontiguousarray(question.tokens.T, np.float32) / np.float32(SCALE**2)
        meeting = product(tokens.astype(np.float32), turned)
        start = (np.cumsum(counts) - counts)[some]
        best[some] = np.maximum.reduceat(meeting, start, axis=0)
    met: Floats = np.maximum(best @ question.weight / question.weight.sum(), 0.0)
    return met


def added(
    connection: apsw.Connection,
    found: Pool,
    windows: Callable[[Ints], Windows],
    parts: Parts,
    question: Weighed | None,
    c: Constants = MEASURED,
) -> Parts:
    """Add to the best candidates what their tokens are worth; without tokens nothing changes."""
    if question is None or not c.late:
        return parts
    top = np.lexsort((-found.pk, -found.created_at, -parts.total()))[:TOP]
    stored = _stored(connection, windows(np.sort(found.pk[top])), found.pk[top])
    there = np.array([one is not None for one in stored], bool)
    if not there.any():
        return parts
    met = np.empty(len(top))
    met[there] = maxsim(question, *_joined(stored, question.tokens.shape[1]))
    met[~there] = met[there].mean()
    late = np.zeros(len(found))
    late[top] = c.late * met
    return replace(parts, late=late)


def _stored(connection: apsw.Connection, windows: Windows, pks: Ints) -> list[bytes | None]:
    """Return the stored tokens of each memory, b"" for a text that tells nothing."""
    rows: list[tuple[int, bytes]] = connection.execute(  # type: ignore[assignment]
        "select t.embedding, t.vectors from carray(?) a join token t on t.embedding = a.value",
        (apsw.carray(np.ascontiguousarray(windows.embedding)),),
    ).fetchall()
    by_row = dict(rows)
    owners = zip(windows.pk.tolist(), windows.embedding.tolist(), strict=True)
    of_memory = {pk: by_row[row] for pk, row in owners if row in by_row}
    return [of_memory.get(pk) for pk in pks.tolist()]


def _joined(stored: Sequence[bytes | None], width: int) -> tuple[Tokens, Ints]:
    """Return all tokens one after the other, and how many each text has."""
    texts = [one for one in stored if one is not None]
    if any(len(one) % width for one in texts):
        raise Corrupt("The stored token vectors are damaged: some are cut off.")
    tokens = np.frombuffer(b"".join(texts), np.int8).reshape(-1, width)
    return tokens, np.array([len(one) // width for one in texts], np.int64)
