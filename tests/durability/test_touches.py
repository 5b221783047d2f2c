"""Access counts: a hint that waits in memory, but one that adds up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from houkai import MemoryStore
from houkai.storage import connection as sqlite
from houkai.storage import writer
from tests.durability.checks import opened


@pytest.fixture
def store(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    """Yield a store whose writer rests only when it is told to."""
    monkeypatch.setattr(writer, "QUIET_S", 1_000)
    with opened(path) as store:
        yield store


def written(store: MemoryStore, id: str) -> tuple[int, float] | None:
    """Return the count and the last access in the file."""
    with store.read() as held:
        found: tuple[int, float] | None = held.execute(
            "select count, last_at from touch where id = ?", (id,)
        ).get
    return found


def test_an_access_while_accesses_are_written_is_written_next(store: MemoryStore) -> None:
    """Forgetting all that waits once some is written would lose what came in between."""
    id = store.remember("tea").id
    commits: list[int] = []

    def committing() -> bool:
        commits.append(1)
        if len(commits) == 2:  # the first is of the write that sets this hook
            store.touches.add([id], 20.0)
        return False

    store.touches.add([id], 10.0)
    store.db.write(lambda held: held.set_commit_hook(committing))
    store.db.settle()
    assert written(store, id) == (1, 10.0)
    assert store.touches.pending(id) == (1, 20.0)
    store.db.settle()
    assert written(store, id) == (2, 20.0)


def test_accesses_that_cannot_be_written_now_are_written_later(
    store: MemoryStore, path: Path
) -> None:
    """A count taken out of memory before it is on disk is lost to whoever holds the file."""
    id = store.remember("tea").id
    store.touches.add([id], 10.0)
    rival = sqlite.connect(sqlite.uri(path))
    rival.execute("begin immediate")
    store.db.settle()
    assert store.touches.pending(id) == (1, 10.0)
    rival.execute("rollback")
    rival.close()
    store.db.settle()
    assert written(store, id) == (1, 10.0)


def test_the_last_access_is_the_latest_whoever_writes_last(store: MemoryStore, path: Path) -> None:
    """A process that writes its old accesses late must not take back a newer moment."""
    id = store.remember("tea").id
    with opened(path) as other:
        other.touches.add([id], 10.0)
        store.touches.add([id], 20.0)
        store.db.settle()
        other.db.settle()
    assert written(store, id) == (2, 20.0)
