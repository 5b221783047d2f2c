"""Whatever the order of operations, nothing is hidden for good, and each can be undone alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from houkai import Diverged, InputError, MemoryStore, NotFound
from houkai.testing import HashingEmbedder
from tests.support import EVERYTHING, Clock, contents, plain

Pick = st.integers(0, 2**16)
TEXTS = st.sampled_from(["red door", "red doors", "the red door", "not a red door", "blue sky"])
RELS = st.sampled_from(["related", "contradicts", "supersedes"])


class Curating(RuleBasedStateMachine):
    """A store under every operation of this area, and the ids of all that ever lived in it."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.store = MemoryStore(":memory:", embedder=HashingEmbedder(16), clock=self.clock)
        self.ids: list[str] = []

    @initialize()
    def begin(self) -> None:
        """Store a few memories, so that the first steps have something to work on."""
        for n in range(4):
            self.ids.append(self.store.remember(f"memory {n}", pinned=n == 0, tags=["t"]).id)

    def pick(self, number: int) -> str:
        """Return the id of a memory that lives or lived."""
        return self.ids[number % len(self.ids)]

    def seen(self) -> tuple[Any, Any]:
        """Return everything a caller can see."""
        return contents(self.store), [entry.memory_id for entry in self.store.trash_list()]

    def attempt(self, operate: Callable[[], object]) -> None:
        """Run an operation; when it changed something, undo and redo it on the way."""
        before, newest = self.seen(), self.store.journal(1)
        try:
            operate()
        except (NotFound, InputError, Diverged):
            assert self.seen() == before, "a refused operation changed something"
            return
        after, made = self.seen(), self.store.journal(1)
        if made == newest or made[0].op == "trash_purge":
            return
        if made[0].op in ("undo", "redo"):
            return
        self.store.undo_last()
        assert self.seen() == before, f"undoing {made[0].op} left a trace"
        self.store.redo()
        assert self.seen() == after, f"redoing {made[0].op} did not bring it back"

    @rule(text=TEXTS, pinned=st.booleans())
    def remember(self, text: str, pinned: bool) -> None:
        """Store a memory that supersedes what it conflicts with."""
        self.attempt(
            lambda: self.ids.append(
                self.store.remember(text, pinned=pinned, tags=["t"], on_conflict="supersede").id
            )
        )

    @rule(text=TEXTS)
    def remember_many(self, text: str) -> None:
        """Store a few, of which some conflict with each other."""

        def several() -> None:
            made = self.store.remember_many([text, f"{text}s", "green"], on_conflict="supersede")
            self.ids += [memory.id for memory in made]

        self.attempt(several)

    @rule(old=Pick, new=Pick)
    def supersede(self, old: int, new: int) -> None:
        """Let any memory supersede any other."""
        self.attempt(lambda: self.store.supersede(self.pick(old), self.pick(new)))

    @rule(at=Pick)
    def restore(self, at: int) -> None:
        """Restore any memory."""
        self.attempt(lambda: self.store.restore(self.pick(at)))

    @rule(at=Pick)
    def forget(self, at: int) -> None:
        """Forget any memory."""
        self.attempt(lambda: self.store.forget(self.pick(at)))

    @rule(one=Pick, other=Pick)
    def merge(self, one: int, other: int) -> None:
        """Merge any two."""
        self.attempt(lambda: self.store.merge(self.pick(one), self.pick(other), separator=" "))

    @rule(at=Pick)
    def trash(self, at: int) -> None:
        """Put any memory into the trash."""
        self.attempt(lambda: self.store.trash(self.pick(at)))

    @rule(at=Pick)
    def trash_restore(self, at: int) -> None:
        """Bring any memory back."""
        self.attempt(lambda: self.store.trash_restore(self.pick(at)))

    @rule(at=Pick)
    def trash_purge(self, at: int) -> None:
        """Purge any memory."""
        self.attempt(lambda: self.store.trash_purge(self.pick(at)))

    @rule(src=Pick, dst=Pick, rel=RELS)
    def link(self, src: int, dst: int, rel: Any) -> None:
        """Link any two, also as if one superseded the other."""
        self.attempt(lambda: self.store.link(self.pick(src), self.pick(dst), rel))

    @rule(src=Pick, dst=Pick)
    def unlink(self, src: int, dst: int) -> None:
        """Unlink any two, also what superseding has linked."""
        self.attempt(lambda: self.store.unlink(self.pick(src), self.pick(dst)))

    @rule(at=Pick, pinned=st.booleans())
    def edit(self, at: int, pinned: bool) -> None:
        """Pin or unpin any memory."""
        self.attempt(lambda: self.store.edit(self.pick(at), pinned=pinned))

    @rule(old=st.sampled_from("tuv"), new=st.sampled_from("tuv"))
    def retag(self, old: str, new: str) -> None:
        """Rename a tag."""
        self.attempt(lambda: self.store.rename_tag(old, new))

    @rule(at=Pick)
    @precondition(lambda self: self.ids)
    def undo(self, at: int) -> None:
        """Undo any operation, or be told that it has been built upon."""
        entries = self.store.journal(30)
        self.attempt(lambda: self.store.undo(entries[at % len(entries)]))

    @rule(some=st.lists(Pick, max_size=4))
    def forget_many(self, some: list[int]) -> None:
        """Forget several, perhaps one and what supersedes it."""
        self.attempt(lambda: self.store.forget_many([self.pick(at) for at in some]))

    @rule(at=Pick)
    @precondition(lambda self: self.ids)
    def undo_since(self, at: int) -> None:
        """Go back to before one of the last operations, or be refused as a whole."""
        entries = self.store.journal(8)
        self.attempt(lambda: self.store.undo_since(entries[at % len(entries)].ts))

    @rule()
    def redo(self) -> None:
        """Redo the newest undo."""
        self.attempt(lambda: self.store.redo())

    @invariant()
    def nothing_is_lost(self) -> None:
        """A hidden memory's superseders are there and end at one that is shown."""
        everything = {m.id: m for m in self.store.list_recent(None, **EVERYTHING)}
        for memory in everything.values():
            above, at = [memory.id], memory.superseded_by
            while at is not None:
                assert at in everything, "superseded by what is gone"
                assert at not in above, "superseded in a circle"
                above.append(at)
                at = everything[at].superseded_by
            if memory.superseded_by is None:
                assert memory.superseded_at is None
            assert all(link.to in everything for link in memory.links), "a link to nowhere"

    @invariant()
    def the_journal_agrees(self) -> None:
        """What the journal knows of now is what is there, and its chain holds."""
        assert plain(self.store.state_at("now")) == contents(self.store)
        assert self.store.verify_journal() is None

    def teardown(self) -> None:
        """Restore whatever is hidden: all of it must be shown then."""
        hidden = [m.id for m in self.store.list_recent(None, **EVERYTHING) if m.superseded_by]
        assert all(self.store.restore(id) for id in hidden)
        assert len(self.store.list_recent(None)) == self.store.count()
        self.store.close()


TestCurating = Curating.TestCase
TestCurating.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
