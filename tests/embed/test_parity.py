"""Compare with sentence-transformers on the original weights; run with `pytest -m parity`.

Needs the extra `parity`: torch, sentence-transformers and the package models.lock names as the
weights' source.
"""

from __future__ import annotations

import hashlib
import importlib.util
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from parity_texts import texts

from houkai.embed import MiniLM
from houkai.embed.lockfile import lock_path

pytestmark = pytest.mark.parity
CLOSE = 0.9999


def _original() -> Path:
    """Return the folder of the original model, its weights checked against models.lock."""
    entry = tomllib.loads(lock_path().read_text(encoding="utf-8"))["models"]["all-MiniLM-L6-v2"]
    package, _, inner = entry["source"]["folder"].partition("/")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / inner
    for name in ("model.safetensors", "tokenizer.json"):
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert found == entry["hub"]["files"][name]["sha256"]
    return folder


@pytest.fixture(scope="module")
def reference() -> Any:
    """Return what sentence-transformers makes of every text, one at a time."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(_original()), device="cpu")
    assert model.max_seq_length == 256
    return np.stack([model.encode(text, normalize_embeddings=True) for text in texts()])


def _report(kind: str, cosines: Any) -> None:
    print(f"{kind}: {len(cosines)} texts, min {cosines.min():.7f}, mean {cosines.mean():.7f}")


def test_every_text_alone_is_the_reference_vector(reference: Any) -> None:
    """An export that drifts from the model everybody knows would make its figures worthless."""
    model = MiniLM()
    first = np.stack([model.passages([text])[0][0] for text in texts()])
    cosines = (first * reference).sum(axis=1)
    _report("alone", cosines)
    assert cosines.min() >= CLOSE


def test_every_text_in_a_batch_is_the_reference_vector(reference: Any) -> None:
    """Padding that leaks into a vector shows only in company."""
    first = np.stack([rows[0] for rows in MiniLM().passages(texts())])
    cosines = (first * reference).sum(axis=1)
    _report("batch", cosines)
    assert cosines.min() >= CLOSE


def test_first_texts_of_a_process_are_the_reference_vectors(reference: Any) -> None:
    """The session a command starts with is another than a server's."""
    found = []
    for at in range(0, 400, 20):
        model = MiniLM()
        found += [(at + n, model.query(texts()[at + n])) for n in (0, 7)]
    cosines = np.array([row @ reference[at] for at, row in found if len(texts()[at]) < 900])
    _report("quick", cosines)
    assert cosines.min() >= CLOSE


def test_there_are_400_texts() -> None:
    """Losing a kind of text would weaken the comparison unseen."""
    assert len(texts()) == 400
    assert len(set(texts())) > 330
