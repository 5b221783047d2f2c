"""What wires show of the operations, and what they refuse."""

from __future__ import annotations

import inspect
import json
from typing import Any

import jsonschema
import pytest

from houkai import InputError, MemoryStore, NotFound
from houkai.doors import wire
from houkai.doors.arguments import arguments, parse
from houkai.doors.forms import form_of
from houkai.doors.tools import answer
from houkai.ops.table import OPERATIONS, Operation
from houkai.rules import AsId, AsIds
from tests.conftest import Opener

ROWS = {operation.name: operation for operation in OPERATIONS}
HOSTILE = (
    "'\";--\0",
    "\ud83d half an emoji",
    "x" * 2_000_000,
    "\x1b[2J\u202e",
    '" OR text:* NEAR(',
    "٣",
)
WRONG = (-1, 2**70, 1.5, float("nan"), True, [], {}, [[None]], ["x"], "")
named = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)


def call(store: MemoryStore, tool: str, **given: Any) -> dict[str, Any]:
    """Call a tool."""
    return wire.call(ROWS[tool], store, given)


def valid(operation: Operation, id: str) -> dict[str, Any]:
    """Return arguments that an operation takes."""
    given = {
        "text": "Anna lands at nine",
        "query": "Anna",
        "task": "Fetch Anna",
        "items": ["Ben prefers tabs"],
        "cases": [{"query": "Anna", "relevant_ids": [id]}],
        "memory_ids": [id],
        "ref": 1,
        "ts": 0,
        "t1": 0,
        "since": 0,
        "confirm": "DELETE ALL",
    }
    return {
        name: given.get(name, id)
        for name, argument in arguments(form_of(operation)).items()
        if argument.required
    }


@named
def test_every_argument_is_described(operation: Operation) -> None:
    """An argument without a sentence or a type leaves an agent guessing."""
    schema = wire.input_schema(operation)
    jsonschema.Draft202012Validator.check_schema(schema)
    for name, part in schema["properties"].items():
        assert part["description"], name
        assert "type" in part or "anyOf" in part, name


@named
def test_every_argument_is_checked(operation: Operation) -> None:
    """A value without a rule reaches SQL, or a model, unchecked."""
    for name, argument in arguments(form_of(operation)).items():
        parameter = argument.parameter
        assert (
            parameter.rule
            or parameter.words
            or parameter.type is bool
            or name in ("items", "cases", "weights")
        ), name


@named
def test_schemas_stay_small(operation: Operation) -> None:
    """A schema of five kilobytes costs every conversation a thousand tokens."""
    size = len(json.dumps(wire.input_schema(operation, everything=False)))
    assert size < 3_000
    assert len(wire.description(operation)) < 400
    assert "Raises" not in wire.description(operation)


def test_experts_see_more() -> None:
    """A knob that no list shows could not be found, one that all lists show costs everybody."""
    few = wire.input_schema(ROWS["recall"], everything=False)["properties"]
    many = wire.input_schema(ROWS["recall"])["properties"]
    assert few.keys() < many.keys()
    assert {"query", "k", "type", "tag", "since", "min_trust", "as_of"} <= few.keys()
    assert {"fusion", "weights", "expand_depth", "touch"} <= many.keys() - few.keys()


def test_options_that_no_wire_can_carry_stay_away() -> None:
    """A callable or the store itself in a schema would make a tool that nobody can call."""
    for operation in OPERATIONS:
        names = arguments(form_of(operation)).keys()
        assert not names & {"store", "reranker", "token_counter", "options"}


def test_bounds_and_words_are_shown() -> None:
    """A limit that the schema hides is met only by a failed call."""
    shown = wire.input_schema(ROWS["remember"])["properties"]
    assert shown["importance"]["maximum"] == 1
    assert shown["type"] == {
        "type": "string",
        "enum": ["episodic", "semantic", "procedural", "feedback"],
        "description": shown["type"]["description"],
        "default": "semantic",
    }
    assert wire.input_schema(ROWS["recall"])["properties"]["k"]["maximum"] == 1_000
    assert "maximum" not in wire.input_schema(ROWS["list_recent"])["properties"]["limit"]


def test_unknown_argument_is_named(store: MemoryStore) -> None:
    """A mistyped knob that is ignored makes an agent believe it was obeyed."""
    with pytest.raises(InputError, match=r"recall has no parameter 'limit'; it has: query, k, "):
        call(store, "recall", query="x", limit=3)
    with pytest.raises(InputError, match="stats has no parameter 'x'; it has none"):
        call(store, "stats", x=None)
    with pytest.raises(InputError, match="An item has no field 'tag'"):
        call(store, "remember_many", items=[{"text": "x", "tag": "y"}])


def test_missing_argument_is_named(store: MemoryStore) -> None:
    """An error of Python's about a call tells an agent nothing."""
    with pytest.raises(InputError, match="remember needs text") as refused:
        call(store, "remember", text=None)
    assert "What to remember" in refused.value.hint


def test_refusals_are_the_librarys(store: MemoryStore) -> None:
    """Two vocabularies for one mistake would make every door's documentation wrong somewhere."""
    for given in ({"importance": 2}, {"type": "fact"}, {"tags": [""]}, {"expires_at": "soon"}):
        with pytest.raises(InputError) as by_library:
            store.remember("x", **given)  # type: ignore[arg-type]
        with pytest.raises(InputError) as by_wire:
            call(store, "remember", text="x", **given)
        assert str(by_wire.value) == str(by_library.value)


def test_null_is_left_out(store: MemoryStore) -> None:
    """Clients fill what a user left empty with null; an edit must not clear those fields."""
    made = call(store, "remember", text="x", source="mail", tags=None, importance=None)
    edited = call(store, "edit", memory_id=made["id"], text="y", source=None, tags=None)
    assert edited["source"] == "mail"
    many = call(store, "remember_many", items=[{"text": "z", "type": None, "source": None}])
    assert many["stored"] == 1


def test_fields_can_be_cleared(store: MemoryStore) -> None:
    """With null for left out, there must be another word for nothing."""
    made = call(
        store, "remember", text="x", source="mail", author="Anna", tags=["t"], expires_at="1d"
    )
    clear = {"source": "", "author": "", "tags": [], "expires_at": 0}
    edited = call(store, "edit", memory_id=made["id"], **clear)
    assert [edited[name] for name in clear] == [None, None, [], None]


def test_one_string_is_one_tag(store: MemoryStore) -> None:
    """An agent that sends a single tag as a string means that tag, not its letters."""
    made = call(store, "remember", text="x", tags="travel", entities="Anna")
    assert call(store, "get", memory_id=made["id"])["tags"] == ["travel"]
    many = call(store, "remember_many", items=[{"text": "y", "tags": "style"}])
    assert call(store, "get", memory_id=many["ids"][0])["tags"] == ["style"]


@pytest.mark.parametrize(
    "operation",
    [
        one
        for one in OPERATIONS
        if any(
            isinstance(argument.parameter.rule, AsId | AsIds)
            for argument in arguments(form_of(one)).values()
        )
    ],
    ids=lambda operation: operation.name,
)
def test_ids_may_be_shortened(operation: Operation, store: MemoryStore) -> None:
    """An id that an agent read in a listing is short; every tool must take it."""
    ids = [store.remember(text).id for text in ("Anna lands at nine", "Ben prefers tabs")]
    short, whole = (
        {
            name: [start] if isinstance(argument.parameter.rule, AsIds) else start
            for name, argument in arguments(form_of(operation)).items()
            if isinstance(argument.parameter.rule, AsId | AsIds)
            for start in (ids[name in ("dst_id", "to_id")][:length],)
        }
        for length in (8, None)
    )
    parsed = parse(form_of(operation), store, {**valid(operation, ids[0]), **short})
    assert {name: parsed[name] for name in whole} == whole


def test_ambiguous_and_unknown_ids(store: MemoryStore) -> None:
    """A beginning that fits two memories must not pick one; an unknown one is not found."""
    ids = [store.remember(f"memory {n}").id for n in range(40)]
    first = next(id[0] for id in ids if sum(other[0] == id[0] for other in ids) > 1)
    with pytest.raises(InputError, match="Several memories have ids that begin with"):
        call(store, "forget", memory_id=first)
    assert call(store, "get", memory_id="zz") == {"found": False, "id": "zz"}
    assert call(store, "forget", memory_id="zz") == {"deleted": False}
    with pytest.raises(NotFound):
        call(store, "edit", memory_id="zz", text="x")


def test_k_is_limited_on_wires_only(store: MemoryStore) -> None:
    """A library user may ask for everything; an agent would drown in it."""
    assert store.recall("x", k=5_000) == []
    with pytest.raises(InputError, match=r"k must be a whole number from 0 to 1000, got 5000"):
        call(store, "recall", query="x", k=5_000)


def test_option_groups_are_flat(store: MemoryStore) -> None:
    """AI-Houkai's expand_* arguments carry over, and are refused under the name that was given."""
    first, second = store.remember("Anna lands at nine"), store.remember("zzz qqq")
    store.link(first.id, second.id, "refines")
    found = call(store, "recall", query="Anna", k=1, expand_depth=1, expand_rels=["refines"])
    assert [hit["id"] for hit in found["result"]] == [first.id, second.id]
    with pytest.raises(InputError, match="expand_depth must be a whole number from 0 to 6"):
        call(store, "recall", query="Anna", expand_depth=9)
    with pytest.raises(InputError, match="expand_rels must be of: related"):
        call(store, "recall", query="Anna", expand_rels=["likes"])


def test_idempotent_remember_tells_what_is_new(store: MemoryStore) -> None:
    """`stored` is how an agent learns that it repeated itself."""
    one = call(store, "remember", text="Anna lands at nine", idempotent=True)
    two = call(store, "remember", text="anna LANDS at nine", idempotent=True)
    assert (one["stored"], two["stored"]) == (True, False)
    assert one["id"] == two["id"]
    many = call(store, "remember_many", items=["Anna lands at nine", "new"], idempotent=True)
    assert many["stored"] == 1
    assert many["ids"][0] == one["id"]


def test_undo_takes_one_way_of_naming(store: MemoryStore) -> None:
    """An undo that ignores half of what was asked takes back the wrong thing."""
    memory = store.remember("x")
    with pytest.raises(InputError, match="Give operation alone"):
        call(store, "undo", operation=1, memory_id=memory.id)
    undone = call(store, "undo", memory_id=memory.id)
    assert (undone["ok"], undone["op"], undone["id"]) == (True, "remember", memory.id)
    with pytest.raises(NotFound, match="Nothing is left to undo"):
        call(store, "undo")
    assert call(store, "redo", operation=undone["operation"])["id"] == memory.id


def test_nuke_wants_the_word(store: MemoryStore) -> None:
    """An agent that calls nuke by mistake must not empty the store."""
    store.remember("x")
    for given in ({}, {"confirm": "yes"}, {"confirm": True}):
        with pytest.raises(InputError):
            call(store, "nuke", **given)
    assert store.count() == 1
    assert call(store, "nuke", confirm="DELETE ALL") == {"ok": True, "deleted": 1}


@named
def test_no_value_breaks_an_operation(operation: Operation, open_store: Opener) -> None:
    """Whatever an agent sends, it gets a result or a sentence, never a bug's excuse."""
    store = open_store(":memory:")
    id = store.remember("Anna lands at nine").id
    for name in arguments(form_of(operation)):
        for value in (*HOSTILE, *WRONG):
            if operation.effect == "destroy":
                id = store.remember("Anna lands at nine").id
            given = {**valid(operation, id), name: value}
            told = answer(operation, lambda: store, given)
            code = told.structured_content.get("code")
            assert code != "InternalError", (name, value)


@named
def test_docstrings_speak_to_agents(operation: Operation) -> None:
    """The first line of a docstring is the tool's description: an order, not a story."""
    first = inspect.cleandoc(form_of(operation).__doc__ or "").splitlines()[0]
    assert first.endswith(".")
    assert first.split()[0].istitle()
