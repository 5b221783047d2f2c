"""Every parameter of every operation refuses what it cannot take, by its name and in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from houkai import InputError, MemoryStore, limits
from houkai.errors import HoukaiError, shown
from houkai.ops.drafts import RememberItem
from houkai.ops.table import OPERATIONS
from houkai.rules import AsNames, AsRef, AsText, Between, parameters
from houkai.testing import HashingEmbedder
from houkai.time_rules import AsMoment, AsSeconds
from tests.support import contents, dump_of, plain

HALF = "half a pair \ud800"
HUGE = 10**400
ARRAY = np.array([1, 2])
"""What raises when it is asked whether it equals something."""
NUMBERS: list[Any] = [math.nan, math.inf, -math.inf, True, "0.5", [], HUGE, ARRAY]
MOMENTS: list[Any] = [
    math.nan,
    math.inf,
    -1,
    True,
    "yesterday",
    "",
    [],
    1e20,
    HUGE,
    "9" * 400,
    ARRAY,
]
LENGTHS: list[Any] = [0, -1, math.nan, math.inf, True, "soon", "", [], HUGE, ARRAY]
NAMES: list[Any] = ["abc", {"a": 1}, 5, [""], ["  "], [5], [None], [HALF]]
FLAGS: list[Any] = ["yes", 2, [], 0.5, ARRAY]
WORDS: list[Any] = ["bogus", "", 5, ["a"], True, HALF, ARRAY]
TEXTS: list[Any] = [5, b"bytes", [], HALF]


def bad_values(parameter: Any) -> Iterator[Any]:
    """Yield what a parameter of this kind must refuse."""
    rule = parameter.rule
    if not parameter.optional:
        yield None
    if parameter.words:
        yield from WORDS
    elif isinstance(rule, Between):
        yield from NUMBERS
        yield from [rule.low - 1] if rule.low > -(2**53) else []
        yield from [rule.high + 1] if rule.high < 2**53 else []
        yield from [0.5] if rule.whole else []
    elif isinstance(rule, AsNames):
        yield from NAMES
        yield ["n" * (rule.chars + 1)]
        yield [str(n) for n in range(rule.count + 1)] if rule.count < 100 else [5]
    elif isinstance(rule, AsRef):
        yield from [True, [], HALF, "", " "]
    elif isinstance(rule, AsText):
        yield from TEXTS
        yield "x" * (rule.limit + 1)
        yield from ["", " \n\t"] if rule.blank == "refuse" else []
    elif isinstance(rule, AsMoment):
        yield from MOMENTS
        yield from ["7d"] if rule.span == "refuse" else []
    elif isinstance(rule, AsSeconds):
        yield from LENGTHS
    elif parameter.type is bool:
        yield from FLAGS


VALID: dict[str, Any] = {
    "text": "hello", "query": "hello", "task": "hello", "memory_id": "x", "src_id": "x",
    "dst_id": "y", "old_id": "x", "new_id": "y", "target_id": "x", "other_id": "y", "from_id": "x",
    "to_id": "y", "memory_ids": ["x"], "prefix": "x", "timestamp": 1.0, "since": 1.0, "t1": 1.0,
    "t2": 2.0, "operation": 1, "ref": 1, "old": "a", "new": "b", "sources": ["a"], "into": "b",
    "tag": "a", "items": ["hello"], "cases": [],
}  # fmt: skip
"""A value for each parameter that has no default; no call here gets far enough to use it."""
RUNS: dict[str, Callable[..., Any]] = {one.run.__name__: one.run for one in OPERATIONS}
RUNS |= {name: getattr(MemoryStore, name) for name in ("undo_last", "find_id", "count")}
FREE = {"weights", "expand", "reranker", "token_counter", "items", "cases", "contradiction_fn"}
"""Parameters that take objects; their own tests tell what they refuse."""


def required(run: Callable[..., Any]) -> dict[str, Any]:
    """Return a valid value for each parameter that must be given."""
    code, defaults = run.__code__, run.__defaults__ or ()
    positional = code.co_varnames[1 : code.co_argcount]
    needed = positional[: len(positional) - len(defaults)]
    return {name: VALID[name] for name in needed}


CASES = [
    (run, name, value)
    for run in RUNS.values()
    for name, parameter in parameters(run).items()
    if name not in {"store", *FREE}
    for value in bad_values(parameter)
]


def test_the_cases_are_many() -> None:
    """A derivation that finds no rules would pass everything."""
    assert len(CASES) > 1_000
    assert len({(run, name) for run, name, _ in CASES}) > 150


@pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))
def test_bad_values_are_refused_by_name(run: Callable[..., Any]) -> None:
    """A wrong value must not become another value, nor an error from somewhere below."""
    with MemoryStore(":memory:", embedder=HashingEmbedder(64)) as store:
        store.remember("hello", tags=["a"])
        before = dump_of(store)
        wrong = [
            f"{name}={shown(value)}: {said}"
            for owner, name, value in CASES
            if owner is run and (said := refusal(store, run, name, value)) is not None
        ]
        assert not wrong, "\n" + "\n".join(wrong)
        assert dump_of(store) == before


def refusal(store: MemoryStore, run: Callable[..., Any], name: str, value: Any) -> str | None:
    """Return what is wrong with how an operation refuses a value, None when all is well."""
    try:
        got = run(store, **{**required(run), name: value})
    except InputError as error:
        message = str(error)
        named = message.startswith((f"{name} ", f"A name in {name} ")) or f" {name} " in message
        well = named and message.endswith(".") and "\n" not in message and len(message) < 400
        return None if well else message
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"taken, and answered by {got!r}"[:200]


def test_what_takes_objects_refuses_others_by_name() -> None:
    """A number in the place of a function or a list would come to light far below, as a bug."""
    with MemoryStore(":memory:", embedder=HashingEmbedder(64)) as store:
        store.remember("hello")
        with pytest.raises(InputError, match=r"^cases must be .*, got 5\."):
            store.eval_recall(5)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"^token_counter must be .*, got 5\."):
            store.recall_pack("hello", token_counter=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("power", [0, 20, 400, 5_000])
def test_numbers_that_no_operation_can_have(power: int) -> None:
    """Python refuses to write out the largest of them, SQLite to compare with them."""
    with MemoryStore(":memory:", embedder=HashingEmbedder(64)) as store:
        store.remember("hello")
        for ask in (store.undo, store.redo, store.operation, store.preview_undo):
            with pytest.raises(HoukaiError, match="number or id"):
                ask(-(10**power))
            with pytest.raises(HoukaiError, match="number or id"):
                ask(7 * 10**power)


ITEMS: list[tuple[Any, str]] = [
    ("one text", "items"),
    ({"text": "one mapping"}, "items"),
    (5, "items"),
    (None, "items"),
    ([5], "item"),
    ([None], "item"),
    ([{}], "text"),
    ([{"text": "x", "colour": "red"}], "colour"),
    ([{"text": "x", "importance": 2}], "importance"),
    (["good", " "], "text"),
    ([RememberItem("x", tags="abc")], "tags"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("items", "named"), ITEMS)
def test_bad_items_are_refused_before_the_first_is_stored(
    items: Any, named: str, store: MemoryStore
) -> None:
    """A list that fails half way would have to be repaired by hand."""
    with pytest.raises(InputError, match=named):
        store.remember_many(items)
    assert store.count() == 0


PAIRS: list[tuple[dict[str, Any], str]] = [
    ({"ttl_seconds": 5, "expires_at": 2e9}, "ttl_seconds or expires_at"),
    ({"valid_from": 200.0, "valid_until": 100.0}, "valid_until"),
    ({"valid_from": 100.0, "valid_until": 100.0}, "valid_until"),
    ({"ttl_seconds": 2.53e11}, "ttl_seconds"),
    ({"expires_at": "2930000d"}, "expires_at"),
]


@pytest.mark.parametrize(("options", "named"), PAIRS)
def test_values_that_do_not_fit_together_are_refused(
    options: dict[str, Any], named: str, store: MemoryStore
) -> None:
    """Each may be right alone; together they say nothing."""
    with pytest.raises(InputError, match=named):
        store.remember("x", **options)
    assert store.count() == 0


GOOD: list[dict[str, Any]] = [
    {"text": "nul \0 inside"},
    {"text": "family 👨‍👩‍👧‍👦 and flag 🏴‍☠️"},
    {"text": "combining e\u0301 \u0323a, RTL שלום \u202eright\u202c, zero\u200bwidth"},
    {"text": "line\nbreaks\r\nand\ttabs"},
    {"text": "x", "tags": [f"tag {n}" for n in range(limits.TAGS)]},
    {"text": "x", "tags": ["t" * limits.TAG_CHARS, "with, comma", "日本", "nul\0", "e\u0301", "é"]},
    {"text": "x", "entities": [f"name {n}" for n in range(limits.ENTITIES)]},
    {"text": "x", "source": "s" * 1024, "author": "nul\0 author"},
    {"text": "x", "importance": 0},
    {"text": "x", "importance": 1},
    {"text": "x", "position": 2**53},
    {"text": "x", "created_at": datetime(1999, 1, 1, tzinfo=UTC)},
    {"text": "x", "created_at": "2024-02-29", "expires_at": "9999-12-31"},
]


@pytest.mark.parametrize("given", GOOD, ids=range(len(GOOD)))
def test_what_is_allowed_comes_back_as_it_was(given: dict[str, Any], store: MemoryStore) -> None:
    """Text is the user's: every letter that is allowed in must come out again."""
    memory = store.remember(**given)
    found = store.get(memory.id)
    assert found is not None
    for name in ("text", "tags", "entities", "source", "author", "position", "importance"):
        if name in given:
            assert getattr(found, name) == given[name]
    assert contents(store)[memory.id] == contents_of(store, memory.id)
    store.forget(memory.id)
    store.undo_last()
    assert contents(store)[memory.id] == contents_of(store, memory.id)


def contents_of(store: MemoryStore, id: str) -> dict[str, Any]:
    """Return a memory as the journal knows it now."""
    found = store.get_at(id, "now")
    assert found is not None
    return plain([found])[id]


def longest(word: str) -> str:
    """Return a text of just as many bytes as are allowed."""
    text = word * (limits.TEXT_BYTES // len(word.encode()))
    return text + "x" * (limits.TEXT_BYTES - len(text.encode()))


def test_the_longest_text_is_kept(file_store: MemoryStore) -> None:
    """The limit counts bytes as stored, and what is within it is whole."""
    text = longest("été ")
    assert len(text) < limits.TEXT_BYTES
    memory = file_store.remember(text)
    found = file_store.get(memory.id)
    assert found is not None
    assert found.text == text
    with pytest.raises(InputError, match="1,048,577 bytes"):
        file_store.edit(memory.id, text=text + "x")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("expires_at", 'such as "7d" (that long from now)'), ("created_at", '"7d" (that long ago)'),
     ("valid_from", "epoch seconds or an ISO date, got")],
)  # fmt: skip
def test_a_refused_moment_tells_which_way_spans_count(name: str, meant: str) -> None:
    """Who is told that "7d" is seven days ago expires a memory the moment it is stored."""
    with MemoryStore(":memory:", embedder=HashingEmbedder(64)) as store:
        with pytest.raises(InputError) as caught:
            store.remember("hello", **{name: "someday"})  # type: ignore[arg-type]
        assert meant in caught.value.message


def test_a_refused_item_is_numbered(store: MemoryStore) -> None:
    """In an import of thousands nobody finds the one that is wrong by its value."""
    with pytest.raises(InputError, match=r"^items\[2\]: importance must be a number from 0 to 1"):
        store.remember_many(["a", "b", {"text": "c", "importance": 9}])
    with pytest.raises(InputError, match=r"^importance must be"):
        store.remember("c", importance=9)


def test_an_unknown_parameter_is_told_what_a_caller_can_give(store: MemoryStore) -> None:
    """The store stands before the dot; nobody passes it."""
    with pytest.raises(InputError, match="recall has no parameter 'foo'; it has: query, k"):
        store.recall("x", foo=1)  # type: ignore[call-arg]
