"""The MCP door: tools for an agent over stdin and stdout.

It answers `initialize` and `tools/list` before any model or file is touched; the first call opens
the store. Stdout carries the protocol alone from the first line of `main` on.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from houkai.doors.pipes import Pipes, claim

if TYPE_CHECKING:
    from houkai.store import MemoryStore

SESSION_VARIABLES: Final = ("HOUKAI_SESSION", "CLAUDE_CODE_SESSION_ID")
"""Where a client tells which of its sessions started this server."""


class LazyStore:
    """A store that the first call opens, and `close` leaves as one file."""

    def __init__(self, open_store: Callable[[], MemoryStore]) -> None:
        self._open = open_store
        self._lock = threading.Lock()
        self._store: MemoryStore | None = None
        self.closing = False

    def __call__(self) -> MemoryStore:
        """Return the store. Raises what opening it raises, each time anew."""
        with self._lock:
            if self._store is None:
                self._store = self._open()
            return self._store

    def close(self) -> None:
        """Commit what waits and close the file, if one was opened."""
        self.closing = True
        with self._lock:
            if self._store is not None:
                self._store.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve MCP over stdin and stdout until the client hangs up, and return the exit status."""
    pipes = claim()
    options = _parser().parse_args(arguments)
    store = LazyStore(lambda: _open(options.db, options.collection))
    _leave_on_signals(store)
    try:
        _serve(store, options.tools == "all", pipes)
    finally:
        store.close()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="houkai-mcp", description="Serve a memory file to an agent over MCP on stdin/stdout."
    )
    parser.add_argument("--db", help="the memory file")
    parser.add_argument("--collection", help="the collection to work in")
    parser.add_argument(
        "--tools", choices=("core", "all"), default="core", help="which tools to offer"
    )
    return parser


def _open(db: str | None, collection: str | None) -> MemoryStore:
    from houkai.store import MemoryStore

    session = next((os.environ[name] for name in SESSION_VARIABLES if os.environ.get(name)), None)
    store = MemoryStore(db, collection, actor="mcp")
    store.session = session
    return store


def _leave_on_signals(store: LazyStore) -> None:
    """Close the file before a signal ends the process, whatever its threads wait for."""

    def leave(number: int, _frame: Any) -> None:
        if store.closing:
            return  # the file is being closed, and the process ends then
        store.close()
        os._exit(130 if number == signal.SIGINT else 0)

    for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, leave)


def _serve(store: LazyStore, everything: bool, pipes: Pipes) -> None:
    # What is imported here lives as long as the process; looking for garbage in it costs 0.1 s.
    gc.disable()
    import anyio

    from houkai.doors.stdio import serve
    from houkai.doors.tools import server_of

    gc.freeze()
    gc.enable()
    _log_discreetly()
    anyio.run(serve, server_of(store, everything), pipes)


def _log_discreetly() -> None:
    from houkai.doors.tools import Discreet

    handler = logging.StreamHandler()
    handler.setFormatter(Discreet("houkai-mcp: %(levelname)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


if __name__ == "__main__":
    sys.exit(main())
