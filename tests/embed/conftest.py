"""Fixtures for the embedding tests."""

from __future__ import annotations

import pytest

from houkai.embed import MiniLM, default


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    """Share one model between tests, because loading it optimised takes a while."""
    model = default()
    model.passages(["warm"] * 16)
    return model
