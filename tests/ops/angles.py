"""An embedder whose likenesses a test chooses: texts end in the angle of their vector."""

from __future__ import annotations

import math


def at_angle(texts: list[str]) -> list[list[float]]:
    """Return for each text the unit vector at its last word's degrees, in a plane."""
    angles = [math.radians(float(text.split()[-1])) for text in texts]
    return [[math.cos(angle), math.sin(angle)] for angle in angles]
