"""A file with a history of every kind, made once for all tests of salvage."""

from __future__ import annotations

import random

import pytest

from tests.durability.checks import Contents, assert_sound, opened
from tests.durability.deeds import attempt, choose, sentence


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Contents]:
    """Return the bytes of a file with a history of every kind, and what it holds."""
    path = tmp_path_factory.mktemp("good") / "memory.db"
    chance = random.Random(5)
    with opened(path) as store:
        for _ in range(120):
            attempt(choose(store, chance))
        store.remember_many(sentence(chance) for _ in range(20))
        long = store.remember("a text that fills several pages " * 900, tags=["long"])
        store.trash(store.remember("in the trash").id)
        store.link(long.id, store.remember("short", tags=["a", "b"], entities=["Anna"]).id)
    held = assert_sound(path)
    assert len(held) > 20
    return path.read_bytes(), held
