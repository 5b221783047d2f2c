"""Build an embedder from what a user writes: `minilm`, `openai:MODEL`, `ollama:MODEL`.

Addresses and keys come from the environment alone:

    openai:  HOUKAI_EMBED_BASE_URL with HOUKAI_EMBED_API_KEY, for any server that speaks OpenAI's
             protocol; else OPENAI_BASE_URL with HOUKAI_EMBED_API_KEY or OPENAI_API_KEY
    ollama:  OLLAMA_BASE_URL, else OLLAMA_HOST, else this machine

OPENAI_API_KEY is never sent to the address in HOUKAI_EMBED_BASE_URL, which need not be OpenAI's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from houkai.errors import InputError

if TYPE_CHECKING:
    from houkai.embed.port import Embedder

BUNDLED: Final = "minilm"
KNOWN: Final = "minilm, openai:MODEL, ollama:MODEL"
OLLAMA_PORT: Final = 11434


def as_embedder(given: Any) -> Embedder:
    """Return an Embedder for a spec, an Embedder, or a callable. Raises InputError."""
    if isinstance(given, str):
        return build_embedder(given)
    from houkai.embed.adapt import adapt

    return adapt(given)


def build_embedder(spec: str | None = None) -> Embedder:
    """Return the embedder that a spec names, the bundled one for None. Raises InputError.

    Nothing is loaded and nobody is asked before the first text.
    """
    provider, colon, model = (spec or BUNDLED).strip().partition(":")
    if provider in (BUNDLED, "local", "default") and not colon:
        from houkai.embed import default

        return default()
    if provider not in ("openai", "ollama") or not model.strip():
        raise InputError(
            f"embedder must be one of: {KNOWN} — got {spec!r}.",
            hint="Set it with HOUKAI_EMBEDDER or `embedder` in the config file.",
        )
    return _openai(model.strip()) if provider == "openai" else _ollama(model.strip())


def _openai(model: str) -> Embedder:
    from houkai.embed import remote
    from houkai.embed.transport import address

    key = os.environ.get("HOUKAI_EMBED_API_KEY")
    if own := os.environ.get("HOUKAI_EMBED_BASE_URL"):
        own = address(own, "HOUKAI_EMBED_BASE_URL")
        return remote.OpenAICompatibleEmbedder(key, model, own)
    base = address(os.environ.get("OPENAI_BASE_URL") or remote.OPENAI, "OPENAI_BASE_URL")
    key = key or os.environ.get("OPENAI_API_KEY")
    return remote.OpenAICompatibleEmbedder(key, model, base)


def _ollama(model: str) -> Embedder:
    from houkai.embed import remote
    from houkai.embed.transport import address

    if given := os.environ.get("OLLAMA_BASE_URL"):
        base = address(given, "OLLAMA_BASE_URL")
    else:
        base = address(ollama_host(os.environ.get("OLLAMA_HOST", "")), "OLLAMA_HOST")
    # Whoever set the address for chat gave the part of Ollama that speaks OpenAI's protocol.
    return remote.OllamaEmbedder(model, base.removesuffix("/v1").removesuffix("/api"))


def ollama_host(value: str) -> str:
    """Return the address to ask for what OLLAMA_HOST may hold: what Ollama itself binds to."""
    value = value.strip().strip("\"'")
    if "://" not in value:
        host, slash, path = value.partition("/")
        if host.startswith(":"):
            host = f"127.0.0.1{host}"
        elif host.endswith("]") or ":" not in host:
            host = f"{host or '127.0.0.1'}:{OLLAMA_PORT}"
        value = f"http://{host}{slash}{path}"
    return value.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]")
