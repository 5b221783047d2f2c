"""What houkai asks of an embedding model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeGuard

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


class Passage(NamedTuple):
    """A text in vectors: its windows, and the word pieces it begins with."""

    windows: NDArray[np.float32]
    """Unit vectors (windows, dim)."""
    tokens: NDArray[np.int8]
    """Unit vectors (pieces, width) times 127; pieces that tell nothing are left out."""


class Question(NamedTuple):
    """A question in vectors; without tokens where the embedder gives none."""

    vector: NDArray[np.float32]
    tokens: NDArray[np.int8] | None = None


class TokenEmbedder(Embedder, Protocol):
    """An Embedder that also gives vectors of single words, which recall compares one by one.

    What it returns is computed in one run of the model; `fingerprint` covers the tokens too. Only
    houkai's own embedders are asked: `adapt` checks vectors of others and passes on no tokens.
    """

    def tokens(self, texts: Sequence[str]) -> list[Passage]:
        """Return what `passages` returns together with each text's token vectors."""

    def query_tokens(self, text: str) -> Question:
        """Return what `query` returns together with the question's token vectors."""


def gives_tokens(embedder: Embedder) -> TypeGuard[TokenEmbedder]:
    """Say whether an embedder gives token vectors."""
    return hasattr(embedder, "query_tokens")
