"""Embedders that ask a provider: any server that speaks OpenAI's protocol, and Ollama.

The vector space is identified by the model's name and dimension, not by the provider or its
address: the same model behind another address, or moved from Ollama to a server that speaks
OpenAI's protocol, goes on with the file's vectors. Two models that share both must be renamed.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from houkai.embed.transport import Client, Effort, Provider, TooLong, address
from houkai.errors import InputError, ModelMismatch, NotReady

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OPENAI: Final = "https://api.openai.com/v1"
OLLAMA: Final = "http://127.0.0.1:11434"
WINDOW: Final = 1_200
"""Characters a provider gets as one text: some 300 tokens of English, 1,200 at most of any script
that most tokenizers know, which every common embedding model takes whole."""
OVERLAP: Final = 200
SHORTEST: Final = 300
"""A window that is still too long at this size is not made shorter."""
CHARACTERS: Final = 100_000
"""Characters in one request, under the 300,000 tokens that OpenAI takes."""
PATIENT: Final = Effort(tries=5, patience_s=60.0)
PROMPT: Final = Effort(tries=2, patience_s=2.0)
"""An agent waits for its recall, which can go on by words alone."""
CUT: Final = 1
"""Raised when texts are cut another way, because vectors then no longer compare."""


class RemoteEmbedder(ABC):
    """An Embedder that asks a provider; the dimension is known from its first answer."""

    def __init__(self, provider: Provider, headers: dict[str, str], batch_size: int) -> None:
        if not isinstance(batch_size, int) or batch_size < 1:
            raise InputError(f"batch_size must be a whole number of 1 or more, not {batch_size!r}.")
        self._provider = provider
        self._client = Client(provider, headers)
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._dim = 0

    @property
    def name(self) -> str:
        """Name the model for people, the same at every provider."""
        return self._provider.model.removesuffix(":latest")

    @property
    def dim(self) -> int:
        """Say how many dimensions its vectors have; 0 before the first answer."""
        return self._dim

    @property
    def fingerprint(self) -> str:
        """Identify the vector space; asks the provider if it has not answered yet."""
        if not self._dim:
            self.query("How long is a vector?")
        return self.fingerprint_at(self._dim)

    def fingerprint_at(self, dim: int) -> str:
        """Return what the fingerprint is if vectors turn out to have `dim` dimensions."""
        return hashlib.sha256(f"remote\n{CUT}\n{self.name}\n{dim}".encode()).hexdigest()

    def __repr__(self) -> str:
        """Show the model and where it is asked for."""
        return f"<{type(self).__name__} {self._provider.model} at {self._provider.address}>"

    def passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return for each text its windows' unit vectors. Raises NotReady, InputError."""
        return self._passages(texts, PATIENT)

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question: the normalised mean of its windows."""

        rows = self._passages([text], PROMPT)[0]
        unit: NDArray[np.float32] = rows[0]
        if len(rows) > 1:
            unit = self._units(rows.mean(axis=0, keepdims=True))[0]
        return unit

    def _passages(self, texts: Sequence[str], effort: Effort) -> list[NDArray[np.float32]]:
        import numpy as np

        parts = [windows(_encodable(text, number)) for number, text in enumerate(texts)]
        flat = list(itertools.chain.from_iterable(parts))
        rows = [found for batch in self._batches(flat) for found in self._embed(batch, effort)]
        each = iter(rows)
        return [np.concatenate([next(each) for _ in part]) for part in parts]

    def _batches(self, flat: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for window in flat:
            if batch and (len(batch) == self._batch_size or size + len(window) > CHARACTERS):
                yield batch
                batch, size = [], 0
            batch.append(window)
            size += len(window)
        if batch:
            yield batch

    def _embed(self, batch: list[str], effort: Effort) -> list[NDArray[np.float32]]:
        """Return for each window its vector, or several where the provider takes less at once."""
        import numpy as np

        try:
            rows = self._units(self._ask(batch, effort), len(batch))
            return [row[None] for row in rows]
        except TooLong:
            middle = len(batch) // 2
            if middle:
                return self._embed(batch[:middle], effort) + self._embed(batch[middle:], effort)
            if len(batch[0]) <= SHORTEST:
                raise
            return [np.concatenate(self._embed(list(halves(batch[0])), effort))]

    @abstractmethod
    def _ask(self, batch: list[str], effort: Effort) -> list[Any]:
        """Return what the provider says are the vectors of a batch, in its order."""

    def _units(self, values: Any, number: int = 1) -> NDArray[np.float32]:
        """Return vectors as float32 of unit length, or refuse them."""
        import numpy as np

        if len(values) != number:
            raise self._refusal(f"{len(values)} vectors for {number} texts")
        try:
            rows = np.asarray(values)
        except ValueError:
            raise self._refusal("vectors of unequal length") from None
        if rows.ndim != 2 or not rows.size or rows.dtype.kind not in "fiu":
            raise self._refusal("something that is not a list of numbers for each text")
        wide = rows.astype(np.float64)
        if not np.isfinite(wide).all():
            raise self._refusal("NaN or infinity")
        # Dividing by the largest value first keeps squares from overflowing or vanishing.
        largest = np.abs(wide).max(axis=1, keepdims=True)
        if not largest.all():
            raise self._refusal("a vector of zeros")
        wide /= largest
        self._settle(rows.shape[1])
        wide /= np.linalg.norm(wide, axis=1, keepdims=True)
        unit: NDArray[np.float32] = wide.astype(np.float32)
        return unit

    def _refusal(self, what: str) -> NotReady:
        return NotReady(
            f"{self._provider} returned {what}.",
            hint="Check that the model is an embedding model.",
        )

    def _settle(self, dim: int) -> None:
        """Hold every answer to the dimension of the first."""
        with self._lock:
            self._dim = self._dim or dim
            if dim != self._dim:
                raise ModelMismatch(
                    f"{self._provider} returned vectors of {dim} dimensions for "
                    f"{self.name!r}, which had {self._dim} before.",
                    hint="Run `reembed` to change over.",
                )


class OpenAICompatibleEmbedder(RemoteEmbedder):
    """Ask a server that speaks OpenAI's protocol, `POST {base_url}/embeddings`."""

    def __init__(
        self,
        api_key: str | None,
        model: str,
        base_url: str = OPENAI,
        *,
        timeout: float = 30.0,
        batch_size: int = 256,
    ) -> None:
        provider = Provider(
            label="The embedding server",
            address=address(base_url, "base_url"),
            model=model,
            timeout_s=timeout,
            key_hint="Set HOUKAI_EMBED_API_KEY, or OPENAI_API_KEY for OpenAI itself.",
            model_hint="Check the model's name and the base URL.",
            down_hint="Check the network and the base URL.",
        )
        super().__init__(provider, _authorization(api_key), batch_size)

    def _ask(self, batch: list[str], effort: Effort) -> list[Any]:
        answer = self._client.post(
            "/embeddings", {"model": self._provider.model, "input": batch}, effort
        )
        try:
            # Servers that work in parallel may answer out of order.
            found = {item["index"]: item["embedding"] for item in answer["data"]}
            if len(answer["data"]) != len(batch) or set(found) != set(range(len(batch))):
                raise self._refusal(f"{len(found)} vectors for {len(batch)} texts")
            return [found[at] for at in range(len(batch))]
        except (TypeError, KeyError):
            raise self._refusal("JSON that holds no embeddings") from None


class OllamaEmbedder(RemoteEmbedder):
    """Ask Ollama, `POST {base_url}/api/embed`."""

    def __init__(
        self,
        model: str,
        base_url: str = OLLAMA,
        *,
        timeout: float = 60.0,
        batch_size: int = 64,
    ) -> None:
        provider = Provider(
            label="Ollama",
            address=address(base_url, "base_url"),
            model=model,
            timeout_s=timeout,
            key_hint="Check OLLAMA_BASE_URL or OLLAMA_HOST.",
            model_hint=f"Run: ollama pull {model}",
            down_hint="Start it with `ollama serve`, or set OLLAMA_BASE_URL or OLLAMA_HOST.",
        )
        super().__init__(provider, {}, batch_size)

    def _ask(self, batch: list[str], effort: Effort) -> list[Any]:
        # Left alone, Ollama cuts what is too long and says nothing.
        body = {"model": self._provider.model, "input": batch, "truncate": False}
        answer = self._client.post("/api/embed", body, effort)
        found = answer.get("embeddings") if isinstance(answer, dict) else None
        if not isinstance(found, list):
            raise self._refusal("JSON that holds no embeddings")
        return found


def _authorization(key: str | None) -> dict[str, str]:
    """Return the header for a key. Raises InputError, which does not show it."""
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise InputError("The embedding key holds characters that no key has.")
    return {"Authorization": f"Bearer {key}"} if key else {}


def windows(text: str) -> list[str]:
    """Cut a text into overlapping windows, leaving out blank ones."""
    step = WINDOW - OVERLAP
    last = max(1, len(text) - OVERLAP)
    cut = [text[start : start + WINDOW] for start in range(0, last, step)]
    return [window for window in cut if not window.isspace()] or cut[:1]


def halves(window: str) -> tuple[str, str]:
    """Cut a window in two that overlap like windows do."""
    middle, shared = len(window) // 2, len(window) // 12
    return window[: middle + shared], window[middle - shared :]


def _encodable(text: Any, number: int) -> str:
    """Return a text that can be sent. Raises InputError."""
    if not isinstance(text, str):
        raise InputError(f"texts[{number}] must be a string, not {type(text).__name__}.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"texts[{number}] holds a lone surrogate, which no encoding of Unicode allows.",
            hint="Decode the text it came from with errors='replace'.",
        ) from None
    return text
