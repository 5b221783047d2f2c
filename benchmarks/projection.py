"""Derive the projection of MiniLM's token vectors from the model itself.

What 384 dimensions say about single words fits in 64: the principal directions of the vectors
that the model gives the words of its own vocabulary, each alone in a text. No other data enters.
"""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 64
FIRST, LAST = 101, 102
BATCH = 256
SAME_SPACE = 0.9999
"""Smallest cosine between two derivations' spaces: sums differ in their last bits between
machines, and float16 rounds each direction."""

Array = NDArray[Any]


def whole_words(tokenizer: bytes) -> list[int]:
    """Return the ids of the vocabulary's words of two ASCII letters or more, in their order."""
    vocabulary: dict[str, int] = json.loads(tokenizer)["model"]["vocab"]
    words = sorted(w for w in vocabulary if w.isascii() and w.isalpha() and len(w) > 1)
    return [vocabulary[word] for word in words]


def word_vectors(graph: Path, ids: list[int]) -> Array:
    """Return the unit vector of each word's token when the word is the whole text."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime as ort

    session = ort.InferenceSession(str(graph), providers=["CPUExecutionProvider"])
    found = []
    for start in range(0, len(ids), BATCH):
        rows = np.array([[FIRST, id, LAST] for id in ids[start : start + BATCH]], np.int64)
        given = {"input_ids": rows, "attention_mask": np.ones_like(rows)}
        found.append(session.run(["tokens"], given)[0][:, 1])
    vectors = np.concatenate(found).astype(np.float64)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def principal(vectors: Array) -> Array:
    """Return the WIDTH directions that hold most of the vectors, strongest first, as rows."""
    _, directions = np.linalg.eigh(vectors.T @ vectors)
    rows = directions[:, ::-1][:, :WIDTH].T
    # An eigenvector's sign is arbitrary: its largest part is made positive.
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    return (rows * np.sign(largest)).astype("<f2")


def derive(graph: Path, tokenizer: bytes) -> bytes:
    """Return the projection as the bytes of a .npy file, float16 (WIDTH, 384)."""
    matrix = principal(word_vectors(graph, whole_words(tokenizer)))
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(matrix), version=(1, 0))
    return buffer.getvalue()


def agreement(one: bytes, other: bytes) -> float:
    """Return the smallest cosine between the spaces that two projections keep; 1 is the same."""
    left, right = (
        np.linalg.qr(np.load(io.BytesIO(data), allow_pickle=False).astype(np.float64).T)[0]
        for data in (one, other)
    )
    return float(np.linalg.svd(left.T @ right, compute_uv=False).min())
