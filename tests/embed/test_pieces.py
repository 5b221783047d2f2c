"""Token vectors in their stored form, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from houkai.embed.lockfile import locked
from houkai.embed.pieces import SINGLE, product, project, telling


def test_punctuation_and_stop_words_tell_nothing() -> None:
    """They are in every text, and would be half of what is stored."""
    text = "The “tea”, again"
    spans = [(0, 3), (4, 5), (5, 8), (8, 9), (9, 10), (11, 16)]
    assert telling(text, [7, 1, 2, 3, 4, 5], spans, {7}) == [2, 5]


def test_a_projection_keeps_directions_as_bytes() -> None:
    """A length or a sign lost on the way would change every likeness."""
    vectors = np.array([[3.0, 4.0, 9.0], [0.0, -2.0, 0.0], [0.0, 0.0, 5.0]], np.float32)
    matrix = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], np.float32)
    kept = project(vectors, matrix)
    assert kept.tolist() == [[76, 102], [0, -127], [0, 0]]
    assert kept.dtype == np.int8


def test_bytes_keep_a_likeness_within_two_hundredths() -> None:
    """Coarser steps would reorder memories."""
    random = np.random.default_rng(7)
    vectors = random.standard_normal((200, 64)).astype(np.float32)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    kept = project(vectors, np.eye(64, dtype=np.float32)).astype(np.float32) / 127
    assert np.abs(kept @ kept.T - units @ units.T).max() < 0.02


@pytest.mark.parametrize("rows", [0, 1, 7, 4_500])
def test_a_product_in_steps_is_the_product(rows: int) -> None:
    """A step too many or too few would leave rows out."""
    random = np.random.default_rng(rows)
    left = random.standard_normal((rows, 64)).astype(np.float32)
    right = random.standard_normal((64, 3)).astype(np.float32)
    assert rows < 4_500 or rows * right.size > 3 * SINGLE
    assert np.allclose(product(left, right), left @ right, atol=1e-4)


def test_the_shipped_projection_keeps_angles() -> None:
    """Rows that lean on each other would count one direction twice."""
    rows = np.load(locked("all-MiniLM-L6-v2").folder / "projection.npy").astype(np.float64)
    assert rows.shape == (64, 384)
    assert np.abs(rows @ rows.T - np.eye(64)).max() < 1e-3
    assert (rows[np.arange(64), np.abs(rows).argmax(axis=1)] > 0).all()
