from __future__ import annotations

import hashlib
import time

import numpy as np
import pytest

from houkai.embed.port import Embedder
from houkai.errors import InputError
from houkai.testing import HashingEmbedder

TEXTS = ["", "The deploy key is in the vault.", "naïve 漢字 テスト 😀", "a\x00b", "x" * 5000]


def test_vectors_are_the_same_everywhere() -> None:
    """A test suite whose vectors hang on the machine or on hash seeds fails at random."""
    rows = HashingEmbedder()(TEXTS)
    quantised = np.round(rows * 10_000).astype("<i2")
    assert (
        hashlib.sha256(quantised.tobytes()).hexdigest()
        == "b43fd35f5ebe54f930ca10f589862b6c182225f668f22e572a1ccb9572e0a3ae"
    )


def test_rows_are_unit_vectors_of_the_asked_dimension() -> None:
    """Stores rely on cosine being a dot product."""
    embedder: Embedder = HashingEmbedder(dim=40)
    assert embedder.dim == 40
    for rows in embedder.passages(TEXTS):
        assert rows.shape == (1, 40)
        assert rows.dtype == np.float32
        assert abs(float(np.linalg.norm(rows)) - 1) < 1e-6
    assert HashingEmbedder()([]).shape == (0, 384)


def test_shared_words_make_texts_similar() -> None:
    """Recall tests need the related text to come first."""
    embedder = HashingEmbedder()
    asked = embedder.query("where is the deploy key")
    near = embedder.query("The deploy keys are in the vault.")
    far = embedder.query("Lunch on Thursday was moved to noon.")
    assert asked @ near > 0.4
    assert abs(asked @ far) < 0.25


def test_a_text_of_30_words_takes_at_most_a_third_of_a_millisecond() -> None:
    """Tests that store a hundred thousand memories would otherwise wait for vectors."""
    embedder = HashingEmbedder()
    words = [f"word{n % 977}ing" for n in range(3000)]
    texts = [" ".join(words[at : at + 30]) for at in range(0, 3000, 30)]
    embedder(texts)
    start = time.process_time()
    embedder(texts)
    assert (time.process_time() - start) / len(texts) < 0.0006  # twice the promise: CI is slow


def test_impossible_input_is_refused() -> None:
    """A lone surrogate or a dimension of zero must end in a sentence, not in a traceback."""
    with pytest.raises(InputError, match="lone surrogate"):
        HashingEmbedder().query("a\ud800b")
    with pytest.raises(InputError, match="dim must be"):
        HashingEmbedder(dim=0)
