"""Cut token ids into windows and gather windows into batches: pure arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

OVERLAP: Final = 64
"""Pieces two neighbouring windows share, so that no sentence is only ever seen cut in two."""

BATCH: Final = 8
PADDED_TOKENS: Final = 1024


def windows(ids: Sequence[int], room: int) -> list[Sequence[int]]:
    """Cut ids into overlapping windows of at most `room`; no ids make one empty window."""
    step = room - OVERLAP
    last = max(0, len(ids) - OVERLAP)
    return [ids[start : start + room] for start in range(0, max(1, last), step)]


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield positions in groups of similar length, longest first.

    A batch costs what its longest text costs times its size, so a text much shorter than the
    first waits for the next batch. Fixed groups would make no text's vector depend on the others,
    padding being masked, but would compute mostly padding.
    """
    batch: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda at: (-lengths[at], at)):
        longest = lengths[batch[0]] if batch else 0
        full = len(batch) == BATCH or longest * (len(batch) + 1) > PADDED_TOKENS
        if batch and (full or lengths[position] * 4 < longest * 3):
            yield batch
            batch = []
        batch.append(position)
    if batch:
        yield batch
