"""A cross-encoder as a reranker: question and memory are read together, by a model of your choice.

No package carries such a model, so it is not shipped; `CrossEncoder` runs any ONNX export of one
whose files you name by hash.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from houkai.embed.runtime import Runtime, renew_after_fork
from houkai.errors import ModelMissing

if TYPE_CHECKING:
    from houkai.model import Memory

GRAPH: Final = "model.onnx"
TOKENIZER: Final = "tokenizer.json"
WINDOW: Final = 512
BATCH: Final = 32


class CrossEncoder:
    """A reranker for `MemoryStore(reranker=...)` or one recall: a function of query and memories.

    `folder` holds model.onnx (inputs input_ids, attention_mask and, if it has it, token_type_ids;
    its first output is a score a pair) and tokenizer.json; `sha256` gives the hash of each file.
    A pair beyond `window` word pieces loses the end of the memory. Raises ModelMissing.
    """

    def __init__(
        self, folder: str | Path, sha256: Mapping[str, str], *, window: int = WINDOW
    ) -> None:
        self.folder, self.sha256, self.window = Path(folder), dict(sha256), window
        self._loaded: tuple[Any, Any] | None = None
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Replace the lock in a forked child, and load the model anew there."""
        self._lock, self._loaded = threading.Lock(), None

    def __call__(self, query: str, memories: Sequence[Memory]) -> list[float]:
        """Return a score for each memory, higher for what answers the question better."""
        tokenizer, session = self._load()
        pairs = tokenizer.encode_batch([(query, memory.text) for memory in memories])
        order = sorted(range(len(pairs)), key=lambda at: len(pairs[at].ids))
        scores = [0.0] * len(pairs)
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            found = self._scores(session, [pairs[at] for at in some])
            for at, score in zip(some, found, strict=True):
                scores[at] = score
        return scores

    def _scores(self, session: Any, pairs: Sequence[Any]) -> list[float]:
        import numpy as np

        longest = max(len(pair.ids) for pair in pairs)
        wanted = {entry.name for entry in session.get_inputs()}
        columns = {"input_ids": "ids", "attention_mask": "attention_mask",
                   "token_type_ids": "type_ids"}  # fmt: skip
        feed = {
            name: np.array(
                [getattr(pair, of) + [0] * (longest - len(pair.ids)) for pair in pairs], np.int64
            )
            for name, of in columns.items()
            if name in wanted
        }
        found: list[float] = session.run(None, feed)[0].reshape(len(pairs), -1)[:, 0].tolist()
        return found

    def _load(self) -> tuple[Any, Any]:
        with self._lock:
            if self._loaded is None:
                from tokenizers import Tokenizer

                for name in {GRAPH, TOKENIZER, *self.sha256}:
                    self._check(name)
                tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER))
                tokenizer.no_padding()
                tokenizer.enable_truncation(self.window, strategy="only_second")
                self._loaded = tokenizer, Runtime(self.folder / GRAPH).session(BATCH)
            return self._loaded

    def _check(self, name: str) -> None:
        """Refuse a file that is not there or not the one that was named."""
        path, wanted = self.folder / name, self.sha256.get(name)
        if wanted is None:
            raise ModelMissing(f"sha256 names no hash for {name}, so it is not loaded.")
        try:
            with path.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise ModelMissing(f"{path} cannot be read: {error.strerror}.") from error
        if found != wanted:
            raise ModelMissing(f"{path} is not the file that was named: its hash is {found}.")
