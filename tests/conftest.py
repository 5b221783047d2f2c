"""Fixtures of the whole suite: stores that end with their test, no network, no real home."""

from __future__ import annotations

import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from houkai import MemoryStore
from houkai.storage import process
from houkai.testing import HashingEmbedder
from tests.support import Clock

_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
# The same examples on every machine; `--hypothesis-profile=fuzz` looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=_QUIET)
settings.register_profile(
    "fuzz", deadline=None, suppress_health_check=_QUIET, print_blob=True, max_examples=1_000
)
settings.load_profile("steady")

DIM = 64

# A runner started in the background ignores Ctrl-C, and every process a test starts would too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def close_databases() -> Iterator[None]:
    """Close every database a test left open, so that none outlives its folder."""
    yield
    for left in list(process.opened):
        left.close()


@pytest.fixture(autouse=True)
def restore_signals() -> Iterator[None]:
    """Put back what a test's command does on signals: the next test is not that program."""
    held = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in held.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point home and every houkai setting into the test's folder."""
    for name in [name for name in os.environ if name.startswith(("HOUKAI_", "XDG_"))]:
        monkeypatch.delenv(name)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves the machine."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and not _is_loopback(address[0]):
            raise AssertionError(f"a test tried to reach {address!r}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@pytest.fixture
def clock() -> Clock:
    """Return a clock that the test moves."""
    return Clock()


@pytest.fixture(scope="session")
def embedder() -> HashingEmbedder:
    """Return an embedder whose vectors need no model."""
    return HashingEmbedder(DIM)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a test's memory file goes."""
    return tmp_path / "memory.db"


Opener = Callable[..., MemoryStore]


@pytest.fixture
def open_store(path: Path, embedder: HashingEmbedder, clock: Clock) -> Opener:
    """Return a function that opens the test's file again, with other options when given."""

    def opened(where: Path | str = path, collection: str | None = None, **more: Any) -> MemoryStore:
        return MemoryStore(where, collection, **{"embedder": embedder, "clock": clock, **more})

    return opened


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, open_store: Opener, path: Path) -> MemoryStore:
    """Return an empty store, once in a file and once in RAM."""
    return open_store(path if request.param == "file" else ":memory:")


@pytest.fixture
def file_store(open_store: Opener) -> MemoryStore:
    """Return an empty store in a file."""
    return open_store()
