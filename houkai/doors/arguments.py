"""The arguments of calls over a wire: which there are, and how JSON becomes what a call takes.

Everything is derived from an operation's signature and the aliases of `houkai.params`, so a new
parameter is on every wire as soon as it is written down, and refused in the library's words.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from typing import Any, Final, get_args, get_origin

from houkai.errors import InputError, NotFound, shown
from houkai.handle import Store
from houkai.limits import K_ON_WIRES
from houkai.ops.listing import find_id
from houkai.options import OBJECTS
from houkai.rules import AsId, AsIds, AsNames, Between, Parameter, clean, parameters, unfold

WIRE_RULES: Final = {"k": Between(0, K_ON_WIRES, whole=True)}
"""Limits that only a caller from outside needs."""


@dataclass(frozen=True)
class Argument:
    """One argument: what it may be, its default, whose rules check it, and where it goes.

    With a `group` it is one field of that parameter, such as `expand_depth` of `expand`.
    """

    parameter: Parameter
    default: Any
    owner: Any
    field: str
    group: str | None = None

    @property
    def required(self) -> bool:
        """Say whether a call must give it."""
        return self.default is inspect.Parameter.empty


@cache
def arguments(form: Callable[..., Any]) -> Mapping[str, Argument]:
    """Return the arguments a wire takes, by name: no store, no callables, all of them flat."""
    signature = inspect.signature(form).parameters
    found: dict[str, Argument] = {}
    for name, parameter in parameters(form).items():
        if name == "store" or _is_callable(parameter.type):
            continue
        if (group := _group_of(name, parameter)) is not None:
            for field, part in parameters(group).items():
                found[f"{name}_{field}"] = Argument(part, None, group, field, name)
        else:
            default = signature[name].default if name in signature else None
            known = replace(parameter, rule=WIRE_RULES.get(name, parameter.rule))
            found[name] = Argument(known, default, form, name)
    return found


def _group_of(name: str, parameter: Parameter) -> Any:
    return None if name in OBJECTS else parameter.record


def _is_callable(hint: Any) -> bool:
    return any(get_origin(part) is Callable for part in unfold(hint)[0])


def parse(form: Callable[..., Any], store: Store, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as the operation takes them; null counts as left out. Raises InputError."""
    known = arguments(form)
    for name in given:
        if name not in known:
            has = f"it has: {', '.join(known)}" if known else "it has none"
            raise InputError(f"{form.__name__} has no parameter {shown(name)}; {has}.")
    call: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for name, argument in known.items():
        if (value := given.get(name)) is not None:
            checked = _value(store, name, argument, value)
            into = call if argument.group is None else groups.setdefault(argument.group, {})
            into[argument.field] = checked
        elif argument.required:
            raise InputError(f"{form.__name__} needs {name}.", hint=argument.parameter.doc)
    kinds = {one.group: one.owner for one in known.values()}
    return call | {group: kinds[group](**fields) for group, fields in groups.items()}


def _value(store: Store, name: str, argument: Argument, value: Any) -> Any:
    parameter = argument.parameter
    if (item := _item_of(parameter)) is not None:
        if not isinstance(value, list):
            raise InputError(f"{name} must be a list, got {shown(value)}.")
        return [_as_item(item, one) for one in value]
    if parameter.record:
        return _as_record(name, parameter.record, value)
    value = _as_names(parameter, value)
    if name in WIRE_RULES:
        WIRE_RULES[name].clean(name, value)
    # Only checked here: what counts as absent, such as 0 for no expiry, the operation decides.
    prefix = f"{argument.group}_" if argument.group else ""
    clean(argument.owner, {argument.field: value}, at=store.now(), prefix=prefix)
    match parameter.rule:
        case AsId():
            return _whole_id(store, value)
        case AsIds():
            return [_whole_id(store, one) for one in value]
        case _:
            return value


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


def _as_record(name: str, kind: Any, given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise InputError(f"{name} must be an object, got {shown(given)}.")
    known = parameters(kind)
    for key in given:
        if key not in known:
            raise InputError(f"{name} has no field {shown(key)}; it has: {', '.join(known)}.")
    kept = {key: value for key, value in given.items() if value is not None}
    return kind(**clean(kind, kept, prefix=f"{name}."))


def _as_names(parameter: Parameter, value: Any) -> Any:
    return [value] if isinstance(parameter.rule, AsNames) and isinstance(value, str) else value


def _whole_id(store: Store, start: str) -> str:
    """Complete the beginning of an id; one that no memory has is left to the operation."""
    try:
        return find_id(store, start)
    except NotFound:
        return start
