"""Embedders whose likenesses a test chooses: texts hold the angles of their vectors."""

from __future__ import annotations

import math
from typing import Any


def at_angle(texts: list[str]) -> list[list[float]]:
    """Return for each text the unit vector at its last word's degrees, in a plane."""
    angles = [math.radians(float(text.split()[-1])) for text in texts]
    return [[math.cos(angle), math.sin(angle)] for angle in angles]


class Windows:
    """An embedder that makes a window of each number in a text, an angle in degrees."""

    name, dim, fingerprint = "windows", 2, "windows"

    def passages(self, texts: Any) -> list[Any]:
        """Return a vector for each number of each text."""
        return [at_angle([f"x {n}" for n in text.split()]) for text in texts]

    def query(self, text: str) -> Any:
        """Return the vector of the first number."""
        return self.passages([text])[0][0]
