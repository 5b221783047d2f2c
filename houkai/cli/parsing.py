"""Parse what stands on the command line without pydantic.

Newer Typer versions hand every word to a pydantic adapter, which takes longer to load than a
listing takes. Its place is taken here for the few types that options have; where Typer keeps no
such place, its own parsing goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

import typer


@dataclass(frozen=True)
class Plain:
    """Turn the words of one option into values of its type."""

    kind: Any

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value, or a list of them. Raises BadParameter."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        try:
            return [self._one(word) for word in value] if several else self._one(value)
        except ValueError as error:
            raise typer.BadParameter(str(error), ctx=ctx, param=param) from None

    def _one(self, word: Any) -> Any:
        if get_origin(self.kind) is Literal:
            words = get_args(self.kind)
            if word not in words:
                raise ValueError(f"{word!r} is not one of {', '.join(map(repr, words))}.")
            return word
        try:
            return self.kind(word)
        except ValueError:
            what = "a whole number" if self.kind is int else "a number"
            raise ValueError(f"{word!r} is not {what}.") from None


def lighten(commands: Iterable[Any], ctx: Any) -> None:
    """Let commands, and those inside them, parse their options here; --help is one of them."""
    for command in commands:
        for parameter in command.get_params(ctx):
            descriptor = getattr(parameter, "type_descriptor", None)
            kind = getattr(descriptor, "annotation", None)
            if get_origin(kind) is list:
                (kind,) = get_args(kind)
            if kind in (str, int, float, bool) or get_origin(kind) is Literal:
                parameter._runtime_param = Plain(kind)
        lighten(filter(None, getattr(command, "commands", {}).values()), ctx)
