"""JSON Schemas of parameters and of results, as small as they can be: agents pay for each byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints, is_typeddict

from houkai.rules import (
    AsNames,
    AsRef,
    AsText,
    AsWords,
    Between,
    Parameter,
    Rule,
    parameters,
    unfold,
)
from houkai.time_rules import AsMoment, AsSeconds

Schema = dict[str, Any]

_PLAIN: Final[Mapping[Any, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    NoneType: "null",
}
_NO_BOUND: Final = 2**53
"""Bounds from here on only keep numbers within SQLite; an agent need not read them."""


def of_parameter(parameter: Parameter) -> Schema:
    """Return the schema of a parameter, with its sentence."""
    if parameter.record:
        found = _of_fields(parameter.record)
    else:
        found = of(parameter.type) if parameter.rule is None else _of_rule(parameter.rule)
    return {**found, "description": parameter.doc} if parameter.doc else found


def _of_rule(rule: Rule) -> Schema:
    match rule:
        case Between(low, high, whole):
            bounds = {"minimum": low, "maximum": high}
            kept = {name: n for name, n in bounds.items() if abs(n) < _NO_BOUND}
            return {"type": "integer" if whole else "number", **kept}
        case AsNames():
            return {"type": "array", "items": {"type": "string"}}
        case AsWords(words):
            return {"type": "array", "items": {"type": "string", "enum": list(words)}}
        case AsMoment() | AsSeconds():
            return {"anyOf": [{"type": "number"}, {"type": "string"}]}
        case AsRef():
            return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
        case AsText():
            return {"type": "string"}


def of(hint: Any) -> Schema:
    """Return the schema of a type that JSON can carry."""
    parts, _ = unfold(hint)
    if len(parts) > 1:
        return _of_union([of(part) for part in parts])
    bare = parts[0]
    if bare in _PLAIN:
        return {"type": _PLAIN[bare]}
    if get_origin(bare) is Literal:
        words = list(get_args(bare))
        return {"type": _PLAIN[type(words[0])], "enum": words}
    if is_typeddict(bare):
        return _of_record(bare)
    if is_dataclass(bare):
        return _of_item(bare)
    origin = get_origin(bare) or bare
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object"}
    if get_args(bare):
        return {"type": "array", "items": of(get_args(bare)[0])}
    return {}


def _of_union(members: list[Schema]) -> Schema:
    members = [one for n, one in enumerate(members) if not _said_elsewhere(n, members)]
    if len(members) == 1:
        return members[0]
    if all(member.keys() == {"type"} for member in members):
        return {"type": [member["type"] for member in members]}
    return {"anyOf": members}


def _said_elsewhere(n: int, members: list[Schema]) -> bool:
    """Tell whether an earlier member says the same, or any other member says it and more."""
    said = members[n].items()
    return members[n] in members[:n] or any(said < other.items() for other in members)


def _of_record(record: Any) -> Schema:
    """Return the schema of a TypedDict: what an operation answers."""
    properties = {name: of(hint) for name, hint in get_type_hints(record).items()}
    required = [name for name in properties if name in record.__required_keys__]
    return {"type": "object", "properties": properties, "required": required}


def _of_fields(record: Any) -> Schema:
    """Return the schema of a dataclass that is one argument: every field with its bounds."""
    defaults = {field.name: field.default for field in fields(record)}
    properties = {
        name: {**of_parameter(one), "default": defaults[name]}
        for name, one in parameters(record).items()
    }
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _of_item(item: Any) -> Schema:
    """Return the schema of a dataclass that an agent sends: its fields by name.

    Their types stand with the operation that takes one such item; twice would cost a kilobyte.
    """
    needed = [field.name for field in fields(item) if field.default is MISSING]
    listed = ", ".join(field.name for field in fields(item))
    return {"type": "object", "description": f"Fields: {listed}.", "required": needed}
