"""Whether a collection answers a question at all: the measure that abstention goes by."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from houkai.search.arrays import Floats

FIRST: Final = 3
"""Results whose words count."""
UNREADABLE: Final = 0.25
"""What stands for the cosine of a question that the model cannot read."""


def relevance(foreign: float, best: float, present: NDArray[np.bool_], weight: Floats) -> float:
    """Return about how surely a collection answers a question, from 0 to about 1.5.

    `best` is the best cosine, `present` says which of the question's words the first results hold,
    `weight` is the idf of each word, in full for one that no memory holds. `foreign` is the share
    of letters that the model cannot read; where it is large, the words decide.
    """
    total = float(weight.sum())
    covered = float(present.any(axis=0) @ weight) / total if total and len(present) else 0.0
    read = (1 - foreign) * best + foreign * UNREADABLE
    return read + 0.5 * (1 + foreign) * covered
