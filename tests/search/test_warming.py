"""A process that recalls once asks the file; one that stays holds it."""

from __future__ import annotations

import pytest

from houkai.search import warming
from houkai.search.in_file import FileView
from houkai.search.resident import HeldView
from houkai.search.warming import Warming
from tests.conftest import Opener


@pytest.mark.parametrize(("size", "cold"), [(5, 1), (30, 4)])
def test_a_large_file_is_held_later(
    size: int, cold: int, open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To read a large file whole for the few recalls of a prompt takes longer than they do."""
    monkeypatch.setattr(warming, "WHOLE", 20)
    monkeypatch.setattr(warming, "OFTEN", 4)
    store = open_store()
    store.remember_many([f"note {n}" for n in range(size)])
    sketches = Warming()
    with store.read() as connection:
        kinds = [type(sketches.at(connection)) for _ in range(6)]
    assert kinds == [FileView] * cold + [HeldView] * (6 - cold)
    for _ in range(6):
        assert store.recall("note 3", 1)[0].memory.text == "note 3"
