"""Several processes on one file: none is refused, nothing is lost, and no change is taken back."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest

from houkai import Diverged, MemoryStore, NotFound
from houkai.errors import SchemaTooNew
from houkai.storage import migrate, vectors
from tests.durability.checks import Helper, Say, assert_sound, opened, together
from tests.support import contents, texts

TURNS = 15


@pytest.fixture
def hub(path: Path) -> str:
    """Return the id of a memory that every process works on."""
    with opened(path) as store:
        return store.remember("the hub that all of them change", source="start").id


def edit_on(say: Say, path: Path, id: str, field: str, values: list[Any]) -> None:
    """Change one field again and again."""
    with opened(path, actor=field) as store:
        for value in values:
            assert getattr(store.edit(id, **{field: value}), field) == value


def recall_on(say: Say, path: Path, turns: int) -> None:
    """Recall and so touch memories again and again, writing the counts each time."""
    with opened(path) as store:
        for _ in range(turns):
            assert store.recall("the hub that all of them change", k=3)
            store.db.settle()


def _edits(path: Path, id: str) -> list[tuple[Any, ...]]:
    return [
        (path, id, "importance", [n / 100 for n in range(TURNS)]),
        (path, id, "tags", [[f"tag {n}"] for n in range(TURNS)]),
        (path, id, "source", [f"source {n}" for n in range(TURNS)]),
        (path, id, "text", [f"the hub that all of them change {n}" for n in range(TURNS)]),
    ]


def any_of(say: Say, *given: Any) -> None:
    """Run the kind of work that the arguments are for."""
    (recall_on if len(given) == 2 else edit_on)(say, *given)


def test_edits_and_recalls_take_nothing_back(hub: str, path: Path) -> None:
    """A recall or an edit that writes what it read before would undo what others did meanwhile."""
    together(any_of, [*_edits(path, hub), (path, TURNS), (path, TURNS)])
    with opened(path) as store:
        memory = store.get(hub)
        assert memory is not None
        assert memory.access_count == 2 * TURNS
        assert memory.importance == (TURNS - 1) / 100
        assert memory.tags == [f"tag {TURNS - 1}"]
        assert memory.source == f"source {TURNS - 1}"
        assert memory.text.endswith(f"change {TURNS - 1}")
        assert len(store.history(hub)) == 1 + 4 * TURNS
    assert_sound(path)


def link_on(say: Say, path: Path, hub: str, me: str) -> None:
    """Link the hub to memories of one's own."""
    with opened(path, actor=me) as store:
        for number in range(TURNS):
            other = store.remember(f"{me} {number}")
            store.link(hub, other.id)


def test_links_of_several_processes_all_stay(hub: str, path: Path) -> None:
    """Links kept in one field of a memory would be lost when two processes add to it."""
    together(link_on, [(path, hub, f"linker {n}") for n in range(3)])
    with opened(path) as store:
        memory = store.get(hub)
        assert memory is not None
        assert len({link.to for link in memory.links}) == 3 * TURNS
    assert_sound(path)


def forget_or_edit(say: Say, path: Path, ids: list[str], forgets: bool) -> None:
    """Go through memories and forget each one, or edit it while it is there."""
    with opened(path) as store:
        for id in ids:
            if forgets:
                assert store.forget(id)
                continue
            try:
                store.edit(id, importance=0.9)
            except NotFound:
                say(id)


def test_what_is_forgotten_does_not_come_back(path: Path) -> None:
    """An edit that writes a memory anew would bring back what another process has forgotten."""
    with opened(path) as store:
        ids = [m.id for m in store.remember_many([f"memory {n}" for n in range(2 * TURNS)])]
    _, refused = together(forget_or_edit, [(path, ids, True), (path, ids[::-1], False)])
    with opened(path) as store:
        assert contents(store) == {}
        for id in ids:
            ops = [entry.op for entry in store.history(id)]
            assert ops == ["remember_many", *(["edit"] if id not in refused else []), "forget"]
    assert_sound(path)


def undo_all(say: Say, path: Path, operations: list[int]) -> None:
    """Undo operations that another process undoes too."""
    with opened(path) as store:
        for operation in operations:
            try:
                say(store.undo(operation).undoes)
            except Diverged:
                continue


def test_an_operation_is_undone_once(path: Path) -> None:
    """Two processes that undo the same operation must not both believe that they did."""
    with opened(path) as store:
        for number in range(TURNS):
            store.remember(f"memory {number}")
        operations = [entry.operation for entry in store.journal(None)]
    said = together(undo_all, [(path, operations), (path, operations)])
    assert sorted(said[0] + said[1]) == sorted(operations)
    assert assert_sound(path) == {}


def write_on(say: Say, path: Path, me: int, writes: int) -> None:
    """Write, and say how long the longest write took."""
    longest = 0.0
    with opened(path, actor=f"writer {me}") as store:
        for number in range(writes):
            began = time.monotonic()
            store.remember(f"process {me} writes fact {number}")
            longest = max(longest, time.monotonic() - began)
    say(longest)


def read_on(say: Say, path: Path, me: int, writes: int) -> None:
    """Read until everything is written; what is seen once stays, and is whole."""
    chance = random.Random(me)
    seen: set[str] = set()
    with opened(path) as store:
        while len(seen) < 8 * writes:
            now = {memory.id for memory in store.list_recent(None)}
            assert seen <= now
            seen = now
            store.recall(f"fact {chance.randrange(writes)}", k=3, touch=False)
            assert len(store.state_at("now")) >= len(seen)


def write_or_read(say: Say, path: Path, me: int, writes: int) -> None:
    """Take one of both parts."""
    (write_on if me < 8 else read_on)(say, path, me, writes)


def crowd(path: Path, writes: int) -> float:
    """Let 8 processes write beside 4 that read; return the longest wait for a write."""
    with opened(path):
        pass
    said = together(write_or_read, [(path, me, writes) for me in range(12)])
    assert len(assert_sound(path)) == 8 * writes
    return float(max(longest for one in said for longest in one))


def test_eight_processes_write_beside_four_that_read(path: Path) -> None:
    """ "Database is locked" is what users of every comparable store report."""
    crowd(path, 12)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_eight_processes_write_much(path: Path) -> None:
    """Starvation shows only when all of them write for a while."""
    assert crowd(path, 500) < 20


def rebuild(path: Path) -> None:
    """Drop and make anew the table that vectors are searched in."""
    with opened(path) as store:
        store.db.write(vectors.rebuild)


def forget_half(path: Path) -> None:
    """Forget every second memory."""
    with opened(path) as store:
        for memory in store.list_recent(None)[::2]:
            store.forget(memory.id)


def edit_all(path: Path) -> None:
    """Change every text."""
    with opened(path) as store:
        for memory in store.list_recent(None):
            store.edit(memory.id, text=f"edited {memory.text}")


def nuke(path: Path) -> None:
    """Delete everything."""
    with opened(path) as store:
        store.nuke()


def refill(path: Path) -> None:
    """Store other memories."""
    with opened(path) as store:
        store.remember_many([f"a new fact number {n}" for n in range(400)])


def upgrade(path: Path) -> None:
    """Open the file with a newer houkai, whose schema has one more column."""
    steps = (*migrate.steps(), (migrate.head() + 1, "alter table memory add column mood text"))
    migrate.steps = lambda: steps  # type: ignore[assignment]
    opened(path).close()


DEEDS = {deed.__name__: deed for deed in (forget_half, rebuild, edit_all, nuke, refill, upgrade)}


def seen_by(store: MemoryStore) -> tuple[set[str], set[str]]:
    """Return what a store lists and what it recalls."""
    listed = set(texts(store.list_recent(None)))
    hits = store.recall("a fact number of some kind", k=1_000, touch=False)
    return listed, {hit.memory.text for hit in hits}


def test_an_open_store_goes_on_through_whatever_others_do(path: Path) -> None:
    """A server that must be restarted after another process's delete loses its users' trust."""
    helper = Helper(path, DEEDS)
    with opened(path) as store:
        store.remember_many([f"fact number {n}" for n in range(400)])
        assert len(seen_by(store)[0]) == 400
        for name in DEEDS:
            helper.do(name)
            listed, recalled = seen_by(store)
            assert listed == recalled
            with opened(path) if name != "upgrade" else store as other:
                assert listed == set(texts(other.list_recent(None)))
            if name == "upgrade":
                break
            store.remember("a fact number written by the store that stays open")
    helper.end()
    assert len(listed) == 401


def test_a_newer_schema_is_read_and_not_written(path: Path) -> None:
    """An old process that goes on writing would leave a newer schema's rules unkept."""
    helper = Helper(path, DEEDS)
    with opened(path) as store:
        store.remember("before")
        helper.do("upgrade")
        assert texts(store.list_recent()) == ["before"]
        assert store.recall("before")
        with pytest.raises(SchemaTooNew, match="meanwhile"):
            store.remember("after")
    helper.end()
