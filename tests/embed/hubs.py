"""A hub on loopback that answers what huggingface_hub asks for a file, and fails as it is told."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import NamedTuple

from local import LocalServer

REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"


class Seen(NamedTuple):
    """One request as it came in."""

    method: str
    path: str
    range: str | None
    authorization: str | None


class Hub(LocalServer):
    """Serves files of one revision: HEAD tells what a file is, GET redirects to a store of blobs.

    `failures` answer the next GETs of a blob in the place of the right answer, `heads` the next
    HEADs.
    """

    def __init__(self, revision: str, files: dict[str, bytes]) -> None:
        super().__init__(_Handler)
        self.revision = revision
        self.files = files
        self.etags = {name: hashlib.sha256(body).hexdigest() for name, body in files.items()}
        self.seen: list[Seen] = []
        self.failures: deque[Callable[[_Handler, bytes], None]] = deque()
        self.heads: deque[Callable[[_Handler, bytes], None]] = deque()
        self.released = Event()

    def asked(self, method: str = "GET") -> list[str | None]:
        """Return the ranges that blobs were asked for with."""
        return [one.range for one in self.seen if one.method == method and "/blob/" in one.path]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def do_HEAD(self) -> None:
        """Tell revision, size and hash of a file, and where its blob is."""
        self._note()
        name = self._name()
        if self.server.heads:
            self.server.heads.popleft()(self, b"")
        elif name is None:
            self.send(404, X_Error_Code=self._missing(), X_Repo_Commit=self.server.revision)
        else:
            self._redirect(name)

    def do_GET(self) -> None:
        """Redirect to the blob, or send it from where the range begins."""
        self._note()
        if self.path.startswith("/blob/"):
            self._blob(self.server.files[self.path.removeprefix("/blob/")])
        elif (name := self._name()) is None:
            self.send(404, X_Error_Code=self._missing())
        else:
            self._redirect(name)

    def _note(self) -> None:
        self.server.seen.append(
            Seen(self.command, self.path, self.headers["Range"], self.headers["Authorization"])
        )

    def _name(self) -> str | None:
        start = f"/{REPOSITORY}/resolve/{self.server.revision}/"
        name = self.path.removeprefix(start)
        return name if self.path.startswith(start) and name in self.server.files else None

    def _missing(self) -> str:
        if not self.path.startswith(f"/{REPOSITORY}/"):
            return "RepoNotFound"
        return "EntryNotFound" if self.server.revision in self.path else "RevisionNotFound"

    def _redirect(self, name: str) -> None:
        self.send(
            302,
            # The store of blobs is another host, as it is for the real hub.
            Location=f"{self.server.url.replace('127.0.0.1', 'localhost')}/blob/{name}",
            ETag='"another"',
            X_Repo_Commit=self.server.revision,
            X_Linked_Size=str(len(self.server.files[name])),
            X_Linked_Etag=f'"{self.server.etags[name]}"',
        )

    def _blob(self, body: bytes) -> None:
        start = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        if self.server.failures:
            self.server.failures.popleft()(self, body[start:])
        elif self.headers["Range"]:
            end = len(body)
            self.send(206, body[start:], Content_Range=f"bytes {start}-{end - 1}/{end}")
        else:
            self.send(200, body)

    def send(
        self, status: int, body: bytes = b"", length: int | None = None, **headers: str
    ) -> None:
        """Send a status, headers and a body, which may be shorter than it is said to be."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def cut(number: int) -> Callable[[_Handler, bytes], None]:
    """Send so many bytes and drop the connection."""

    def answer(handler: _Handler, rest: bytes) -> None:
        status = 206 if handler.headers["Range"] else 200
        handler.send(status, rest[:number], length=len(rest))
        handler.close_connection = True

    return answer


def stall(number: int) -> Callable[[_Handler, bytes], None]:
    """Send so many bytes and then nothing until the test is over."""

    def answer(handler: _Handler, rest: bytes) -> None:
        cut(number)(handler, rest)
        handler.wfile.flush()
        handler.server.released.wait(20)

    return answer


def status(code: int) -> Callable[[_Handler, bytes], None]:
    """Answer with a status."""
    return lambda handler, rest: handler.send(code)


def whole(handler: _Handler, rest: bytes) -> None:
    """Send the whole blob, whatever range was asked for."""
    handler.send(200, handler.server.files[handler.path.removeprefix("/blob/")])
