"""Errors in the words of the command line: `ttl_seconds` is called --ttl where --ttl was typed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from houkai.errors import HoukaiError
from houkai.model import ExpandSpec, HybridWeights
from houkai.rules import parameters

ARGUMENTS: Final[Mapping[str, str]] = {
    "memory_id": "ID",
    "memory_ids": "ID",
    "prefix": "ID",
    "src_id": "FROM",
    "from_id": "FROM",
    "t1": "FROM",
    "dst_id": "TO",
    "to_id": "TO",
    "t2": "TO",
    "timestamp": "WHEN",
    "old_id": "OLD",
    "new_id": "NEW",
    "target_id": "TARGET",
    "other_id": "OTHER",
    "sources": "TAG",
    "limit": "--number",
    "path": "--db",
}
"""What commands call the parameters that they do not take under the library's name."""
COMMANDS: Final[Mapping[str, str]] = {
    "`journal`": "`houkai journal tail`",
    "`list_recent`": "`houkai list`",
    "`reembed`": "`houkai reembed`",
    "`remember`": "`houkai remember`",
    "`trash_restore`": "`houkai trash restore`",
}
"""The commands that do what a sentence of the library tells to do."""
_QUOTED: Final = r"`[^`]*`|(?<!\w)'[^']*'|\"[^\"]*\""
_SUBJECT: Final = r"^(?:Give |A name in )?"
"""Where a name such as `type`, which is also an English word, is certain to be the parameter."""


def retell(error: HoukaiError, taken: Iterable[Any]) -> None:
    """Change an error's sentences to name what a command takes as its user types it."""
    error.message, error.hint = retold(error.message, taken), retold(error.hint, taken)


def retold(sentence: str, taken: Iterable[Any]) -> str:
    """Return a sentence of the library as it reads to the user of a command that takes these."""
    return _retold(sentence, _names(taken))


def _names(taken: Iterable[Any]) -> dict[str, str]:
    """Return how each parameter of the library is typed."""
    typed = {one.name: _typed(one) for one in taken}
    names = {**ARGUMENTS, **typed}
    if "weights" in typed:
        names |= {f"weights.{name}": f"--weight {name}" for name in parameters(HybridWeights)}
        names |= {f"expand.{name}": typed[f"expand_{name}"] for name in parameters(ExpandSpec)}
    return names


def _typed(parameter: Any) -> str:
    long = [flag for flag in parameter.opts if flag.startswith("--")]
    return long[0] if long else str(parameter.metavar or parameter.name.upper())


def _retold(sentence: str, names: Mapping[str, str]) -> str:
    """Replace names outside quotes: those that are no word anywhere, others where they lead.

    Operations, which stand in backticks, become the commands that do them.
    """
    odd = [name for name in names if not name.isalpha()]
    pattern = rf"({_QUOTED})|({_SUBJECT})({_any(names)})|({_any(odd)})"

    def put(match: re.Match[str]) -> str:
        quoted, before, leading, inside = match.groups()
        if quoted:
            return COMMANDS.get(quoted, quoted)
        return (before or "") + names[leading or inside]

    return re.sub(pattern, put, sentence)


def _any(names: Iterable[str]) -> str:
    longest_first = sorted(names, key=len, reverse=True)
    return rf"(?<![\w./-])(?:{'|'.join(map(re.escape, longest_first))})(?!\w|[./-]\w)"
