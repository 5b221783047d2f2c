"""The two pipes to an MCP client, kept from everything else in the process."""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from typing import NamedTuple


class Pipes(NamedTuple):
    """Descriptors of the client's requests and of our answers."""

    source: int
    sink: int


def claim() -> Pipes:
    """Take stdin and stdout: whoever reads now finds the end, whoever prints does so on stderr.

    It works on descriptors, so that a C library's or a child's output misses the protocol too,
    and is never given back, so that words at exit miss it as well.
    """
    _open_closed_ones()
    pipes = Pipes(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return pipes


def _open_closed_ones() -> None:
    """Give each standard descriptor a file, lest the next one opened becomes stdout."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def lines(source: int) -> Iterator[bytes]:
    """Yield lines until the client hangs up."""
    with open(source, "rb", closefd=False) as stream:
        yield from stream


def abandoned(sink: int) -> bool:
    """Tell whether nobody can read our answers any more, as far as the system can tell."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(sink, 0)
    return bool(poll.poll(0))


def write(sink: int, data: bytes) -> None:
    """Write all of `data`. Raises OSError when nobody reads any more."""
    left = memoryview(data)
    while left:
        left = left[os.write(sink, left) :]
