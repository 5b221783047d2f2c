"""Waiting for another process has an end, and a sentence."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from houkai.errors import Busy
from houkai.storage import connection
from tests.durability.checks import assert_sound, opened


def test_waiting_for_another_process_ends_with_a_sentence(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that never lets go must not make the others wait for ever without a word."""
    monkeypatch.setattr(connection, "BUSY_S", 0.2)
    monkeypatch.setattr(connection.connect, "__kwdefaults__", {"busy_s": 0.2})
    with opened(path) as store:
        store.remember("first")
        rival = connection.connect(connection.uri(path))
        rival.execute("begin immediate")
        began = time.monotonic()
        with pytest.raises(Busy, match="Another process"):
            store.remember("refused")
        assert 0.15 < time.monotonic() - began < 10
        assert store.recall("first", touch=False)
        rival.execute("rollback")
        rival.close()
        store.remember("accepted")
    assert len(assert_sound(path)) == 2
