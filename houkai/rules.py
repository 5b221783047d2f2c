"""The rules that parameters obey, and the one function that applies them to a call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from houkai.errors import InputError, shown
from houkai.time_rules import AsMoment, AsSeconds, is_plain

EXACT_INTEGER: Final = 2**53
"""The largest whole number that every door can carry: JSON's are floats."""


@dataclass(frozen=True)
class Doc:
    """What a parameter means, in one sentence."""

    sentence: str


@dataclass(frozen=True)
class Between:
    """A finite number within closed bounds."""

    low: float
    high: float = math.inf
    whole: bool = False

    def clean(self, name: str, value: Any) -> float | int:
        """Return the number. Raises InputError."""
        right = isinstance(value, int if self.whole else int | float)
        if not right or isinstance(value, bool) or not self._holds(value):
            raise InputError(f"{name} must be {self}, got {shown(value)}.")
        return value if self.whole else float(value)

    def _holds(self, value: float) -> bool:
        try:
            return math.isfinite(value) and self.low <= value <= self.high
        except OverflowError:  # a whole number beyond every float
            return False

    def __str__(self) -> str:
        """Say in words what is allowed; bounds that only keep numbers exact go unsaid."""
        kind = "a whole number" if self.whole else "a number"
        if self.high < EXACT_INTEGER:
            return f"{kind} from {self.low:.12g} to {self.high:.12g}"
        return f"{kind} of {self.low:.12g} or more" if self.low > -EXACT_INTEGER else kind


@dataclass(frozen=True)
class AsText:
    """Text within a limit of UTF-8 bytes; `blank` tells what to do with nothing but space."""

    limit: int
    limit_name: str
    blank: Literal["refuse", "absent", "keep"] = "refuse"

    def clean(self, name: str, value: Any) -> str | None:
        """Return the text. Raises InputError."""
        if not isinstance(value, str):
            raise InputError(f"{name} must be text, got {type(value).__name__}.")
        try:
            size = len(value.encode("utf-8"))
        except UnicodeEncodeError:
            raise InputError(f"{name} holds half of a surrogate pair, which is no text.") from None
        if size > self.limit:
            raise InputError(
                f"{name} is {size:,} bytes long; the limit ({self.limit_name}) is {self.limit:,}.",
                hint="Split it into several parts.",
            )
        if value.strip():
            return value
        if self.blank == "refuse":
            raise InputError(f"{name} must not be empty or blank.")
        return None if self.blank == "absent" else value


@dataclass(frozen=True)
class AsId(AsText):
    """The id of a memory; where a person or an agent types it, any unique beginning will do."""


@dataclass(frozen=True)
class AsRef:
    """An operation, by its number or by the beginning of its id."""

    def clean(self, name: str, value: Any) -> str | int | None:
        """Return the number or the text. Raises InputError."""
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        if not isinstance(value, str):
            raise InputError(f"{name} must be an operation's number or id, got {shown(value)}.")
        return AsText(1_024, "id").clean(name, value)


@dataclass(frozen=True)
class AsNames:
    """A list of names, without blanks and repeats, in the order given."""

    count: int
    chars: int
    what: ClassVar[str] = "names"

    def clean(self, name: str, value: Any) -> list[str]:
        """Return the names. Raises InputError."""
        if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
            raise InputError(f"{name} must be a list of {self.what}, got {shown(value)}.")
        names: list[str] = []
        for item in value:
            if not isinstance(item, str) or not item.strip():
                raise InputError(f"{name} must hold {self.what}, none blank, got {shown(item)}.")
            if len(item) > self.chars:
                raise InputError(
                    f"A name in {name} has {len(item)} characters; the limit is {self.chars}."
                )
            AsText(4 * self.chars, name).clean(name, item)
            names.append(item.strip())
        names = list(dict.fromkeys(names))
        if len(names) > self.count:
            raise InputError(f"{name} holds {len(names)} {self.what}; the limit is {self.count}.")
        return names


@dataclass(frozen=True)
class AsIds(AsNames):
    """A list of ids of memories."""

    what: ClassVar[str] = "ids"


@dataclass(frozen=True)
class AsWords:
    """A list of words out of a closed set."""

    words: tuple[str, ...]

    def clean(self, name: str, value: Any) -> tuple[str, ...]:
        """Return the words. Raises InputError."""
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InputError(f"{name} must be a list of words, got {shown(value)}.")
        words = tuple(value)
        for word in words:
            if word not in self.words:
                allowed = ", ".join(self.words)
                raise InputError(f"{name} must be of: {allowed} — got {shown(word)}.")
        return words


Rule = Between | AsText | AsRef | AsNames | AsWords | AsMoment | AsSeconds
RULES: Final = (Between, AsText, AsRef, AsNames, AsWords, AsMoment, AsSeconds)


@dataclass(frozen=True)
class Parameter:
    """One parameter as the doors see it: its bare type, sentence, rule, and whether None fits.

    The type is without annotations and without None.
    """

    type: Any
    doc: str
    rule: Rule | None
    optional: bool
    words: tuple[Any, ...]

    @property
    def record(self) -> Any:
        """Return the dataclass that it takes, if it takes one."""
        return self.type if is_dataclass(self.type) else None


@cache
def parameters(owner: Callable[..., Any] | type) -> Mapping[str, Parameter]:
    """Return the parameters of a function, or the fields of a record, by name."""
    found: dict[str, Parameter] = {}
    for name, hint in get_type_hints(owner, include_extras=True).items():
        if get_origin(hint) is Unpack:
            found |= parameters(get_args(hint)[0])
        elif name != "return":
            found[name] = _describe(hint)
    return found


def _describe(hint: Any) -> Parameter:
    parts, extras = unfold(hint)
    kinds = [part for part in parts if part is not NoneType]
    return Parameter(
        Union[tuple(kinds)],  # noqa: UP007 - a union of types known only now
        next((extra.sentence for extra in extras if isinstance(extra, Doc)), ""),
        next((extra for extra in extras if isinstance(extra, RULES)), None),
        optional=NoneType in parts,
        words=next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ()),
    )


def unfold(hint: Any) -> tuple[list[Any], list[Any]]:
    """Return the members of a type, as one part when it is no union, and all it is annotated with.

    `Text | None` where `Text` is Annotated says what `Annotated[str | None, ...]` says.
    """
    if get_origin(hint) is Annotated:
        inner, *extras = get_args(hint)
        parts, more = unfold(inner)
        return parts, extras + more
    if get_origin(hint) not in (Union, UnionType):
        return [hint], []
    unfolded = [unfold(member) for member in get_args(hint)]
    return [p for parts, _ in unfolded for p in parts], [e for _, more in unfolded for e in more]


def clean(
    owner: Callable[..., Any] | type,
    values: Mapping[str, Any],
    *,
    at: float | None = None,
    prefix: str = "",
) -> dict[str, Any]:
    """Return values checked and normalised by the rules of `owner`'s parameters.

    `at` is the present moment by the caller's clock, from which spans count. Raises InputError
    naming the parameter, after `prefix`, and what is allowed.
    """
    known = parameters(owner)
    for name in values:
        if name not in known:
            allowed = ", ".join(one for one in known if one != "store")
            raise InputError(f"{owner.__name__} has no parameter {name!r}; it has: {allowed}.")
    return {
        name: _clean_one(known[name], prefix + name, value, at) for name, value in values.items()
    }


def _clean_one(parameter: Parameter, name: str, value: Any, at: float | None) -> Any:
    if value is None and parameter.optional:
        return None
    if parameter.words:
        if not is_plain(value) or value not in parameter.words:
            allowed = ", ".join(str(word) for word in parameter.words)
            raise InputError(f"{name} must be one of: {allowed} — got {shown(value)}.")
        return parameter.words[parameter.words.index(value)]
    if isinstance(parameter.rule, AsMoment):
        return parameter.rule.clean(name, value, at)
    if parameter.rule is not None:
        return parameter.rule.clean(name, value)
    if parameter.type is bool:
        if not isinstance(value, bool | int) or value not in (0, 1):
            raise InputError(f"{name} must be true or false, got {shown(value)}.")
        return bool(value)
    return value
