from __future__ import annotations

import itertools

import pytest

from houkai.embed.windows import BATCH, OVERLAP, PADDED_TOKENS, batches, windows

ROOM = 254


@pytest.mark.parametrize("count", [0, 1, 64, 253, 254, 255, 318, 444, 445, 634, 635, 5000])
def test_windows_cover_every_piece_in_order(count: int) -> None:
    """A piece left out of every window could never be recalled."""
    cut = windows(range(count), ROOM)
    assert len(cut) >= 1
    assert all(len(part) <= ROOM for part in cut)
    joined = [*cut[0], *(piece for part in cut[1:] for piece in part[OVERLAP:])]
    assert joined == list(range(count))


def test_windows_overlap_by_64_and_none_repeats_only_the_last() -> None:
    """Without overlap a sentence on a border is only ever seen cut in two."""
    for count in range(ROOM + 1, 1500, 7):
        cut = windows(range(count), ROOM)
        for left, right in itertools.pairwise(cut):
            assert list(left[-OVERLAP:]) == list(right[:OVERLAP])
            assert len(right) > OVERLAP


def test_batches_hold_every_position_once_within_the_limits() -> None:
    """A lost position would leave a vector of uninitialised memory."""
    lengths = [1 + (n * 37) % 256 for n in range(300)]
    found = list(batches(lengths))
    assert sorted(at for batch in found for at in batch) == list(range(300))
    for batch in found:
        longest = max(lengths[at] for at in batch)
        assert len(batch) <= BATCH
        assert longest * len(batch) <= PADDED_TOKENS
        assert min(lengths[at] for at in batch) * 4 >= longest * 3


def test_no_lengths_make_no_batch() -> None:
    """An empty batch would reach the model as an array of no rows."""
    assert list(batches([])) == []
