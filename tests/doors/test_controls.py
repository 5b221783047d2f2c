"""Every control of ranking and packing is on every door, with one range and one way to refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, get_origin

import jsonschema
import pytest

from houkai import HybridWeights, InputError, MemoryStore
from houkai.aio import AsyncMemoryStore
from houkai.doors import wire
from houkai.doors.arguments import arguments
from houkai.doors.forms import form_of
from houkai.ops.table import OPERATIONS
from houkai.options import OBJECTS
from houkai.rules import parameters, unfold
from tests.cli.test_options import built

COMMANDS = {
    "recall": "recall",
    "recall_pack": "pack",
    "auto_context_pack": "auto-context",
    "eval_recall": "eval",
}
RENAMED = {"cases": "gold"}
"""Parameters that a command takes as an argument of another name."""
ELSEWHERE = {("eval_recall", "collection")}
"""Where the command's own --collection already says it."""
ROWS = {operation.run.__name__: operation for operation in OPERATIONS}
each = pytest.mark.parametrize("name", COMMANDS)


def controls(name: str) -> Iterator[str]:
    """Yield the parameters that data can carry, the fields of a record in place of the record."""
    for parameter, known in parameters(getattr(MemoryStore, name)).items():
        if parameter == "store" or any(get_origin(p) is Callable for p in unfold(known.type)[0]):
            continue
        if known.record and parameter not in OBJECTS:
            yield from (f"{parameter}_{field}" for field in parameters(known.record))
        else:
            yield parameter


@each
def test_a_control_of_the_library_is_on_every_door(name: str) -> None:
    """A knob that one door lacks makes what was measured there impossible elsewhere."""
    wanted = set(controls(name))
    assert {"weights", "fusion", "expand_cap", "type", "min_trust", "as_of"} <= wanted
    assert parameters(getattr(AsyncMemoryStore, name).__wrapped__) == parameters(
        getattr(MemoryStore, name)
    )
    operation = ROWS[name]
    assert wanted == set(arguments(form_of(operation)))
    assert wanted == set(wire.input_schema(operation)["properties"])
    flags = {parameter.name for parameter in built(COMMANDS[name]).params}
    assert {RENAMED.get(one, one) for one in wanted if (name, one) not in ELSEWHERE} <= flags


@each
def test_weights_cost_nothing_where_few_tools_are_shown(name: str) -> None:
    """The list of the default profile is in every conversation."""
    few = wire.input_schema(ROWS[name], everything=False)["properties"]
    assert not few.keys() & {"weights", "fusion", "expand_cap"}


def call(store: MemoryStore, **given: Any) -> list[dict[str, Any]]:
    """Recall as a tool."""
    found: list[dict[str, Any]] = wire.call(ROWS["recall"], store, given)["result"]
    return found


def test_weights_rank_as_the_librarys(store: MemoryStore) -> None:
    """Weights that get lost on the way rank by something nobody asked for."""
    for text, importance in (("Anna drinks tea", 0.1), ("Ben owns a boat", 1.0)):
        store.remember(text, importance=importance)
    given = {"cosine": 0, "lexical": 0, "recency": None, "importance": 1}
    for fusion in ("weighted", "rrf"):
        found = call(store, query="tea", weights=given, fusion=fusion, explain=True)
        own = store.recall(
            "tea",
            weights=HybridWeights(cosine=0, lexical=0, importance=1),
            fusion=fusion,  # type: ignore[arg-type]
            explain=True,
        )
        assert [hit["explain"] for hit in found] == [hit[2] for hit in own]
        assert found[0]["text"] == "Ben owns a boat"
    assert call(store, query="tea", weights={}, explain=True)[0]["explain"]["fusion"] == "weighted"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cosin": 1}, "weights has no field 'cosin'; it has: cosine, lexical, recency"),
        ({"cosine": 1_001}, "weights.cosine must be a number from -1000 to 1000, got 1001."),
        ({"decay_rate": -1}, "weights.decay_rate must be a number from 0 to 1000, got -1."),
        ({"recency_basis": "read"}, "weights.recency_basis must be one of: created, accessed"),
        ({"cosine": "much"}, "weights.cosine must be a number from"),
        ([0.5], r"weights must be an object, got \[0.5\]."),
        (
            {"cosine": 0, "lexical": 0, "recency": 0, "importance": 0},
            "weights: cosine, lexical, recency and importance must sum to more than 0.",
        ),
    ],
)
def test_wrong_weights_are_refused(given: Any, said: str, store: MemoryStore) -> None:
    """One clear sentence, and a schema that says the same before the call."""
    with pytest.raises(InputError, match=said):
        call(store, query="tea", weights=given)
    schema = wire.input_schema(ROWS["recall"])
    fits = jsonschema.Draft202012Validator(schema).is_valid({"query": "tea", "weights": given})
    assert fits is (given == {"cosine": 0, "lexical": 0, "recency": 0, "importance": 0})


def test_a_measurement_sees_only_what_the_filter_lets_through(store: MemoryStore) -> None:
    """Measured without the filter that recall is used with, the figure is of something else."""
    feedback = store.remember("Anna prefers tea", type="feedback", tags=["drinks"])
    store.remember("Anna prefers tea too")
    cases = [{"query": "tea", "relevant_ids": [feedback.id]}]
    assert store.eval_recall(cases, 2).precision_at_k == 0.5
    for only in ({"type": "feedback"}, {"tag": "drinks"}):
        assert store.eval_recall(cases, 2, **only).per_case[0]["found"] == [feedback.id]  # type: ignore[arg-type]
