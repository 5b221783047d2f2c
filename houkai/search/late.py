"""The second stage: the question's words meet the words of the best candidates one by one.

Each token of the question looks for the token of a memory that is most like it [ColBERT, Khattab
and Zaharia, SIGIR 2020]; the mean of these likenesses is one more addend of the blend, on an
absolute scale like the others. All tokens weigh the same: stop words are not among them, and
rarity is what the lexical part knows already; weighing by it here measured no better. Memories
stored without tokens, by an embedder that gives none, get what the others get on average, which
moves them neither up nor down.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import apsw
import numpy as np
from numpy.typing import NDArray

from houkai.embed.pieces import SCALE, product
from houkai.errors import Corrupt
from houkai.search.arrays import Floats, Ints
from houkai.search.blend import MEASURED, Constants, Parts
from houkai.search.pool import Pool
from houkai.search.sketches import Windows

TOP: Final = 50
"""Candidates that the second stage looks at; looking at 100 measured the same."""

Tokens = NDArray[np.int8]


def maxsim(question: Tokens, tokens: Tokens, counts: Ints) -> Floats:
    """Return how well each memory's tokens meet the question's, about 0 to 1.

    `tokens` holds the memories' tokens one after the other, `counts` how many each has; one that
    has none meets nothing.
    """
    best = np.zeros((len(counts), len(question)))
    some = np.flatnonzero(counts)
    if len(some):
        turned = np.ascontiguousarray(question.T, np.float32) / np.float32(SCALE**2)
        meeting = product(tokens.astype(np.float32), turned)
        start = (np.cumsum(counts) - counts)[some]
        best[some] = np.maximum.reduceat(meeting, start, axis=0)
    met: Floats = np.maximum(best.mean(axis=1), 0.0)
    return met


def added(
    connection: apsw.Connection,
    found: Pool,
    windows: Callable[[Ints], Windows],
    parts: Parts,
    question: Tokens | None,
    foreign: float = 0.0,
    c: Constants = MEASURED,
) -> Parts:
    """Add to the best candidates what their tokens are worth; without tokens nothing changes."""
    worth = c.late * (1 - foreign)
    if question is None or not len(question) or not worth:
        return parts
    top = np.lexsort((-found.pk, -found.created_at, -parts.total()))[:TOP]
    stored = _stored(connection, windows(np.sort(found.pk[top])), found.pk[top])
    there = np.array([one is not None for one in stored], bool)
    if not there.any():
        return parts
    met = np.empty(len(top))
    met[there] = maxsim(question, *_joined(stored, question.shape[1]))
    met[~there] = met[there].mean()
    late = np.zeros(len(found))
    late[top] = worth * met
    return replace(parts, late=late)


def _stored(connection: apsw.Connection, windows: Windows, pks: Ints) -> list[bytes | None]:
    """Return the stored tokens of each memory, b"" for a text that tells nothing."""
    if not len(windows.embedding):
        return [None] * len(pks)
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
