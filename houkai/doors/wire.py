"""Calls that come over a wire: from JSON arguments to an operation, and from its result to JSON.

Everything is derived from an operation's signature and the aliases of `houkai.params`, so a new
parameter is on every wire as soon as it is written down, and refused in the same words.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Final, get_args, get_type_hints

from houkai.doors import schema
from houkai.doors.forms import form_of
from houkai.doors.shapes import SHAPES
from houkai.errors import Diverged, HoukaiError, InputError, NotFound
from houkai.handle import Store
from houkai.limits import K_ON_WIRES
from houkai.ops.listing import find_id
from houkai.ops.table import Operation
from houkai.rules import AsId, AsNames, Between, Parameter, Rule, clean, parameters, unfold

WIRE_RULES: Final[Mapping[str, Rule]] = {"k": Between(0, K_ON_WIRES, whole=True)}
"""Limits that only a caller from outside needs."""
OFF_WIRES: Final = frozenset({"store", "weights"})
"""What a wire never shows: the store itself, and knobs of a library user's own ranking."""


@cache
def arguments(form: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the parameters a wire shows: no store, no callables, options spread flat."""
    known = parameters(form)
    return {
        name: parameter
        for name, parameter in known.items()
        if name not in OFF_WIRES and not _is_callable(parameter.type)
    }


def _is_callable(hint: Any) -> bool:
    return any(getattr(part, "__origin__", part) is Callable for part in unfold(hint)[0])


@cache
def required(form: Callable[..., Any]) -> tuple[str, ...]:
    """Name the parameters that have no default."""
    signature = inspect.signature(form).parameters
    return tuple(
        name
        for name in arguments(form)
        if name in signature and signature[name].default is inspect.Parameter.empty
    )


def description(operation: Operation) -> str:
    """Return what an operation's docstring tells a caller, without the errors it raises."""
    said = inspect.cleandoc(form_of(operation).__doc__ or "")
    return " ".join(re.sub(r"(?:^|\s)Raises\s.*?(?:\n\n|$)", " ", said, flags=re.DOTALL).split())


def input_schema(operation: Operation) -> dict[str, Any]:
    """Return the JSON Schema of an operation's arguments."""
    form = form_of(operation)
    known = inspect.signature(form).parameters
    properties = {}
    for name, parameter in arguments(form).items():
        properties[name] = schema.of_parameter(parameter, WIRE_RULES.get(name))
        default = known[name].default if name in known else None
        if default and isinstance(default, str | int | float):
            properties[name]["default"] = default
    return {
        "type": "object",
        "properties": properties,
        "required": list(required(form)),
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
    answer = SHAPES[operation.name](form(store, **values), values)
    return answer if isinstance(answer, dict) else {"result": answer}


def explain(error: HoukaiError) -> dict[str, Any]:
    """Return an error as JSON types."""
    told: dict[str, Any] = {"code": error.code, "message": error.message, "hint": error.hint}
    if isinstance(error, Diverged):
        told["rows"] = error.rows
    return told


def parse(form: Callable[..., Any], store: Store, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as the operation takes them; null counts as left out. Raises InputError."""
    known, needed = arguments(form), required(form)
    for name in given:
        if name not in known:
            has = f"it has: {', '.join(known)}" if known else "it has none"
            raise InputError(f"{form.__name__} has no parameter {name!r}; {has}.")
    values = {name: given[name] for name in given if given[name] is not None}
    for name in needed:
        if name not in values:
            raise InputError(f"{form.__name__} needs {name}.", hint=known[name].doc)
    return {name: _value(form, store, name, value) for name, value in values.items()}


def _value(form: Callable[..., Any], store: Store, name: str, value: Any) -> Any:
    parameter = arguments(form)[name]
    if (item := _item_of(parameter)) is not None:
        return [_as_item(item, one) for one in value] if isinstance(value, list) else value
    value = _as_names(parameter, value)
    if (rule := WIRE_RULES.get(name)) is not None:
        rule.clean(name, value)
    # Only checked here: what is absent, such as 0 for no expiry, is the operation's to read.
    clean(form, {name: value})
    return _whole_id(store, value) if isinstance(parameter.rule, AsId) else value


def _item_of(parameter: Parameter) -> Any:
    """Return the record that a list parameter's objects have the fields of."""
    members = [part for inner in get_args(parameter.type) for part in unfold(inner)[0]]
    return next((part for part in members if is_dataclass(part)), None)


def _as_item(item: Any, given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    known = parameters(item)
    return {
        name: _as_names(known[name], value) if name in known else value
        for name, value in given.items()
        if value is not None
    }


def _as_names(parameter: Parameter, value: Any) -> Any:
    return [value] if isinstance(parameter.rule, AsNames) and isinstance(value, str) else value


def _whole_id(store: Store, start: str) -> str:
    """Complete the beginning of an id; one that no memory has is left to the operation."""
    try:
        return find_id(store, start)
    except NotFound:
        return start
