"""Embedding providers on loopback that speak the real protocols, and fail as they are told."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from local import LocalServer

from houkai.testing import HashingEmbedder

KEY = "sk-houkai-0123456789abcdef"
Failure = Callable[["Handler"], None]


class Asked(NamedTuple):
    """One request as it came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Provider(LocalServer):
    """Answers POST /v1/embeddings like OpenAI and POST /api/embed like Ollama.

    `failures` are answers to the next requests in the place of the right one; `change` alters the
    vectors of a right one; a text of more than `longest` characters is refused as too long.
    """

    def __init__(self, dim: int = 64) -> None:
        super().__init__(Handler)
        self.embedder = HashingEmbedder(dim)
        self.asked: list[Asked] = []
        self.failures: deque[Failure] = deque()
        self.change: Callable[[list[Any]], Any] = lambda vectors: vectors
        self.longest = 1_000_000
        self.released = threading.Event()

    def vectors(self, texts: list[str]) -> list[list[float]]:
        """Return what the model makes of texts, of no particular length."""
        return [[3.0 * float(x) for x in self.embedder.query(text)] for text in texts]


class Handler(BaseHTTPRequestHandler):
    """One connection, kept open as real servers do."""

    protocol_version = "HTTP/1.1"
    server: Provider

    def do_POST(self) -> None:
        """Answer a request, or fail as told."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(Asked(self.path, dict(self.headers), body))
        if self.server.failures:
            self.server.failures.popleft()(self)
        elif any(len(text) > self.server.longest for text in body["input"]):
            self.send(400, {"error": {"message": "This model's maximum context length is 8"}})
        else:
            self.answer(self.server.change(self.server.vectors(body["input"])))

    def answer(self, vectors: Any) -> None:
        """Send vectors in the form of the protocol that was spoken."""
        if self.path == "/api/embed":
            self.send(200, {"model": "m", "embeddings": vectors})
        elif self.path == "/v1/embeddings":
            rows = [
                {"object": "embedding", "index": at, "embedding": vector}
                for at, vector in enumerate(vectors)
            ]
            self.send(200, {"object": "list", "data": rows[::-1], "model": "m"})
        else:
            self.send(404, {"error": "404 page not found"})

    def send(self, status: int, body: Any, **headers: str) -> None:
        """Send a status and JSON, or bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


def status(code: int, body: Any = b"{}", **headers: str) -> Failure:
    """Answer with a status."""
    return lambda handler: handler.send(code, body, **headers)


def hang(handler: Handler) -> None:
    """Say nothing until the test is over."""
    handler.server.released.wait(20)
    handler.close_connection = True


def hang_up(handler: Handler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


def trickle(handler: Handler) -> None:
    """Begin to answer, a byte at a time, without end."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    while not handler.server.released.wait(0.03):
        handler.wfile.write(b" ")
        handler.wfile.flush()


@contextmanager
def running(provider: Provider) -> Iterator[Provider]:
    """Serve until the block ends."""
    thread = threading.Thread(target=provider.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.released.set()
        provider.shutdown()
        provider.server_close()
        thread.join()
