"""Fixtures for the embedding tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from providers import KEY, Provider, running

from houkai.embed import MiniLM, default
from houkai.embed.remote import OllamaEmbedder, OpenAICompatibleEmbedder, RemoteEmbedder


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    """Share one model between tests, because loading it optimised takes a while."""
    model = default()
    model.passages(["warm"] * 16)
    return model


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Serve an embedding provider on loopback."""
    with running(Provider()) as server:
        yield server


@pytest.fixture(params=["openai", "ollama"])
def make(request: pytest.FixtureRequest, provider: Provider) -> Callable[..., RemoteEmbedder]:
    """Return a function that makes an embedder of the provider, for both protocols."""
    if request.param == "openai":
        return lambda **more: OpenAICompatibleEmbedder(KEY, "m", f"{provider.url}/v1", **more)
    return lambda **more: OllamaEmbedder("m", provider.url, **more)
