"""What houkai asks of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """A model whose vectors compare by cosine; safe to call from many threads and stores."""

    @property
    def name(self) -> str:
        """Name the model for people."""

    @property
    def dim(self) -> int:
        """Say how many dimensions its vectors have; 0 while only a first vector could tell."""

    @property
    def fingerprint(self) -> str:
        """Identify the vector space: equal exactly where vectors may be compared."""

    def passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return for each text its windows' unit vectors, (windows, dim) with 1 row or more."""

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector (dim,) of a question."""
