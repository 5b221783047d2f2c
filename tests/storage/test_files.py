"""What a path may hold when a store is opened on it: what is refused stays as it was."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from houkai import Corrupt, Foreign, HoukaiError, MemoryStore, SchemaTooNew
from houkai.storage import migrate
from tests.conftest import Opener
from tests.support import folder, is_one_sentence, run, sha256, texts

Maker = Callable[[Path, bytes], object]


def good_file(open_store: Opener, path: Path) -> bytes:
    """Return the bytes of a closed file with some memories in it."""
    with open_store(path) as store:
        first = store.remember("alpha beta gamma", tags=["greek"], source="s", entities=["Alpha"])
        store.remember_many([f"{n} {'filler words ' * 40}" for n in range(20)])
        store.edit(first.id, text="alpha beta delta")
        store.forget(store.list_recent(1)[0].id)
    data = path.read_bytes()
    path.unlink()
    return data


def database(path: Path, *statements: str) -> None:
    """Make a SQLite file that is not houkai's."""
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement).fetchall()
    connection.close()


def stamped(path: Path, good: bytes, version: int) -> None:
    """Write a houkai file that claims another schema number."""
    path.write_bytes(good)
    database(path, f"pragma user_version = {version}")


REFUSED: dict[str, tuple[type[HoukaiError], Maker]] = {
    "a text": (Foreign, lambda p, _: p.write_bytes(b"just some words\n" * 40)),
    "a short text": (Foreign, lambda p, _: p.write_bytes(b"hi")),
    "zeros": (Foreign, lambda p, _: p.write_bytes(bytes(8192))),
    "a foreign database": (Foreign, lambda p, _: database(p, "create table t(a)")),
    "a foreign application": (Foreign, lambda p, _: database(p, "pragma application_id = 7")),
    "a foreign version": (Foreign, lambda p, _: database(p, "pragma user_version = 7")),
    "a foreign wal database": (
        Foreign,
        lambda p, _: database(p, "pragma journal_mode = wal", "create table t(a)"),
    ),
    "a folder": (Foreign, lambda p, _: p.mkdir()),
    "a pipe": (Foreign, lambda p, _: os.mkfifo(p)),
    "a newer schema": (SchemaTooNew, lambda p, good: stamped(p, good, migrate.head() + 1)),
    "no schema": (Corrupt, lambda p, good: stamped(p, good, 0)),
    "one byte": (Corrupt, lambda p, good: p.write_bytes(good[:1])),
    "fifty bytes": (Corrupt, lambda p, good: p.write_bytes(good[:50])),
    "one page": (Corrupt, lambda p, good: p.write_bytes(good[:4096])),
    "one half": (Corrupt, lambda p, good: p.write_bytes(good[: len(good) // 2])),
    "all but a byte": (Corrupt, lambda p, good: p.write_bytes(good[:-1])),
    "a header and noise": (
        Corrupt,
        lambda p, good: p.write_bytes(good[:100] + random.Random(1).randbytes(len(good) - 100)),
    ),
    "a header and zeros": (Corrupt, lambda p, good: p.write_bytes(good[:100].ljust(len(good)))),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused_files_stay_as_they_were(name: str, open_store: Opener, path: Path) -> None:
    """Touching a file that is not ours, or is damaged, takes its owner's last chance."""
    kind, make = REFUSED[name]
    make(path, good_file(open_store, path))
    before = sha256(path) if path.is_file() else None
    with pytest.raises(HoukaiError) as caught:
        open_store()
    assert type(caught.value) is kind, caught.value
    assert is_one_sentence(caught.value)
    assert path.name in str(caught.value)
    assert folder(path) == [path.name]
    assert before == (sha256(path) if path.is_file() else None)


def test_a_foreign_log_is_not_folded_in(open_store: Opener, path: Path) -> None:
    """Another program's crashed database must not be recovered by a mere look at it."""
    code = """
import apsw, os, sys
c = apsw.Connection(sys.argv[1])
c.pragma("journal_mode", "wal")
c.execute("create table t(a); insert into t values (1)")
os._exit(0)
"""
    run(code, str(path))
    log = path.with_name(path.name + "-wal")
    before = sha256(path), sha256(log)
    with pytest.raises(Foreign):
        open_store()
    assert (sha256(path), sha256(log)) == before


def read_all(store: MemoryStore) -> list[str]:
    """Read what a file holds through every path that a user takes."""
    found = texts(store.list_recent(None))
    for memory in store.list_recent(None):
        store.history(memory.id)
        store.get(memory.id)
    store.recall("alpha filler", k=50, touch=False)
    store.state_at("now")
    store.journal(None)
    store.stats()
    return found


def damaged_reading(open_store: Opener, path: Path) -> list[str] | None:
    """Return what a damaged file tells, None when it is refused as such; never change it."""
    before, told, refusal = sha256(path), None, None
    try:
        with open_store() as store:
            told = read_all(store)
    except (Corrupt, Foreign) as error:
        refusal = error
    assert refusal is None or is_one_sentence(refusal)
    assert sha256(path) == before
    assert folder(path) == [path.name]
    return told


def test_every_zeroed_page_is_noticed_or_harmless(open_store: Opener, path: Path) -> None:
    """A lost page must end in a sentence, never in a traceback or in fewer memories."""
    good = good_file(open_store, path)
    path.write_bytes(good)
    with open_store() as store:
        whole = read_all(store)
    noticed = 0
    for start in range(4096, len(good), 4096):
        path.write_bytes(good[:start] + bytes(4096) + good[start + 4096 :])
        told = damaged_reading(open_store, path)
        noticed += told is None
        assert told in (None, whole), f"page {start // 4096 + 1} changed the answer"
    assert noticed > len(good) // 4096 // 2


@pytest.mark.parametrize("seed", range(30))
def test_noise_ends_in_a_sentence(seed: int, open_store: Opener, path: Path) -> None:
    """Bytes a disk turned over may be unreadable, but reading them must not crash or write."""
    chance = random.Random(seed)
    data = bytearray(good_file(open_store, path))
    for _ in range(chance.choice([1, 30, 3000])):
        data[chance.randrange(100, len(data))] = chance.randrange(256)
    path.write_bytes(data)
    damaged_reading(open_store, path)
