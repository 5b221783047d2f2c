"""kill -9 at any moment: what was acknowledged is there, and everything agrees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.agreement import disagreements
from tests.conftest import Opener
from tests.support import folder, run

ROUNDS = 20

DRIVER = """
import os, random, signal, sys, time
import numpy
from houkai import MemoryStore
from houkai.testing import HashingEmbedder
path, rounds, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
embedder = HashingEmbedder(64)

def work(number, out):
    chance = random.Random(number)
    store = MemoryStore(path, embedder=embedder)
    ids = [memory.id for memory in store.list_recent(40)]
    say = lambda word, id: os.write(out, f"{word} {id}\\n".encode())
    n = 0
    while True:
        n += 1
        kind = chance.random()
        text = f"round {number} note {n} {chance.random()}"
        if kind < 0.4 or len(ids) < 3:
            ids.append(store.remember(text, tags=[f"t{n % 5}"], source="s").id)
            say("there", ids[-1])
        elif kind < 0.55:
            made = [memory.id for memory in store.remember_many([f"{text} {i}" for i in range(20)])]
            ids += made
            say("there", " ".join(made))
        elif kind < 0.7:
            store.edit(chance.choice(ids), text=text, importance=chance.random())
        elif kind < 0.8:
            store.link(*chance.sample(ids, 2))
        elif kind < 0.9:
            gone = ids.pop(chance.randrange(len(ids)))
            say("leaving", gone)
            store.forget(gone)
            say("gone", gone)
        else:
            store.recall(text, k=3)

def collect(source):
    data = b""
    while more := os.read(source, 65536):
        data += more
    return data.decode()

for number in range(rounds):
    source, out = os.pipe()
    child = os.fork()
    if not child:
        os.close(source)
        work(seed + number, out)
    os.close(out)
    first = os.read(source, 65536).decode()
    time.sleep(random.Random(seed * 1000 + number).uniform(0.0, 0.15))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print(first + collect(source), end="")
    print("killed", number)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("seed", [0])
def test_a_killed_writer_loses_nothing_acknowledged(
    seed: int, path: Path, open_store: Opener
) -> None:
    """An agent is killed by its user in the middle of a write, twenty times in a row."""
    check(run(DRIVER, str(path), str(ROUNDS), str(seed)), open_store)
    assert folder(path) == ["memory.db"]


@pytest.mark.soak
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("seed", range(1, 5))
def test_many_killed_writers_lose_nothing(seed: int, path: Path, open_store: Opener) -> None:
    """The same, long enough to meet the rare moments."""
    check(run(DRIVER, str(path), "50", str(seed * 1000)), open_store)


def check(said: str, open_store: Opener) -> None:
    """Compare what the killed children acknowledged with what the file holds."""
    there: set[str] = set()
    gone: set[str] = set()
    for line in said.splitlines():
        word, *ids = line.split()
        if word == "there":
            there.update(ids)
        elif word == "leaving":
            there.difference_update(ids)
        elif word == "gone":
            gone.update(ids)
    assert len(there) > 100, said[-1000:]
    with open_store() as store:
        held = {memory.id for memory in store.list_recent(None)}
        assert there <= held, f"{len(there - held)} acknowledged memories are lost"
        assert not gone & held
        assert disagreements(store) == []
        assert store.recall("round note", k=5)
