"""What is left when a store is closed, in every way that a program can end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from houkai import MemoryStore, StorageError
from houkai.testing import HashingEmbedder
from tests.conftest import Opener
from tests.support import folder, run, start, texts

ONE_FILE = ["memory.db"]


def test_closing_leaves_one_file(open_store: Opener, path: Path) -> None:
    """A file left beside the store is lost by whoever copies the store."""
    store = open_store()
    store.remember("hello")
    store.recall("hello")
    assert len(folder(path)) == 3
    store.close()
    assert folder(path) == ONE_FILE


def test_closing_after_reading_only_leaves_one_file(open_store: Opener, path: Path) -> None:
    """A listing must clean up as well as a write does."""
    open_store().close()
    store = open_store()
    store.list_recent()
    store.close()
    assert folder(path) == ONE_FILE


def test_the_last_of_several_stores_leaves_one_file(open_store: Opener, path: Path) -> None:
    """Two agents in one process end one after the other."""
    first, second = open_store(), open_store(collection="other")
    first.remember("one")
    second.remember("two")
    first.close()
    assert texts(second.list_recent()) == ["two"]
    second.close()
    assert folder(path) == ONE_FILE


def test_a_view_does_not_close_the_store(file_store: MemoryStore) -> None:
    """`with store.as_actor(...)` borrows the file, it does not own it."""
    with file_store.as_actor("guest") as view:
        view.remember("hello")
    assert file_store.count() == 1


def test_an_error_inside_with_closes_too(open_store: Opener, path: Path) -> None:
    """The file must be whole even when the program using it fails."""
    store = open_store()
    with pytest.raises(ZeroDivisionError), store:
        raise ZeroDivisionError(store.remember("hello"))
    assert folder(path) == ONE_FILE


def test_closing_twice_and_from_many_threads_is_harmless(open_store: Opener, path: Path) -> None:
    """Shutdown code runs more than once, and nobody wants its traceback."""
    store = open_store()
    store.remember("hello")
    store.recall("hello")
    errors: list[BaseException] = []

    def close() -> None:
        try:
            store.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=close) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    assert not errors
    assert folder(path) == ONE_FILE


USES: dict[str, Callable[[MemoryStore], object]] = {
    "remember": lambda s: s.remember("x"),
    "remember_many": lambda s: s.remember_many(["x"]),
    "edit": lambda s: s.edit("x", text="y"),
    "forget": lambda s: s.forget("x"),
    "nuke": lambda s: s.nuke(),
    "get": lambda s: s.get("x"),
    "find_id": lambda s: s.find_id("x"),
    "find_by_content_hash": lambda s: s.find_by_content_hash("x"),
    "list_recent": lambda s: s.list_recent(),
    "count": lambda s: s.count(),
    "recall": lambda s: s.recall("x"),
    "history": lambda s: s.history("x"),
    "journal": lambda s: s.journal(),
    "operation": lambda s: s.operation(1),
    "state_at": lambda s: s.state_at("now"),
    "get_at": lambda s: s.get_at("x", "now"),
    "undo": lambda s: s.undo(1),
    "undo_last": lambda s: s.undo_last(),
    "redo": lambda s: s.redo(),
    "stats": lambda s: s.stats(),
}


@pytest.mark.parametrize("name", list(USES))
def test_use_after_close_says_so(name: str, store: MemoryStore) -> None:
    """A closed store must name itself, not fail somewhere in a driver."""
    view = store.as_actor("guest")
    store.remember("hello")
    store.close()
    for closed in (store, view):
        with pytest.raises(StorageError, match=r"^The store is closed\.$"):
            USES[name](closed)


def test_a_recall_under_way_ends_well(open_store: Opener, path: Path) -> None:
    """Closing while another thread reads must end both, and leave one file."""
    store = open_store()
    store.remember_many([f"note {n}" for n in range(200)])
    started, problems = threading.Event(), []

    def read() -> None:
        try:
            while True:
                store.recall("note", k=20)
                started.set()
        except StorageError:
            return
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    started.wait(20)
    store.close()
    for thread in threads:
        thread.join(20)
    assert not problems
    assert folder(path) == ONE_FILE


def test_waiting_writes_are_done_before_the_end(open_store: Opener) -> None:
    """A write that was accepted is committed even when the store closes at once."""
    store = open_store()
    done: list[str] = []
    refused: list[StorageError] = []

    def write(n: int) -> None:
        try:
            done.append(store.remember(f"note {n}").text)
        except StorageError as error:
            refused.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(40)]
    for thread in threads:
        thread.start()
    store.close()
    for thread in threads:
        thread.join()
    assert len(done) + len(refused) == 40
    with open_store() as again:
        assert sorted(texts(again.list_recent(None))) == sorted(done)


def test_the_log_is_folded_in_when_it_is_quiet(open_store: Opener, path: Path) -> None:
    """A plain copy of an open file that rests must hold every memory."""
    store = open_store()
    store.remember("hello")
    log = path.with_name("memory.db-wal")
    deadline = time.monotonic() + 10
    while log.stat().st_size and time.monotonic() < deadline:
        time.sleep(0.05)
    assert log.stat().st_size == 0
    copy = path.with_name("copy.db")
    copy.write_bytes(path.read_bytes())
    with open_store(copy) as copied:
        assert texts(copied.list_recent()) == ["hello"]


def test_a_reader_elsewhere_does_not_hold_up_a_write(open_store: Opener) -> None:
    """Folding in the log while somebody reads once stopped every write for twenty seconds."""
    store, other = open_store(), open_store()
    with other.read() as snapshot:
        snapshot.execute("select count(*) from memory").fetchall()
        store.remember("one")
        time.sleep(1.2)
        began = time.monotonic()
        store.remember("two")
        assert time.monotonic() - began < 2


ENDINGS = {
    "falls off the end": "",
    "exits": "raise SystemExit(0)",
    "leaves readers": "reader = store.read(); reader.__enter__()",
}


@pytest.mark.parametrize("name", list(ENDINGS))
def test_a_program_that_never_closes_leaves_one_file(name: str, path: Path) -> None:
    """Most scripts end without closing anything."""
    code = f"""
import sys
from houkai import MemoryStore
from houkai.testing import HashingEmbedder
store = MemoryStore(sys.argv[1], embedder=HashingEmbedder(64))
store.remember("hello")
store.recall("hello")
{ENDINGS[name]}
"""
    run(code, str(path))
    assert folder(path) == ONE_FILE


def test_a_killed_program_loses_nothing(open_store: Opener, path: Path) -> None:
    """After kill -9 the next opening finds every acknowledged memory and cleans up."""
    code = """
import sys, time
from houkai import MemoryStore
from houkai.testing import HashingEmbedder
store = MemoryStore(sys.argv[1], embedder=HashingEmbedder(64))
store.remember("hello")
print("stored", flush=True)
time.sleep(60)
"""
    process = start(code, str(path))
    assert process.stdout is not None
    assert process.stdout.readline() == "stored\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with open_store() as store:
        assert texts(store.list_recent()) == ["hello"]
    assert folder(path) == ONE_FILE


FORK = """
import os, sys
from houkai import MemoryStore, StorageError
from houkai.testing import HashingEmbedder
path, embedder = sys.argv[1], HashingEmbedder(64)
store = MemoryStore(path, embedder=embedder)
store.remember("before")
child = os.fork()
if not child:
    for use in (store.count, lambda: store.remember("x"), store.undo_last):
        try:
            use()
        except StorageError as error:
            assert "fork" in str(error), error
        else:
            os._exit(1)
    with MemoryStore(path, embedder=embedder) as own:
        own.remember("child")
    store.close()
    sys.exit(0)  # runs what is registered for the end, with the parent's connections inherited
assert os.waitpid(child, 0)[1] == 0
store.remember("after")
assert sorted(m.text for m in store.list_recent()) == ["after", "before", "child"]
with store.read() as connection:
    assert connection.execute("pragma integrity_check").get == "ok"
store.close()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_opens_its_own(path: Path) -> None:
    """A child that used or closed inherited connections would break the parent's file."""
    run(FORK, str(path))
    assert folder(path) == ONE_FILE


def test_embedders_may_be_shared(tmp_path: Path) -> None:
    """One loaded model serves every store of a process, also after one of them closed."""
    embedder = HashingEmbedder(64)
    with MemoryStore(tmp_path / "a.db", embedder=embedder) as first:
        first.remember("hello")
    with MemoryStore(tmp_path / "b.db", embedder=embedder) as second:
        second.remember("hello")
        assert second.recall("hello")
