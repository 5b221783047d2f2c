"""The rules of the state machine whose outcome the journal tells and the model holds it to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, precondition, rule

from houkai import Diverged, InputError, MemoryStore, NotFound
from tests.properties.drafts import recorded
from tests.properties.model import Model, memories_of
from tests.support import Clock

TAGS = st.sampled_from(["a", "b c", "Ünï", "日本", "z"])


class Curation(RuleBasedStateMachine):
    """Operations on many rows: what they did is read from the journal, the witness watches that.

    From then on the model knows what every undo, redo and past state must be.
    """

    ids = Bundle("ids")
    clock: Clock
    model: Model
    store: MemoryStore

    def adopt(self, operate: Callable[[], object], *refused: type[Exception]) -> bool:
        """Run something and take its operations over into the model; False when it was refused."""
        try:
            operate()
        except refused:
            return False
        fresh = self.store.journal(None, since=0)
        for entry in reversed(
            fresh[: len(fresh) - sum(one.there for one in self.model.operations)]
        ):
            rows = [recorded(row) for row in self.store.operation(entry.operation)]
            targets = [] if entry.undoes is None else self.model.group(entry.undoes)
            self.model.apply(
                entry.op, self.clock.now, dict(rows), targets=[one.seq for one in targets]
            )
            assert self.model.operations[-1].pairs.keys() == dict(rows).keys()
        return True

    @rule(old=TAGS, new=TAGS)
    def rename_tag(self, old: str, new: str) -> None:
        """Rename a tag, perhaps to one that is there."""
        self.adopt(lambda: self.store.rename_tag(old, new))

    @rule(sources=st.lists(TAGS, max_size=3), into=TAGS)
    def merge_tags(self, sources: list[str], into: str) -> None:
        """Fold tags into one."""
        self.adopt(lambda: self.store.merge_tags(sources, into))

    @rule(tag=TAGS)
    def delete_tag(self, tag: str) -> None:
        """Take a tag off everything."""
        self.adopt(lambda: self.store.delete_tag(tag))

    @rule(kept=ids, other=ids)
    def merge(self, kept: str, other: str) -> None:
        """Fold a memory into another."""
        self.adopt(lambda: self.store.merge(kept, other), NotFound, InputError)

    @rule(old=ids, new=ids)
    def replace(self, old: str, new: str) -> None:
        """Let a memory supersede another as users do, pins and all."""
        self.adopt(lambda: self.store.supersede(old, new), NotFound, InputError)

    @rule(id=ids)
    def restore(self, id: str) -> None:
        """Show a superseded memory again."""
        self.adopt(lambda: self.store.restore(id))

    @rule(id=ids)
    def trash(self, id: str) -> None:
        """Put a memory aside."""
        self.adopt(lambda: self.store.trash(id))

    @rule(some=st.lists(ids, max_size=4))
    def trash_many(self, some: list[str]) -> None:
        """Put several memories aside at once."""
        self.adopt(lambda: self.store.trash_many(some))

    @rule(id=ids)
    def trash_restore(self, id: str) -> None:
        """Bring a memory back from the trash, if it is there."""
        self.adopt(lambda: self.store.trash_restore(id))

    @rule(some=st.lists(ids, max_size=4))
    def trash_restore_many(self, some: list[str]) -> None:
        """Bring back of several memories those that are in the trash."""
        self.adopt(lambda: self.store.trash_restore_many(some))

    @rule(id=st.one_of(st.none(), ids))
    def trash_purge(self, id: str | None) -> None:
        """Drop one memory in the trash for good, or all of them."""
        held = {key[1] for key in self.model.rows if key[0] == "trash"}
        gone = held if id is None else held & {id}
        self.adopt(lambda: self.store.trash_purge(id))
        assert {key[1] for key in self.model.rows if key[0] == "trash"} == held - gone
        self.model.purge(gone)

    @rule(some=st.lists(ids, max_size=4))
    def forget_many(self, some: list[str]) -> None:
        """Delete several memories at once."""
        there = [id for id in dict.fromkeys(some) if ("memory", id) in self.model.rows]
        assert self.store.forget_many(some) == there
        self.model.apply("forget", self.clock.now, self.model.forgetting(there))

    @precondition(lambda self: self.model.moments)
    @rule(pick=st.integers(0, 1000))
    def undo_since(self, pick: int) -> None:
        """Go back to before a moment, or be refused as a whole."""
        at = pick % len(self.model.moments)
        moment, _ = self.model.moments[at]
        if at == 0 and self.model.pruned:
            return
        before = self.model.moments[at - 1][1] if at else {}
        begun = next(one for one in self.model.operations if one.at == moment)
        if any(one.at < moment for one in self.model.group(begun.seq)):
            return  # what began before the moment is undone as a whole
        batch, first = -len(self.model.operations), len(self.model.operations)
        if self.adopt(lambda: self.store.undo_since(moment), Diverged):
            for operation in self.model.operations[first:]:
                operation.batch = batch
            assert memories_of(self.model.rows) == memories_of(before)

    @rule(keep=st.integers(0, 12))
    def prune(self, keep: int) -> None:
        """Forget how all but the newest states came about."""
        cut = len(self.model.operations) - keep
        self.store.prune_journal(keep_last=keep)
        self.model.prune(cut, self.clock.now)


def known(machine: Any) -> list[float]:
    """Return the moments of the operations that the journal still holds, oldest first."""
    return [operation.at for operation in machine.model.operations if operation.there]
