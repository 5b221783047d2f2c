"""Any sequence of operations, undone and redone in any order, against a model in plain Python."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from houkai import Diverged, MemoryStore
from houkai.storage import connection as sqlite
from houkai.testing import HashingEmbedder
from tests.agreement import disagreements
from tests.properties.curating import Curation, known
from tests.properties.drafts import expected, fields, mark, shown
from tests.properties.model import Key, Model, Pair, Refused, memories_of
from tests.properties.witness import Witness
from tests.support import Clock, contents, plain

EMBEDDER = HashingEmbedder(64)
RELATIONS = ["related", "refines", "causes"]


class Machine(Curation):
    """Two handles on one file, a clock that jumps, and the model of what must come of it."""

    ids = Curation.ids

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "memory.db"
        self.clock, self.model, self.witness = Clock(), Model(), Witness()
        self.connect, self.seen, self.steps = sqlite.connect, 0, 0
        sqlite.connect = self.watched
        self.open()

    def watched(self, *args: Any, **more: Any) -> Any:
        """Open a connection that the witness listens to."""
        connection = self.connect(*args, **more)
        self.witness.watch(connection)
        return connection

    def open(self) -> None:
        """Open both handles."""
        self.handles = [
            MemoryStore(self.path, embedder=EMBEDDER, clock=self.clock, durability="normal")
            for _ in range(2)
        ]

    @property
    def store(self) -> MemoryStore:
        """Return one handle after the other."""
        self.steps += 1
        return self.handles[self.steps // 2 % 2]

    def made(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return what must come of storing a memory now."""
        return expected(given, self.clock.now, self.model)

    @initialize(target=ids, given=fields)
    def begin(self, given: dict[str, Any]) -> Any:
        """Start with a memory, so that there is something to change."""
        return self.remember(given)

    @rule(target=ids, given=fields)
    def remember(self, given: dict[str, Any]) -> Any:
        """Store one memory."""
        memory = self.store.remember(**given)
        self.model.apply(
            "remember",
            self.clock.now,
            {("memory", memory.id): expected(given, self.clock.now, self.model)},
        )
        return memory.id

    @rule(target=ids, many=st.lists(fields, max_size=4), size=st.integers(1, 3))
    def remember_many(self, many: list[dict[str, Any]], size: int) -> Any:
        """Store several memories in one or more batches."""
        made = self.store.remember_many(many, batch_size=size)
        batch = len(self.model.operations) if len(many) > size else None
        for start in range(0, len(many), size):
            after: dict[Any, Any] = {}
            for memory, given in zip(made[start:][:size], many[start:][:size], strict=True):
                image = self.made(given)
                same = [one for one in after.values() if one["source"] == image["source"]]
                if same and image["source"] is not None:
                    image["position"] = same[-1]["position"] + 1
                after["memory", memory.id] = image
            self.model.apply("remember_many", self.clock.now, after, batch)
        return multiple(*(memory.id for memory in made))

    @rule(id=ids, given=fields)
    def edit(self, id: str, given: dict[str, Any]) -> None:
        """Change some fields of a memory."""
        image = self.model.rows.get(("memory", id))
        if image is None:
            return
        cleared = {"source", "author"}
        changes = {
            name: value for name, value in given.items() if value is not None or name in cleared
        }
        self.store.edit(id, **changes)
        for name in ("tags", "entities"):
            if name in changes:
                changes[name] = list(dict.fromkeys(changes[name]))
        if "text" in changes:
            changes["text"] = changes["text"].strip()
        self.model.apply("edit", self.clock.now, {("memory", id): {**image, **changes}})

    @rule(id=consumes(ids))
    def forget(self, id: str) -> None:
        """Delete a memory that may be gone already."""
        there = ("memory", id) in self.model.rows
        assert self.store.forget(id) is there
        if there:
            self.model.apply("forget", self.clock.now, self.model.forgetting([id]))

    @rule()
    def nuke(self) -> None:
        """Delete everything."""
        present = [key[1] for key in self.model.rows if key[0] == "memory"]
        assert self.store.nuke() == len(present)
        everything = {key: None for key in self.model.rows if key[0] != "trash"}
        self.model.apply("nuke", self.clock.now, everything)

    @rule(src=ids, dst=ids, rel=st.sampled_from(RELATIONS))
    def link(self, src: str, dst: str, rel: str) -> None:
        """Link two memories that are there."""
        if src == dst or not {("memory", src), ("memory", dst)} <= self.model.rows.keys():
            return
        key = ("link", src, rel, dst)
        assert self.store.link(src, dst, rel) is (key not in self.model.rows)
        at = self.model.next_at(self.clock.now)
        image = self.model.rows.get(key, {"created_at": at})
        self.model.apply("link", self.clock.now, {key: image})

    @rule(src=ids, dst=ids)
    def unlink(self, src: str, dst: str) -> None:
        """Remove all links from one memory to another."""
        gone = {
            key: None for key in self.model.rows if (key[0], key[1], key[-1]) == ("link", src, dst)
        }
        assert self.store.unlink(src, dst) == len(gone)
        self.model.apply("unlink", self.clock.now, gone)

    @rule(old=ids, new=ids)
    def supersede(self, old: str, new: str) -> None:
        """Hide a memory behind another, in one operation on two kinds of rows."""
        image = self.model.rows.get(("memory", old))
        if old == new or image is None or ("memory", new) not in self.model.rows:
            return
        mark(self.store, old, new)
        at = self.model.next_at(self.clock.now)
        hidden = {**image, "superseded_by": new, "superseded_at": at}
        after = {("memory", old): hidden, ("link", new, "supersedes", old): {"created_at": at}}
        self.model.apply("supersede", self.clock.now, after)

    @rule(back=st.integers(0, 30))
    def undo(self, back: int) -> None:
        """Undo any operation, also an undo, also one that is undone already."""
        there = [operation.seq for operation in self.model.operations if operation.there]
        if not there:
            return
        seq = there[-1 - back % len(there)]
        self.try_undo(seq, lambda: self.store.undo(seq))

    @rule()
    def undo_last(self) -> None:
        """Step one operation back."""
        self.try_undo(self.model.undoable(), self.store.undo_last)

    @rule()
    def redo(self) -> None:
        """Step forward again."""
        self.try_undo(self.model.redoable(), self.store.redo)

    def try_undo(self, seq: int | None, call: Any) -> None:
        """Compare an undo with the model's: both succeed or both refuse."""
        if seq is None:
            assert call() is None
            return
        try:
            self.model.undo(seq, self.clock.now)
        except Refused:
            refused = False
            try:
                call()
            except Diverged:
                refused = True
            assert refused, f"operation {seq} was undone over later changes"
        else:
            entry = call()
            assert entry.operation == len(self.model.operations)
            assert entry.undoes == max(self.model.operations[-1].targets)

    @rule(seconds=st.sampled_from([10, 1000, 86_400, -5, -995, -100_005]))
    def move_the_clock(self, seconds: int) -> None:
        """Let time pass, or set the clock back as a machine does that meets a time server."""
        self.clock.advance(seconds)

    @rule()
    def reopen(self) -> None:
        """Close both handles and open the file again."""
        for handle in self.handles:
            handle.close()
        assert [entry.name for entry in self.path.parent.iterdir()] == ["memory.db"]
        self.open()

    @precondition(lambda self: self.model.moments)
    @rule(pick=st.integers(0, 1000), id=ids)
    def ask_the_past(self, pick: int, id: str) -> None:
        """Ask for an earlier state and for one memory in it."""
        moment, _ = self.model.moments[pick % len(self.model.moments)]
        then = memories_of(self.model.known_at(moment, self.clock.now))
        store = self.store
        assert shown(plain(store.state_at(moment))) == then
        found = store.get_at(id, moment)
        assert (None if found is None else shown(plain([found]))[id]) == then.get(id)

    @rule(id=ids)
    def ask_history(self, id: str) -> None:
        """Ask for every change that concerns a memory."""
        told = [(entry.operation, entry.kind) for entry in self.store.history(id)]
        assert sorted(told) == sorted(self.model.about(id))

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        """Both handles show the model's rows, and so does the journal for now."""
        wanted = memories_of(self.model.rows)
        for handle in self.handles:
            assert shown(contents(handle)) == wanted
        assert shown(plain(self.handles[0].state_at("now"))) == wanted

    @invariant()
    def nothing_changed_unrecorded(self) -> None:
        """The witness saw exactly the rows that the new operations name."""
        fresh = self.model.operations[self.seen :]
        self.seen = len(self.model.operations)
        net: dict[Key, Pair] = {}
        for operation in fresh:
            for key, (before, after) in operation.pairs.items():
                net[key] = (net[key][0] if key in net else before, after)
        named = {key for key, (before, after) in net.items() if before != after}
        assert self.witness.take() == {key for key in named if key[0] != "trash"}

    def teardown(self) -> None:
        """Compare every moment there was, and everything that is stored twice."""
        try:
            store = self.handles[0]
            for moment, _ in self.model.moments:
                then = memories_of(self.model.known_at(moment, self.clock.now))
                assert shown(plain(store.state_at(moment))) == then
            assert [entry.ts for entry in reversed(store.journal(None))] == known(self)
            found = disagreements(store)
            assert found == [], found
        finally:
            sqlite.connect = self.connect
            for handle in self.handles:
                handle.close()
            self.folder.cleanup()


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=30, stateful_step_count=40)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_machine_at_length() -> None:
    """The same with fresh examples, long enough to meet rare sequences."""
    wide = settings(max_examples=200, stateful_step_count=60, derandomize=False)
    run_state_machine_as_test(Machine, settings=wide)  # type: ignore[no-untyped-call]
