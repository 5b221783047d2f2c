"""The log stays short whoever reads, and where it cannot work the file goes without one."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest

from houkai import MemoryStore, StorageError
from houkai.storage import files, wal
from tests.durability.checks import Child, Say, assert_alone, assert_sound, opened, together
from tests.durability.deeds import attempt, choose
from tests.durability.faulty import Fault, faulty
from tests.durability.test_processes import write_or_read
from tests.support import contents

PAGE = 4_096 + 24
FRAMES = 60
"""A short limit, so that a test need not write 16 MiB to meet it."""


def log_of(path: Path) -> Path:
    """Return the path of a file's log."""
    return path.with_name(f"{path.name}-wal")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the log be folded and trimmed early."""
    monkeypatch.setattr(wal, "FOLD_PAGES", FRAMES)
    monkeypatch.setattr(wal, "TRIM_PAGES", 4 * FRAMES)


def counted(held: apsw.Connection) -> int:
    """Count the memories, which fixes the snapshot."""
    return int(held.execute("select count(*) from memory").get)


def keep_reading(store: MemoryStore, stop: threading.Event, reads: list[int]) -> None:
    """Read again and again, for 5 ms each."""
    while not stop.is_set():
        with store.read() as held:
            counted(held)
            time.sleep(0.005)
        reads.append(1)


def longest_log(path: Path, write: Callable[[], object], times: int) -> int:
    """Write again and again; return the longest the log ever was, in frames."""
    longest = 0
    for _ in range(times):
        write()
        longest = max(longest, log_of(path).stat().st_size // PAGE)
    return longest


def test_readers_that_never_all_pause_do_not_let_the_log_grow(short: None, path: Path) -> None:
    """SQLite starts its log anew only when nobody reads, which on a busy server is never."""
    stop, reads = threading.Event(), list[int]()
    with opened(path) as store, opened(path) as other:
        threads = [
            threading.Thread(target=keep_reading, args=(one, stop, reads))
            for one in (store, store, other)
        ]
        for thread in threads:
            thread.start()
        longest = longest_log(path, lambda: store.remember("once more"), 60)
        stop.set()
        for thread in threads:
            thread.join()
    assert len(reads) > 60
    assert longest < 10 * FRAMES
    assert_sound(path)


def read_elsewhere(say: Say, path: Path) -> None:
    """Read without a pause in another process, two snapshots overlapping."""
    with opened(path) as store:
        say("reading")
        with ExitStack() as first:
            counted(first.enter_context(store.read()))
            while True:
                with ExitStack() as second:
                    counted(second.enter_context(store.read()))
                    first.close()
                    time.sleep(0.002)
                    first = second.pop_all()
                time.sleep(0.002)


def test_readers_in_another_process_do_not_let_the_log_grow(short: None, path: Path) -> None:
    """A log that another agent's reading keeps from being trimmed fills the user's disk."""
    with opened(path) as store:
        store.remember("first")
    readers = [Child(read_elsewhere, path) for _ in range(2)]
    for reader in readers:
        assert reader.heard() == "reading"
    with opened(path) as store:
        longest = longest_log(path, lambda: store.remember("once more"), 60)
        for reader in readers:
            reader.kill()
        assert longest < 12 * FRAMES
    assert_sound(path)


def test_one_long_read_delays_no_write_for_long(short: None, path: Path) -> None:
    """While a snapshot is held for long the log must grow, not the wait of every writer."""
    with opened(path) as store:
        store.remember("first")
        with store.read() as held:
            before = counted(held)
            began = time.monotonic()
            for _ in range(40):
                store.remember("once more")
            took = time.monotonic() - began
            assert counted(held) == before
        assert took < 20
        grown = log_of(path).stat().st_size
        store.db.settle()
        assert log_of(path).stat().st_size == 0 < grown
    assert_sound(path)


def test_a_quiet_second_empties_the_log(path: Path) -> None:
    """A plain copy of a store at rest must be whole, though the store is open."""
    with opened(path) as store:
        made = store.remember("will be in the copy")
        deadline = time.monotonic() + 20
        while log_of(path).stat().st_size and time.monotonic() < deadline:
            time.sleep(0.05)
        copy = path.with_name("copy.db")
        copy.write_bytes(path.read_bytes())
        assert set(assert_sound(copy)) == {made.id}


def test_everything_works_without_a_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a network file system leaves no choice, the escape must not be second best."""
    monkeypatch.setenv("HOUKAI_JOURNAL", "delete")
    chance = random.Random(7)
    with opened(path) as store:
        for _ in range(60):
            attempt(choose(store, chance))
            assert not log_of(path).exists()
        held = contents(store)
        assert store.recall("build cache", k=3)
    assert_alone(path)
    assert assert_sound(path) == held


def test_processes_work_without_a_log(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a log readers and writers exclude each other, and must still all get their turn."""
    monkeypatch.setenv("HOUKAI_JOURNAL", "delete")
    with opened(path):
        pass
    together(write_or_read, [(path, me, 4) for me in range(9)])
    assert len(assert_sound(path)) == 8 * 4


def test_a_file_with_a_log_is_changed_over(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was moved to a network disk must leave its log mode before it is read there."""
    with opened(path) as store:
        store.remember("with a log")
    monkeypatch.setenv("HOUKAI_JOURNAL", "delete")
    with opened(path) as store:
        assert path.read_bytes()[18:20] == b"\1\1"
        assert len(store.list_recent()) == 1
    monkeypatch.delenv("HOUKAI_JOURNAL")
    with opened(path) as store:
        store.remember("with a log again")
        assert path.read_bytes()[18:20] == b"\2\2"
    assert len(assert_sound(path)) == 2


MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:5 / {here}/nfs rw shared:3 - nfs4 server:/export rw
24 22 0:6 / {here}/with\\040space rw - cifs //server/share rw
25 23 0:7 / {here}/nfs/local rw - tmpfs tmpfs rw
26 22 0:8 / {here}/ssh rw - fuse.sshfs host: rw
"""
PLACES = {
    "plain": None,
    "nfs": "nfs4",
    "nfs/deep/er": "nfs4",
    "nfs/local": None,
    "nfsother": None,
    "with space": "cifs",
    "ssh": "fuse.sshfs",
}


@pytest.mark.parametrize("place", list(PLACES))
def test_network_disks_are_told_apart(place: str, tmp_path: Path) -> None:
    """The innermost mount decides, whatever its path looks like."""
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS.format(here=tmp_path))
    folder = tmp_path / place
    folder.mkdir(parents=True)
    assert files.network_type(folder / "memory.db", mounts) == PLACES[place]
    link = tmp_path / "link.db"
    link.symlink_to(folder / "memory.db")
    assert files.network_type(link, mounts) == PLACES[place]


def test_a_network_disk_is_refused_with_a_way_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log whose memory two machines do not share loses writes without an error."""
    monkeypatch.setattr(files, "network_type", lambda _: "nfs4")
    with pytest.raises(StorageError, match="network file system") as caught:
        opened(path)
    assert "HOUKAI_JOURNAL=delete" in caught.value.hint
    assert not path.exists()
    monkeypatch.setenv("HOUKAI_JOURNAL", "delete")
    with opened(path) as store:
        store.remember("without a log")
    assert len(assert_sound(path)) == 1


def test_a_checkpoint_that_fails_undoes_no_commit(short: None, path: Path) -> None:
    """Folding inside a commit would make a write that stands look like one that failed."""
    with opened(path) as store:
        store.remember("first")
    with faulty() as disk, opened(path) as store:
        disk.fault = Fault("write", 1, stays=True, file=path.name)
        for number in range(20):
            store.remember(f"into the log {number}")
        assert disk.met > 0
        assert store.count() == 21
        disk.heal()
    assert len(assert_sound(path)) == 21
