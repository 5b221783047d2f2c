"""What an agent is told beside a result."""

from __future__ import annotations

from typing import Any

from houkai import InputError, MemoryStore
from houkai.doors import wire
from houkai.doors.tools import answer
from houkai.ops.table import OPERATIONS

ROWS = {operation.name: operation for operation in OPERATIONS}


def test_hints_name_what_a_wire_offers(store: MemoryStore) -> None:
    """An agent that is told of a method it has no tool for looks for it in vain."""
    told = wire.explain(InputError("x", hint="See `journal`, `list_recent`, `reembed`, `words`."))
    assert told["hint"] == "See `journal_tail`, `list_recent`, `houkai reembed`, `words`."
    store.link(store.remember("Anna lands at nine").id, store.remember("zzz qqq").id)
    told = answer(ROWS["recall"], lambda: store, {"query": "Anna", "k": 1, "expand_depth": 1})
    (warning,) = told.structured_content["warnings"]
    assert "the hits have links of related, and expand_rels follows refines" in warning


def test_an_undo_says_whose_it_was_and_what(store: MemoryStore) -> None:
    """Of several agents on one file the last to act may be another, whose work would vanish."""

    def undo(by: MemoryStore, **given: Any) -> dict[str, Any]:
        told = answer(ROWS["undo"], lambda: by, given).structured_content
        assert told["ok"]
        return dict(told)

    me, user = store.as_actor("mcp", "s1"), store.as_actor("cli")
    mine, theirs = me.remember("mine").id, user.remember("theirs").id
    told = undo(me)
    assert (told["actor"], told["session"], told["summary"]) == (
        "cli", None, f"remember {theirs[:8]}",
    )  # fmt: skip
    assert told["warnings"] == [
        f"This undid what cli had done, not you: remember {theirs[:8]}. "
        f"Undo of operation {told['operation']} brings it back."
    ]
    assert "warnings" not in undo(me, operation=told["operation"])
    assert "warnings" not in undo(me, actor="cli")
    assert "warnings" not in undo(me)
    assert store.count() == 0
    me.as_actor("mcp", "s2").remember_many(["two", "of them"])
    told = undo(me)
    assert (told["summary"], told["session"]) == ("remember_many 2 rows", "s2")
    assert "mcp had done in session s2, not you" in told["warnings"][0]
    assert mine
