"""Pools of candidates made by hand, for what ranks without a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from houkai.search.pool import Pool

DAY = 86_400.0
NOW = 100 * DAY


def pool(**columns: Any) -> Pool:
    """Return a pool with these columns; the others say nothing about their memories."""
    count = len(next(iter(columns.values())))
    neutral: dict[str, Any] = {
        "pk": range(1, count + 1),
        "cosine": [0.0] * count,
        "common": [0.0] * count,
        "bm25": [0.0] * count,
        "importance": [0.5] * count,
        "polarity": [0.0] * count,
        "created_at": [NOW] * count,
        "accessed_at": [NOW] * count,
        "length": [100.0] * count,
        "position": [0] * count,
        "source": [-1 - n for n in range(count)],
        "machine": [0.0] * count,
        "named": [0.0] * count,
    }
    whole = {"pk", "position", "source"}
    return Pool(
        **{
            name: np.array(list(columns.get(name, value)), np.int64 if name in whole else float)
            for name, value in neutral.items()
        }
    )
