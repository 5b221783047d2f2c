"""Pure graph proximity: how near each candidate is to the strong ones along links."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from houkai.search.arrays import Floats
from houkai.search.ranking import spread

DAMPING: Final = 0.5
ROUNDS: Final = 3


def proximity(base: Floats, edges: Iterable[tuple[int, int]]) -> Floats | None:
    """Spread relevance along undirected links between positions; None when there is no link.

    A short personalised PageRank [Haveliwala 2002]: three rounds, damping 0.5, from the min-max of
    `base`. A candidate without links keeps its own mass. The result runs from 0 to 1.
    """
    pairs = np.array(sorted({(min(a, b), max(a, b)) for a, b in edges if a != b}), np.int64)
    if not len(pairs):
        return None
    seed = spread(base)
    degree = np.bincount(pairs.ravel(), minlength=len(base)).astype(np.float64)
    mass = seed.copy()
    for _ in range(ROUNDS):
        share = np.divide(mass, degree, out=np.zeros_like(mass), where=degree > 0)
        arriving = np.bincount(pairs[:, 0], share[pairs[:, 1]], len(base)) + np.bincount(
            pairs[:, 1], share[pairs[:, 0]], len(base)
        )
        mass = np.where(degree > 0, (1 - DAMPING) * seed + DAMPING * arriving, mass)
    return spread(mass)
