from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from houkai.embed import MiniLM, adapt
from houkai.errors import InputError
from houkai.testing import HashingEmbedder


def _lengths(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0, 0.0] for text in texts]


def test_callable_becomes_an_embedder_of_unit_rows() -> None:
    """Rows of another length than 1 would turn cosines into arbitrary numbers."""
    embedder = adapt(_lengths)
    assert embedder.dim == 0
    rows = embedder.passages(["abc", "d"])
    assert [row.shape for row in rows] == [(1, 3), (1, 3)]
    assert all(row.dtype == np.float32 for row in rows)
    assert np.allclose(rows[0][0], np.array([3, 1, 0]) / np.sqrt(10))
    assert np.allclose(embedder.query("abc"), rows[0][0])
    assert embedder.dim == 3
    assert embedder.passages([]) == []


def test_name_comes_from_the_callable_and_makes_the_fingerprint() -> None:
    """Two callables with one fingerprint would mix their vectors in one file."""

    class Named:
        name = "mine"

        def __call__(self, texts: list[str]) -> list[list[float]]:
            return _lengths(texts)

    named, plain = adapt(Named()), adapt(_lengths)
    assert named.name == "mine"
    assert plain.name.endswith("._lengths")
    assert adapt(functools.partial(_lengths)).name == plain.name
    assert named.fingerprint != plain.fingerprint
    assert adapt(_lengths).fingerprint == plain.fingerprint


@pytest.mark.parametrize(
    "made",
    [
        lambda rows: np.array(rows, np.float16),
        lambda rows: [np.array(row) for row in rows],
        lambda rows: tuple(tuple(row) for row in rows),
        lambda rows: (row for row in rows),
        lambda rows: np.array(rows) * 1e300,
        lambda rows: np.array(rows) * 1e-300,
        lambda rows: [[int(value) for value in row] for row in rows],
    ],
)
def test_any_form_of_numbers_is_taken(made: Callable[[Any], Any]) -> None:
    """A user's float16, float64 or list embedder must work without conversion."""
    embedder = adapt(lambda texts: made(_lengths(texts)))
    for row in embedder.passages(["abc", "abcd"]):
        assert abs(float(np.linalg.norm(row)) - 1) < 1e-6


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([[1.0, float("nan")]], "NaN or infinity"),
        ([[1.0, float("inf")]], "NaN or infinity"),
        ([[0.0, 0.0]], "a vector of zeros"),
        ([[1.0], [1.0]], "2 vectors for 1 text"),
        ([], "0 vectors for 1 text"),
        ([[1.0, [2.0]]], "unequal length"),
        ([["a", "b"]], "values of type"),
        ([[None, None]], "values of type"),
        ([1.0], "shape"),
        ([[]], "shape"),
        (None, "NoneType"),
    ],
)
def test_bad_vectors_are_refused_in_one_sentence(returned: Any, said: str) -> None:
    """SQLite would store NaN or zeros, and every later search would return nonsense."""
    embedder = adapt(lambda texts: returned)
    for ask in (lambda: embedder.passages(["one"]), lambda: embedder.query("one")):
        with pytest.raises(InputError, match=said) as caught:
            ask()
        assert str(caught.value).count(".") >= 1


@pytest.mark.parametrize("again", [[[1.0, 2.0]], [[1.0, 2.0, 3.0, 4.0]]])
def test_changed_dimension_is_refused(again: list[list[float]]) -> None:
    """Vectors of two lengths cannot share an index."""
    answers = iter([[[1.0, 2.0, 3.0]], again])
    embedder = adapt(lambda texts: next(answers))
    embedder.query("first")
    with pytest.raises(InputError, match="dimensions where it has 3"):
        embedder.query("second")


def test_ragged_texts_are_refused() -> None:
    """Vectors of two lengths within one call are no better than across calls."""
    embedder = adapt(lambda texts: [[1.0] * (n + 1) for n, _ in enumerate(texts)])
    with pytest.raises(InputError, match="dimensions where it has 1"):
        embedder.passages(["a", "b"])


@pytest.mark.parametrize("wrong", [None, "all-MiniLM-L6-v2", 3])
def test_what_is_no_embedder_is_refused(wrong: Any) -> None:
    """A model's name passed as an embedder must not fail deep inside a recall."""
    with pytest.raises(InputError, match="embedder must be"):
        adapt(wrong)


def test_own_embedders_come_back_unchanged() -> None:
    """A wrapper would hide what a store may use beyond the protocol."""
    for embedder in (HashingEmbedder(), MiniLM()):
        assert adapt(embedder) is embedder


def test_foreign_embedders_are_checked_too() -> None:
    """Having two methods does not make a class return unit vectors."""

    class Foreign:
        name, dim, fingerprint = "foreign", 2, "f"

        def passages(self, texts: Any) -> Any:
            return [np.array([[3.0, 4.0], [0.0, 2.0]]) for _ in texts]

        def query(self, text: str) -> Any:
            return np.zeros(2)

    embedder = adapt(Foreign())
    assert (embedder.name, embedder.dim, embedder.fingerprint) == ("foreign", 2, "f")
    assert np.allclose(embedder.passages(["x"])[0], np.array([[0.6, 0.8], [0.0, 1.0]]))
    with pytest.raises(InputError, match="zeros"):
        embedder.query("x")
