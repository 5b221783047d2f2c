"""A memory as a small file for an editor: its fields as TOML between +++ lines, then its text."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

from houkai import clock, render, settings
from houkai.cli import session
from houkai.errors import InputError
from houkai.model import Memory

FENCE: Final = "+++"
NAMES: Final = ("source", "author", "position")
TIMES: Final = ("created_at", "expires_at", "valid_from", "valid_until")
FIELDS: Final = (
    *("type", "tags", "entities", "importance", "polarity", "trust", "pinned"),
    *NAMES,
    *TIMES,
)
FOLLOWING: Final = ("content_hash", "last_accessed", "access_count")
"""Fields that change with others or by themselves."""


def written(memory: Memory) -> str:
    """Return a memory as the text of the file."""
    lines = [FENCE, '# "" clears a name or a time. Leave everything as it is to change nothing.']
    for name in FIELDS:
        value = getattr(memory, name)
        if name in TIMES:
            value = clock.iso(value)
        lines.append(f"{name} = {_toml('' if value is None else value)}")
    return "\n".join([*lines, FENCE, memory.text, ""])


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    # JSON's escapes are TOML's, but TOML wants DEL escaped too.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def changes(old: str, new: str) -> dict[str, Any]:
    """Return what `edit` is to change between two versions of the file. Raises InputError."""
    fields, text = _read(old)
    revised, new_text = _read(new)
    unknown = [name for name in revised if name not in FIELDS]
    if unknown:
        raise InputError(f"There is no field {unknown[0]!r}; fields are: {', '.join(FIELDS)}.")
    found = {name: value for name, value in revised.items() if fields[name] != value}
    for name in found:
        if found[name] == "" and name in (*NAMES, *TIMES):
            found[name] = None if name in NAMES else 0
    return found if text == new_text else {**found, "text": new_text}


def _read(document: str) -> tuple[dict[str, Any], str]:
    """Return the fields and the text of a file. Raises InputError."""
    lines = document.lstrip("\ufeff").replace("\r\n", "\n").split("\n")
    try:
        start = lines.index(FENCE)
        end = lines.index(FENCE, start + 1)
    except ValueError:
        raise InputError(f"The file has lost a {FENCE} line, which encloses the fields.") from None
    try:
        # Counting the lines above keeps the numbers in TOML's complaints those of the file.
        fields = tomllib.loads("\n" * (start + 1) + "\n".join(lines[start + 1 : end]))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"The fields are no TOML: {error}.") from None
    return fields, "\n".join(lines[end + 1 :]).strip()


def revise(memory: Memory) -> dict[str, Any]:
    """Open a memory in the user's editor and return what was changed. Raises InputError."""
    old, command = written(memory), _editor()
    handle, name = tempfile.mkstemp(prefix=f"houkai-{render.short(memory.id)}-", suffix=".md")
    path = Path(name)
    with open(handle, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(old)
    try:
        _edit(command, path)
        found = changes(old, path.read_text(encoding="utf-8"))
    except (InputError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, InputError) else "The file is no UTF-8 text."
        raise InputError(reason, hint=f"Nothing was changed; the file is kept: {path}") from None
    path.unlink(missing_ok=True)
    return found


def _edit(command: str, path: Path) -> None:
    try:
        code = subprocess.call([*shlex.split(command, posix=os.name != "nt"), str(path)])
    except OSError as error:
        raise InputError(f"The editor {command!r} cannot be started: {error.strerror}.") from None
    if code:
        raise InputError(f"The editor {command!r} ended with code {code}.")


def _editor() -> str:
    configured = settings.load().config.get("editor")
    usual = "notepad" if os.name == "nt" else "vi"
    named = configured or os.environ.get("VISUAL") or os.environ.get("EDITOR")
    # Nobody chose the usual one, and without a terminal it waits for keys that cannot come.
    if not named and not session.can_ask():
        raise InputError(
            "There is no terminal for an editor.", hint="Give what changes, such as --text."
        )
    return str(named or usual)
