"""What must hold of every file, however its writers ended; and forked processes to end them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from houkai import MemoryStore
from houkai.ops import doctor
from houkai.testing import HashingEmbedder
from tests.support import contents, plain

DIM = 32
EMBEDDER = HashingEmbedder(DIM)
Contents = dict[str, dict[str, Any]]
Say = Callable[..., None]


def opened(path: Path, **options: Any) -> MemoryStore:
    """Return a store on a file, with vectors that cost little."""
    return MemoryStore(path, embedder=EMBEDDER, **options)


def assert_sound(path: Path) -> Contents:
    """Fail if anything in a file is damaged, lost or half done; return what it holds."""
    with opened(path) as store:
        held = contents(store)
        assert held == plain(store.state_at("now")), "the journal tells of another state"
        faults = [check for check in doctor.examine(path) if not check.ok and check.name != "model"]
        assert not faults, faults
    assert_alone(path)
    return held


def assert_alone(path: Path) -> None:
    """Fail if the log or another helper file lies beside a file that nobody has open."""
    beside = sorted(other.name for other in path.parent.glob(f"{path.name}*"))
    assert beside == [path.name]


class Child:
    """A forked process that runs a function and tells the test what it did, line by line.

    Fork before opening a store that is to stay open: a fork closes every connection.
    """

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads exist; none matters
            self.pid = os.fork()
        if not self.pid:
            os.close(reading)
            _run(work, arguments, writing)
        os.close(writing)
        self._lines = os.fdopen(reading, encoding="utf-8")
        self.status: int | None = None

    def __iter__(self) -> Iterator[Any]:
        """Yield what the child says until it ends."""
        for line in self._lines:
            if line.endswith("\n"):  # a killed child may leave half a line
                yield json.loads(line)

    def heard(self) -> Any:
        """Return the next thing the child says; fail with its traceback if it ended instead."""
        for said in self:
            if isinstance(said, dict) and "traceback" in said:
                raise AssertionError(said["traceback"])
            return said
        raise AssertionError("the child ended without a word")

    def kill(self) -> list[Any]:
        """Kill the child, as a power user would, and return what it had still said."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        said = list(self)
        self._wait()
        return said

    def end(self) -> list[Any]:
        """Wait for the child's own end and return what it said; fail with its traceback."""
        said = list(self)
        self._wait()
        for one in said:
            if isinstance(one, dict) and "traceback" in one:
                raise AssertionError(one["traceback"])
        assert self.status == 0
        return said

    def _wait(self) -> None:
        if self.status is None:
            self._lines.close()
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def _run(work: Callable[..., None], arguments: tuple[Any, ...], writing: int) -> None:
    """Run in the child; never return into the test that forked it."""
    status = 1

    def say(what: Any) -> None:
        os.write(writing, f"{json.dumps(what)}\n".encode())

    try:
        work(say, *arguments)
        status = 0
    except BaseException:
        say({"traceback": traceback.format_exc()})
    finally:
        os._exit(status)


def together(work: Callable[..., None], arguments: list[tuple[Any, ...]]) -> list[list[Any]]:
    """Run a function in several processes that begin at the same moment; return what each said."""
    gate, opening = os.pipe()

    def waiting(say: Say, *given: Any) -> None:
        os.close(opening)
        os.read(gate, 1)
        work(say, *given)

    children = [Child(waiting, *given) for given in arguments]
    os.close(gate)
    os.close(opening)
    return [child.end() for child in children]


class Helper:
    """A process forked now that does things with a file later, when it is told to."""

    def __init__(self, path: Path, deeds: Mapping[str, Callable[[Path], object]]) -> None:
        self._orders, giving = os.pipe()
        self._child = Child(_obey, path, deeds, self._orders, giving)
        self._orders = giving
        self._names = list(deeds)

    def do(self, name: str) -> None:
        """Have something done, and wait until it is."""
        os.write(self._orders, bytes([self._names.index(name)]))
        assert self._child.heard() == name

    def end(self) -> None:
        """Let the process end."""
        os.close(self._orders)
        self._child.end()


def _obey(
    say: Say, path: Path, deeds: Mapping[str, Callable[[Path], object]], orders: int, giving: int
) -> None:
    os.close(giving)
    names = list(deeds)
    while order := os.read(orders, 1):
        deeds[names[order[0]]](path)
        say(names[order[0]])
