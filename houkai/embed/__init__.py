"""Turn texts into unit vectors; numpy, onnxruntime and tokenizers wait for the first text."""

from __future__ import annotations

from functools import cache

from houkai.embed.adapt import adapt
from houkai.embed.minilm import MiniLM
from houkai.embed.port import Embedder, TokenEmbedder
from houkai.embed.spec import build_embedder

__all__ = ["Embedder", "MiniLM", "TokenEmbedder", "adapt", "build_embedder", "default"]


@cache
def default() -> MiniLM:
    """Return the process's one MiniLM, so that every store shares its sessions."""
    return MiniLM()
