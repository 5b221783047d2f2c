"""What to say to a command line that does not fit: how the command that was meant is typed."""

from __future__ import annotations

from typing import Any, Final

TEXTS: Final = frozenset({"TEXT", "QUERY", "TASK"})
"""Arguments that are typed in several words."""
IDS: Final = frozenset({"ID", "ID|NUMBER"})


def advise(error: Any) -> None:
    """Add to a usage error's message what to type instead, where that can be told."""
    ctx, message = getattr(error, "ctx", None), str(getattr(error, "message", ""))
    if ctx is None:
        return
    if "unexpected extra argument" in message:
        error.message = f"{message}. {_takes(ctx)}"
    elif message.startswith("No such option") and ctx.parent is None:
        error.message = f"{message}. Options of a command stand after it."
    elif message.startswith("No such command") and ctx.parent and "Did you mean" not in message:
        error.message = f"{message} {_has(ctx, message)}"


def _takes(ctx: Any) -> str:
    """Say what arguments a command takes."""
    names = _arguments(ctx.command)
    if TEXTS & set(names):
        return "Put quotes around a text with spaces."
    if names:
        return f"It takes: {' '.join(names)}."
    return "It takes options alone; --db names a memory file."


def _has(ctx: Any, message: str) -> str:
    """Say what commands a group has, and which was likely meant where an id stands for one."""
    commands = ctx.command.commands
    word = message.partition("'")[2].rpartition("'")[0]
    about_one = [name for name in commands if IDS & set(_arguments(commands[name])[:1])]
    meant = f" Did you mean: {ctx.command_path} {about_one[0]} {word}" if about_one else ""
    return f"There are: {', '.join(commands)}.{meant}"


def _arguments(command: Any) -> list[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    return [one.metavar or one.name.upper() for one in arguments]
