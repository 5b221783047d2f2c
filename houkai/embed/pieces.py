"""Token vectors in the form they are kept in: which word pieces tell something, 64 int8 each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FIRST_PIECES: Final = 64
"""Pieces of a text that are looked at; more would favour long texts."""
SCALE: Final = 127
SINGLE: Final = 1 << 18
"""Multiplications up to which OpenBLAS stays on the calling thread."""

Span = tuple[int, int]


def telling(
    text: str, ids: Sequence[int], spans: Sequence[Span], stop: Collection[int]
) -> list[int]:
    """Return which of the first pieces are neither punctuation nor one of the `stop` ids."""
    return [
        at
        for at, (id, (start, end)) in enumerate(zip(ids, spans, strict=True))
        if id not in stop and text[start:end][:1].isalnum()
    ]


def project(vectors: NDArray[np.float32], matrix: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return unit vectors times 127 of what a matrix (dim, width) keeps of vectors (n, dim)."""
    import numpy as np

    found = product(vectors, matrix)
    found *= SCALE / np.maximum(np.sqrt(np.einsum("ij,ij->i", found, found)), 1e-9)[:, None]
    return np.rint(found).astype(np.int8)


def product(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return left @ right in steps so small that no second thread is woken for them.

    That takes some 50 us here, where waiting for a thread on a busy machine takes milliseconds.
    """
    import numpy as np

    step = max(1, SINGLE // max(1, right.size))
    if len(left) <= step:
        return left @ right
    parts = [left[at : at + step] @ right for at in range(0, len(left), step)]
    return np.concatenate(parts)
