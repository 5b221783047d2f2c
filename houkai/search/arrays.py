"""Kinds of arrays, and the small steps that all of search takes on them."""

from __future__ import annotations

import json
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]


def distinct(numbers: Ints) -> Ints:
    """Return numbers in order without repeats.

    np.unique would do, but it imports numpy.ma, which takes longer than a recall.
    """
    ordered = np.sort(numbers)
    fresh = np.ones(len(ordered), bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]


def held(numbers: Ints, ordered: Ints) -> Mask:
    """Return which numbers are among others, which are in order."""
    if not len(ordered):
        return np.zeros(len(numbers), bool)
    at = np.minimum(np.searchsorted(ordered, numbers), len(ordered) - 1)
    found: Mask = ordered[at] == numbers
    return found


def marked(ordered: Ints, some: Ints) -> Mask:
    """Return which of many numbers in order are among a few others."""
    found = np.zeros(len(ordered), bool)
    if len(ordered):
        at = np.minimum(np.searchsorted(ordered, some), len(ordered) - 1)
        found[at[ordered[at] == some]] = True
    return found


def products(rows: Matrix, vector: Vector) -> Vector:
    """Return the product of each row with a vector.

    Not by the BLAS, whose threads wait for each other for longer than so little work takes.
    """
    found: Vector = np.einsum("ij,j->i", rows, vector)
    return found


def bound(numbers: Ints) -> Any:
    """Return numbers as a parameter that `carray(?)` reads; it reads nothing from None."""
    return apsw.carray(np.ascontiguousarray(numbers, np.int64)) if len(numbers) else None


def numbers(connection: apsw.Connection, sql: str, values: Any) -> Ints:
    """Return the only column of a select, whose numbers come as one text: it is the fastest."""
    found: str = connection.execute(f"select json_group_array(number) from ({sql})", values).get
    return np.array(json.loads(found), np.int64)
