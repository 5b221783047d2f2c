"""An embedder for tests: no model, no randomness, the same vectors on every machine."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from zlib import crc32

from houkai.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORD: Final = re.compile(r"\w+")
_VERSION: Final = 1


class HashingEmbedder:
    """Hash words and their character trigrams into a vector: shared words make texts similar.

    Nothing is understood: a synonym is as far away as any other word. Weights are multiples of
    1/4, so sums are exact and no processor's order of addition shows.
    """

    def __init__(self, dim: int = 384) -> None:
        if not isinstance(dim, int) or dim < 8:
            raise InputError(f"dim must be a whole number of at least 8, not {dim!r}.")
        self.dim = dim
        self.name = f"hashing-{dim}"
        self.fingerprint = hashlib.sha256(f"hashing\n{_VERSION}\n{dim}".encode()).hexdigest()

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit vector a text, (texts, dim)."""
        import numpy as np

        rows = [self.query(text) for text in texts]
        return np.stack(rows) if rows else np.empty((0, self.dim), np.float32)

    def passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return one window a text, (1, dim)."""
        return [self.query(text)[None] for text in texts]

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector (dim,) of a text."""
        import numpy as np

        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError("text holds a lone surrogate.") from None
        features = [_features(word) for word in _WORD.findall(text.lower()) or [""]]
        places = np.frombuffer(b"".join([slots for slots, _ in features]), np.int64) % self.dim
        weights = np.frombuffer(b"".join([weights for _, weights in features]))
        sums = np.bincount(places, weights, self.dim)
        length = math.sqrt(float(sums @ sums))
        if not length:
            sums[0] = length = 1.0  # every feature met its opposite
        unit: NDArray[np.float32] = (sums / length).astype(np.float32)
        return unit


@lru_cache(maxsize=1 << 16)
def _features(word: str) -> tuple[bytes, bytes]:
    """Return the hashes (int64) and the signed weights (float64) of a word and of its trigrams.

    As bytes they are put together, and read by numpy, without an object for each number.
    """
    # Words of up to three letters are mostly grammar, which every text shares.
    whole, part = (1.0, 0.5) if len(word) > 3 else (0.5, 0.25)
    padded = f"<{word}>"
    data = padded.encode()
    if len(data) == len(padded):  # ASCII: slices of bytes are slices of letters
        pieces = [data[at : at + 3] for at in range(len(data) - 2)]
    else:
        pieces = [padded[at : at + 3].encode() for at in range(len(padded) - 2)]
    hashes = [(crc32(b"=" + data), whole), *[(crc32(piece), part) for piece in pieces]]
    slots = array("q", [hash >> 1 for hash, _ in hashes])
    weights = array("d", [weight if hash & 1 else -weight for hash, weight in hashes])
    return slots.tobytes(), weights.tobytes()
