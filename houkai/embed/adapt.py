"""Make an Embedder of what a caller passes, and trust none of the numbers it returns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from houkai.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from houkai.embed.port import Embedder

Vectorize = Callable[[list[str]], Any]


def adapt(embedder: Embedder | Vectorize) -> Embedder:
    """Return an Embedder for an Embedder or any callable `list[str] -> vectors`.

    A callable returns one vector for each text, as lists or arrays of any float type. houkai's
    own embedders come back as they are; what any other returns is checked and normalised.
    """
    home = type(embedder).__module__.partition(".")[0]
    if hasattr(embedder, "passages") and hasattr(embedder, "query"):
        return cast("Embedder", embedder) if home == "houkai" else _Checked(embedder)
    if callable(embedder):
        return _Checked(_OneEach(embedder))
    raise InputError(
        "embedder must be an Embedder or a callable from a list of texts to vectors, "
        f"not {type(embedder).__name__}."
    )


def _name_of(source: Any) -> str:
    """Return the `name` of a callable, or where it is defined."""
    name = getattr(source, "name", None)
    if isinstance(name, str) and name:
        return name
    source = getattr(source, "func", source)  # a partial is named by what it calls
    if not hasattr(source, "__qualname__"):
        source = type(source)
    return f"{source.__module__}.{source.__qualname__}"


class _OneEach:
    """A callable seen as an Embedder: one window a text, a query embedded like a text."""

    def __init__(self, vectorize: Vectorize) -> None:
        self.vectorize = vectorize
        self.name = _name_of(vectorize)
        self.dim = int(getattr(vectorize, "dim", None) or 0)
        # Nothing but its name identifies a callable; one that changes its vectors must rename.
        made = hashlib.sha256(f"callable\n{self.name}".encode()).hexdigest()
        self.fingerprint = str(getattr(vectorize, "fingerprint", None) or made)

    def passages(self, texts: Sequence[str]) -> list[Any]:
        """Return one (1, dim) list for each text."""
        found = self.vectorize(list(texts))
        if not isinstance(found, Iterable):
            raise InputError(f"The embedder {self.name!r} returned {type(found).__name__}.")
        return [[row] for row in found]

    def query(self, text: str) -> Any:
        """Return the vector of a question."""
        rows = self.passages([text])
        if len(rows) != 1:
            raise InputError(f"The embedder {self.name!r} returned {len(rows)} vectors for 1 text.")
        return rows[0][0]


class _Checked:
    """An Embedder whose every vector is refused or made float32 of unit length."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.name = str(source.name)
        self.fingerprint = str(source.fingerprint)
        self.dim = int(source.dim or 0)

    def passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the source's windows for each text, checked and normalised."""
        import numpy as np

        if not texts:
            return []
        found = list(self.source.passages(texts))
        if len(found) != len(texts):
            raise self._refusal(f"{len(found)} vectors for {len(texts)} texts")
        if self.dim and all(getattr(rows, "shape", ()) == (1, self.dim) for rows in found):
            # One window a text is the rule, and a call for each costs more than the numbers.
            return list(self._unit(np.concatenate(found), 2)[:, None])
        return [self._unit(rows, 2) for rows in found]

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the source's vector of a question, checked and normalised."""
        return self._unit(self.source.query(text), 1)

    def _refusal(self, what: str) -> InputError:
        return InputError(
            f"The embedder {self.name!r} returned {what}.",
            hint="It must return one vector of finite numbers, not all zero, for each text.",
        )

    def _unit(self, values: Any, axes: int) -> NDArray[np.float32]:
        import numpy as np

        try:
            rows = np.asarray(values)
        except ValueError:
            raise self._refusal("vectors of unequal length") from None
        if rows.ndim != axes or 0 in rows.shape:
            raise self._refusal(f"an array of shape {rows.shape} where {axes} axes are due")
        if rows.dtype.kind not in "fiu":
            raise self._refusal(f"values of type {rows.dtype}")
        wide = rows.astype(np.float64)
        if not np.isfinite(wide).all():
            raise self._refusal("NaN or infinity")
        # Dividing by the largest value first keeps squares from overflowing or vanishing.
        largest = np.abs(wide).max(axis=-1, keepdims=True)
        if not largest.all():
            raise self._refusal("a vector of zeros")
        wide /= largest
        wide /= np.linalg.norm(wide, axis=-1, keepdims=True)
        self._same_dim(rows.shape[-1])
        unit: NDArray[np.float32] = wide.astype(np.float32)
        return unit

    def _same_dim(self, dim: int) -> None:
        self.dim = self.dim or dim
        if dim != self.dim:
            raise self._refusal(f"a vector of {dim} dimensions where it has {self.dim}")
