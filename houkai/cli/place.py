"""The file and collection that a command works on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Place:
    """What the flags name; None where no flag was given."""

    db: str | None = None
    collection: str | None = None
