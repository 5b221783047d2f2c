"""Operations as machine doors see them: schemas, descriptions, calls, and errors in JSON types."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, Final, get_type_hints

from houkai.doors import schema
from houkai.doors.arguments import arguments, parse
from houkai.doors.forms import form_of
from houkai.doors.shapes import SHAPES
from houkai.errors import ConflictError, Diverged, HoukaiError
from houkai.handle import Store
from houkai.ops.table import OPERATIONS, Operation
from houkai.store import MemoryStore

EXPERT: Final = re.compile(
    r"batch_size|compress.*|dedup_threshold|diversity|expand_.*|explain|fusion|graph|header"
    r"|include_expired|include_retired|max_items|max_phrases|overfetch|position|touch|ttl_seconds|weights"
)
"""What an agent hardly ever sets; taken by every door, but shown only where all is."""

_NAMES: Final = {one.run.__name__: one.name for one in OPERATIONS}
OTHER: Final = 100
"""Signs of the text that a refused memory conflicts with."""


def description(operation: Operation) -> str:
    """Return what an operation's docstring tells a caller, without the errors it raises."""
    said = inspect.cleandoc(form_of(operation).__doc__ or "")
    return " ".join(re.sub(r"(?:^|\s)Raises\s.*?(?:\n\n|$)", " ", said, flags=re.DOTALL).split())


def input_schema(operation: Operation, *, everything: bool = True) -> dict[str, Any]:
    """Return the JSON Schema of an operation's arguments, or of those that matter to agents."""
    properties = {}
    known = arguments(form_of(operation))
    for name, argument in known.items():
        if not everything and EXPERT.fullmatch(name):
            continue
        properties[name] = schema.of_parameter(argument.parameter)
        if argument.default and isinstance(argument.default, str | int | float):
            properties[name]["default"] = argument.default
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name, argument in known.items() if argument.required],
        "additionalProperties": False,
    }


def output_schema(operation: Operation) -> dict[str, Any]:
    """Return the JSON Schema of an operation's answer; a list stands under `result`."""
    answer = schema.of(get_type_hints(SHAPES[operation.name])["return"])
    if answer["type"] == "object":
        return answer
    return {"type": "object", "properties": {"result": answer}, "required": ["result"]}


def call(operation: Operation, store: Store, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check `given`, run the operation, and return its answer as JSON types.

    A list stands under `result`. Raises InputError and whatever the operation raises.
    """
    form = form_of(operation)
    values = parse(form, store, given)
    defaults = {name: one.default for name, one in arguments(form).items() if not one.required}
    answer = SHAPES[operation.name](form(store, **values), defaults | values)
    return answer if isinstance(answer, dict) else {"result": answer}


def as_called(sentence: str) -> str:
    """Return a sentence of the library with the operations it names as a wire offers them."""

    def put(match: re.Match[str]) -> str:
        name = match[1]
        # What a wire does not offer is done on the command line.
        otherwise = f"houkai {name}" if hasattr(MemoryStore, name) else name
        return f"`{_NAMES.get(name, otherwise)}`"

    return re.sub(r"`(\w+)`", put, sentence)


def explain(error: HoukaiError) -> dict[str, Any]:
    """Return an error as JSON types."""
    told: dict[str, Any] = {"code": error.code, "message": error.message}
    told["hint"] = as_called(error.hint)
    if isinstance(error, Diverged):
        told["rows"] = error.rows
    if isinstance(error, ConflictError):
        told["conflicts"] = [
            {
                "kind": one.kind,
                "similarity": one.similarity,
                "other_id": one.b.id,
                "other_text": one.b.text[:OTHER],
                "other_trust": one.b.trust,
            }
            for one in error.conflicts
        ]
    return told
