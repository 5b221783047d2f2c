"""Command options built from `houkai.params`: the sentence of a parameter is its help.

`takes` gives a command one option for each parameter of a group, so that a new filter becomes a
flag by being written down once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypedDict, TypeVar, get_args, get_origin

import typer

from houkai import params, render
from houkai.options import OBJECTS
from houkai.rules import AsNames, AsWords, Between, Doc, Parameter, parameters
from houkai.time_rules import AsMoment, AsSeconds

Command = TypeVar("Command", bound=Callable[..., None])

# What a flag is called where it is not the parameter's own name.
FLAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "type": ("--type", "-t"),
    "tag": ("--tag", "-g"),
    "tags": ("--tag", "-g"),
    "importance": ("--importance", "-i"),
    "source": ("--source", "-s"),
    "collection": ("--collection", "-C"),
    "ttl_seconds": ("--ttl",),
    "pinned": ("--pin/--no-pin",),
    "entities": ("--entity",),
    "memory_id": ("--memory",),
    "limit": ("--limit", "-n"),
    "k": ("--limit", "-k"),
    "touch": ("--touch/--no-touch",),
    "rel": ("--rel", "-r"),
    "direction": ("--direction", "-d"),
    "depth": ("--depth", "-D"),
    "threshold": ("--threshold", "-T"),
    "token_budget": ("--budget", "-b"),
    "older_than_days": ("--older-than",),
    "weights": ("--weight", "-w"),
    "expand_depth": ("--expand", "-x"),
    "expand_rels": ("--expand-rel",),
}


class EditOptions(TypedDict, total=False):
    """What `edit` may change, the text aside."""

    type: params.Type
    tags: params.Tags
    importance: params.Importance
    source: params.Source
    polarity: params.Sentiment
    expires_at: params.ExpiresAt
    pinned: params.Pinned
    trust: params.TrustLevel
    valid_from: params.ValidFrom
    valid_until: params.ValidUntil
    created_at: params.CreatedAt
    author: params.Author
    position: params.Position
    entities: params.Entities


class RememberOptions(EditOptions, total=False):
    """What `remember` takes beside the text."""

    ttl_seconds: params.Ttl
    on_conflict: params.OnConflict
    idempotent: params.Idempotent


class WhoAndWhen(TypedDict, total=False):
    """Which operations a command is about."""

    memory_id: params.MemoryId
    actor: params.Actor
    session: params.Session
    since: params.DoneSince


def sentence(alias: Any) -> str:
    """Return the sentence of a parameter."""
    return next(extra.sentence for extra in get_args(alias) if isinstance(extra, Doc))


def takes(group: type, *, leave: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Replace the `**options` of a command by an option for each parameter of a group."""

    def decorate(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        taken = {p.name for p in own} | set(leave)
        more = [_option(name, parameter) for name, parameter in _flat(group) if name not in taken]
        command.__signature__ = signature.replace(parameters=own + more)  # type: ignore[attr-defined]
        return command

    return decorate


def _flat(group: type) -> Iterator[tuple[str, Parameter]]:
    """Yield the parameters of a group, with the fields of a record in the place of the record."""
    for name, parameter in parameters(group).items():
        if parameter.record and name not in OBJECTS:
            for field, part in parameters(parameter.record).items():
                yield f"{name}_{field}", part
        else:
            yield name, parameter


def _option(name: str, parameter: Parameter) -> inspect.Parameter:
    kind, metavar = _kind(parameter)
    flags = FLAGS.get(name, ("--" + name.replace("_", "-"),))
    doc = parameter.doc
    if parameter.record:
        doc += f" NAME is one of: {', '.join(parameters(parameter.record))}."
    if get_origin(kind) is list:
        doc += " May be repeated."
    info = typer.Option(*flags, help=doc, metavar=metavar, show_default=False)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, info],
    )


def _kind(parameter: Parameter) -> tuple[Any, str | None]:
    """Return the type that Typer parses a parameter as, and what its help calls the value."""
    if parameter.words and all(isinstance(word, str) for word in parameter.words):
        return Literal[parameter.words], "|".join(parameter.words)
    if parameter.words:
        return int, "|".join(map(str, parameter.words))
    if parameter.record:
        return list[str], "NAME=X"
    match parameter.rule:
        case AsNames():
            return list[str], "NAME"
        case AsWords(words):
            return list[str], "|".join(words)
        case Between(whole=True):
            return int, "N"
        case Between():
            return float, "X"
        case AsMoment():
            return str, "WHEN"
        case AsSeconds():
            return str, "SPAN"
    is_flag = parameter.type is bool or bool in get_args(parameter.type)
    return (bool, None) if is_flag else (str, "TEXT")


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that the user gave."""
    return {name: value for name, value in options.items() if value is not None}


Id = Annotated[str, typer.Argument(metavar="ID", help=sentence(params.MemoryId))]
Ids = Annotated[list[str], typer.Argument(metavar="ID", help=sentence(params.MemoryId))]
Query = Annotated[str, typer.Argument(metavar="QUERY", help=sentence(params.Query))]
Operation = Annotated[
    str,
    typer.Argument(metavar="ID|NUMBER", help="An operation as `houkai journal tail` names it."),
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many to show at most.")]
Output = Annotated[
    render.Format,
    typer.Option(
        "--format",
        "-f",
        metavar="auto|rich|tsv|json|jsonl",
        help="auto: a table on a terminal, TSV in a pipe; json: whole records.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
