"""What the servers have in common that tests put in the place of those in the network."""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any


class LocalServer(ThreadingTCPServer):
    """A server of this machine, each of whose connections has a thread."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def url(self) -> str:
        """Return the address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell of any failure, but for a client that hangs up: many tests are about that."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)
