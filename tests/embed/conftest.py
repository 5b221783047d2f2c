"""Fixtures for the embedding tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from providers import Provider, running

from houkai.embed import MiniLM, default


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    """Share one model between tests, because loading it optimised takes a while."""
    model = default()
    model.passages(["warm"] * 16)
    return model


@pytest.fixture
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test that looks up or calls anything but this machine."""
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def guarded(self: socket.socket, address: Any) -> None:
        assert isinstance(address, str) or address[0] in ("127.0.0.1", "::1"), address
        connect(self, address)

    def asked(host: Any, *rest: Any, **more: Any) -> Any:
        assert host in ("127.0.0.1", "::1", "localhost"), host
        return look_up(host, *rest, **more)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket, "getaddrinfo", asked)


@pytest.fixture
def provider(loopback_only: None) -> Iterator[Provider]:
    """Serve an embedding provider on loopback."""
    with running(Provider()) as server:
        yield server
