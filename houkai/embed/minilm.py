"""all-MiniLM-L6-v2 from the package's own files, with nothing loaded before the first text."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from houkai.embed.lockfile import LockedModel, locked, verify
from houkai.embed.pieces import FIRST_PIECES, project, telling
from houkai.embed.port import Passage, Question
from houkai.embed.runtime import Runtime, renew_after_fork
from houkai.embed.windows import batches, windows
from houkai.errors import InputError
from houkai.stopwords import STOP_WORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MODEL: Final = "all-MiniLM-L6-v2"
FIRST, LAST = 101, 102  # [CLS] and [SEP], which enclose every window


class MiniLM:
    """The default Embedder: 384 dimensions, English first, the same vectors on every machine."""

    def __init__(self, folder: Path | None = None, *, threads: int | None = None) -> None:
        self._folder = folder
        self._threads = threads
        self._loaded: tuple[Any, Runtime] | None = None
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Replace the lock in a forked child; the tokenizer has no threads and stays."""
        self._lock = threading.Lock()

    @cached_property
    def _model(self) -> LockedModel:
        return locked(MODEL)

    @property
    def name(self) -> str:
        """Name the model for people."""
        return MODEL

    @property
    def dim(self) -> int:
        """Say how many dimensions its vectors have."""
        return self._model.dimension

    @property
    def fingerprint(self) -> str:
        """Identify the vector space, from models.lock alone."""
        return self._model.fingerprint

    def passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return for each text its windows' unit vectors, (windows, 384)."""
        return self._embed([self._encode(text, f"texts[{n}]").ids for n, text in enumerate(texts)])

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector (384,) of a question: the normalised mean of its windows."""
        return _middle(self._embed([self._encode(text, "text").ids])[0])

    def tokens(self, texts: Sequence[str]) -> list[Passage]:
        """Return what `passages` returns together with each text's token vectors, (pieces, 64)."""
        codes = [self._encode(text, f"texts[{n}]") for n, text in enumerate(texts)]
        return list(self._both(texts, codes))

    def query_tokens(self, text: str) -> Question:
        """Return what `query` returns together with the question's token vectors."""
        (found,) = self._both([text], [self._encode(text, "text")])
        return Question(_middle(found.windows), found.tokens)

    def _both(self, texts: Sequence[str], codes: list[Any]) -> Iterator[Passage]:
        """Yield each text's windows and tokens."""
        parts = [self._cut(code.ids) for code in codes]
        spans = list(_spans(parts))
        vectors, kept = self._run(
            [ids for part in parts for ids in part], {start for start, _ in spans}
        )
        for text, code, (start, stop) in zip(texts, codes, spans, strict=True):
            ids, offsets = code.ids[:FIRST_PIECES], code.offsets[:FIRST_PIECES]
            chosen = telling(text, ids, offsets, self._stop)
            tokens = project(kept[start][chosen], self._projection)
            yield Passage(vectors[start:stop].copy(), tokens)

    @cached_property
    def _projection(self) -> NDArray[np.float32]:
        """Return the matrix (384, 64) that token vectors are multiplied with."""
        import numpy as np

        stored = np.load((self._folder or self._model.folder) / "projection.npy")
        return np.ascontiguousarray(stored.T, np.float32)

    @cached_property
    def _stop(self) -> frozenset[int]:
        """Return the ids of words that tell memories apart from nothing."""
        tokenizer, _ = self._load()
        found = (tokenizer.token_to_id(word) for word in STOP_WORDS)
        return frozenset(id for id in found if id is not None)

    def _load(self) -> tuple[Any, Runtime]:
        """Return tokenizer and runtime, loaded once the files are known to be the pinned ones."""
        with self._lock:
            if self._loaded is None:
                from tokenizers import Tokenizer

                folder = self._folder or self._model.folder
                verify(self._model, folder)
                tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
                # The official file cuts at 128 pieces and pads to 128: both would be wrong here.
                tokenizer.no_truncation()
                tokenizer.no_padding()
                self._loaded = tokenizer, Runtime(folder / "model.onnx", self._threads)
            return self._loaded

    def _encode(self, text: str, name: str) -> Any:
        """Return a text's tokens without the two special ones; `name` is for a refusal."""
        tokenizer, _ = self._load()
        try:
            return tokenizer.encode(text, add_special_tokens=False)
        except TypeError:
            pass
        if not isinstance(text, str):
            raise InputError(f"{name} must be a string, not {type(text).__name__}.")
        raise InputError(
            f"{name} holds a lone surrogate, which no encoding of Unicode allows.",
            hint="Decode the text it came from with errors='replace'.",
        )

    def _embed(self, texts: list[list[int]]) -> list[NDArray[np.float32]]:
        """Return the windows' vectors of each text, given as ids."""
        parts = [self._cut(ids) for ids in texts]
        vectors, _ = self._run([ids for part in parts for ids in part])
        return [vectors[start:stop].copy() for start, stop in _spans(parts)]

    def _cut(self, ids: list[int]) -> list[list[int]]:
        room = self._model.window - 2
        return [[FIRST, *part, LAST] for part in windows(ids, room)]

    def _run(
        self, ids: list[list[int]], keep: set[int] | None = None
    ) -> tuple[NDArray[np.float32], dict[int, NDArray[np.float32]]]:
        """Return the windows' vectors in order, and the token vectors of windows in `keep`."""
        import numpy as np

        found = np.empty((len(ids), self.dim), np.float32)
        kept: dict[int, NDArray[np.float32]] = {}
        if not ids:
            return found, kept
        _, runtime = self._load()
        session = runtime.session(len(ids))
        outputs = ["embedding"] if keep is None else ["embedding", "tokens"]
        for batch in batches([len(one) for one in ids]):
            result = runtime.run(session, outputs, [ids[at] for at in batch])
            found[batch] = result[0]
            for row, at in enumerate(batch):
                if keep and at in keep:
                    kept[at] = result[1][row, 1 : min(len(ids[at]) - 1, FIRST_PIECES + 1)].copy()
        return found, kept


def _middle(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the normalised mean of unit vectors."""
    import numpy as np

    unit: NDArray[np.float32] = rows[0]
    if len(rows) > 1:
        mean = rows.mean(axis=0)
        unit = (mean / np.linalg.norm(mean)).astype(np.float32)
    return unit


def _spans(parts: list[list[list[int]]]) -> Iterator[tuple[int, int]]:
    """Yield where each text's windows begin and end in one long list of all windows."""
    start = 0
    for part in parts:
        yield start, start + len(part)
        start += len(part)
