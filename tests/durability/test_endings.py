"""However a process ends or forks, one file stays that holds every acknowledged write."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.durability.checks import Child, Say, assert_alone, assert_sound, opened
from tests.support import environment, run, start

HEAD = """
import multiprocessing, os, signal, sys, threading, time
from houkai import MemoryStore, StorageError
from houkai.testing import HashingEmbedder
path, embedder = sys.argv[1], HashingEmbedder(32)
def opened():
    return MemoryStore(path, embedder=embedder)
"""
ENDS = {
    "with an error": 'store.remember("there"); raise ValueError("as it happens")',
    "while threads write": """
def work():
    while True:
        os.write(1, f"{store.remember('there').id}\\n".encode())  # in one piece, unlike print
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
""",
    "by SIGTERM that it handles": """
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
store.remember("there")
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(20)
""",
    "after a clean close": 'store.remember("there"); store.close(); sys.exit(1)',
    "with several stores": """
more = [opened() for _ in range(3)]
for one in more:
    one.remember("there")
    one.recall("there")
sys.exit(1)
""",
}


@pytest.mark.parametrize("name", list(ENDS))
def test_a_program_that_ends_leaves_one_file(name: str, path: Path) -> None:
    """A log left beside the file is what a user's copy of the file then lacks."""
    process = start(HEAD + "store = opened()\n" + ENDS[name], str(path))
    out, _ = process.communicate(timeout=60)
    assert process.returncode == (0 if name == "while threads write" else 1)
    assert_alone(path)
    assert set(out.split()) <= set(assert_sound(path))


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_workers_leave_one_file(method: str, path: Path) -> None:
    """Workers of multiprocessing run no exit functions, and their parents hold stores open."""
    code = (
        HEAD
        + """
def work(number):
    global mine
    mine = opened()
    mine.remember(f"by worker {number}")
if __name__ == "__main__":
    store = opened()
    store.remember("by the parent")
    store.recall("by the parent")
    workers = [multiprocessing.get_context(sys.argv[2]).Process(target=work, args=(number,))
               for number in range(3)]
    for worker in workers:
        worker.start()
        store.remember("by the parent meanwhile")
    store.close()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0, worker.exitcode
"""
    )
    script = path.with_name("script.py")
    script.write_text(code)
    subprocess.run(
        [sys.executable, script, path, method], env=environment(), check=True, timeout=90
    )
    assert_alone(path)
    assert len(assert_sound(path)) == 7


def test_a_forked_child_keeps_what_it_writes_after_its_parent_closed(path: Path) -> None:
    """A child that believed in inherited locks would write into a log that the parent deletes."""
    store = opened(path)
    store.remember("before the fork")
    told, telling = os.pipe()

    def write_on(say: Say) -> None:
        os.close(telling)
        own = opened(path)
        own.remember("while the parent has it open")
        say("open")
        os.read(told, 1)
        for number in range(5):
            own.remember(f"after the parent closed {number}")
        say(own.count())

    child = Child(write_on)
    assert child.heard() == "open"
    store.close()
    os.close(telling)
    os.close(told)
    assert child.end() == [7]
    assert len(assert_sound(path)) == 7


def test_forks_between_writes_of_many_threads(path: Path) -> None:
    """A fork at any moment must find the parent's connections at rest, and let it go on."""
    code = (
        HEAD
        + """
store, told, enough = opened(), [], threading.Event()
told.append(store.remember("imports what Python must not be importing during a fork").id)
store.recall("imports")
def work():
    while not enough.is_set():
        told.append(store.remember("by the parent").id)
        store.recall("by the parent", touch=False)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(4):
    child = os.fork()
    if not child:
        own = opened()
        print(own.remember("by a child").id, flush=True)
        own.close()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
enough.set()
for thread in threads:
    thread.join()
print(*told, sep="\\n", flush=True)
"""
    )
    out = run(code, str(path))
    assert set(out.split()) == set(assert_sound(path))


def test_a_fork_inside_a_read_is_refused_the_file(path: Path) -> None:
    """Where a connection cannot be closed before the fork, the child must not open the file."""
    code = (
        HEAD
        + """
store = opened()
store.remember("before")
with store.read() as connection:
    connection.execute("select count(*) from memory").get
    child = os.fork()
    if not child:
        try:
            opened()
        except StorageError as error:
            assert "forked" in str(error) and error.hint, error
            os._exit(3)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert connection.execute("select count(*) from memory").get == 1
store.remember("after")
assert store.count() == 2
"""
    )
    run(code, str(path))
    assert len(assert_sound(path)) == 2


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts open files as Linux does")
def test_a_forked_child_closes_nothing_of_its_parents(path: Path) -> None:
    """Closing would end transactions in the memory that the parent's connections share."""
    code = (
        HEAD
        + """
import contextlib, gc
def still_open():
    links = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            links.append(os.readlink(f"/proc/self/fd/{number}"))
    return sum(link == sys.argv[1] for link in links)
store = opened()
store.remember("before")
with store.read() as connection:
    connection.execute("select count(*) from memory").get
    before = still_open()
    child = os.fork()
if not child:
    del connection, store
    gc.collect()
    os._exit(0 if still_open() == before else 4)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert store.count() == 1
"""
    )
    run(code, str(path))
    assert len(assert_sound(path)) == 1


def test_a_child_of_a_child_and_a_store_in_ram(path: Path) -> None:
    """Forks of forks, and stores that are no file, must end in the same clear way."""
    code = (
        HEAD
        + """
ram, store = MemoryStore(":memory:", embedder=embedder), opened()
ram.remember("kept"); store.remember("kept")
child = os.fork()
if not child:
    inner = os.fork()
    if inner:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]))
    for one in (ram, store):
        try:
            one.count()
        except StorageError as error:
            assert "forked" in str(error), error
        else:
            sys.exit(5)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert ram.count() == store.count() == 1
"""
    )
    run(code, str(path))
    assert len(assert_sound(path)) == 1


def test_a_program_started_from_here_is_no_fork(path: Path) -> None:
    """Starting a program must not cost the store its connections."""
    with opened(path) as store:
        store.remember("before")
        held = store.db._writer.connection
        assert held is not None
        subprocess.run([sys.executable, "-c", ""], check=True)
        assert store.db._writer.connection is held


def test_a_command_that_is_told_to_end_leaves_one_file(path: Path) -> None:
    """An agent's host ends commands by SIGTERM when they take long."""
    code = (
        HEAD
        + """
from houkai import settings
from houkai.cli import app
def wait(self):
    store.remember("there")
    print("stored", flush=True)
    time.sleep(20)
store = opened()
app._run = lambda: wait(None)
app.main()
"""
    )
    process = start(code, str(path))
    assert process.stdout is not None
    assert process.stdout.readline() == "stored\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert_alone(path)
    assert len(assert_sound(path)) == 1


def test_what_lies_beside_the_file_is_private_too(path: Path) -> None:
    """The log and a migration's copy hold the same memories as the file."""
    before = os.umask(0o022)
    try:
        with opened(path) as store:
            store.remember("secret")
            beside = sorted(path.parent.glob(f"{path.name}*"))
            assert len(beside) == 3
            assert {stat.S_IMODE(one.stat().st_mode) for one in beside} == {0o600}
    finally:
        os.umask(before)
