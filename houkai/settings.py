"""Where the memory file is and what a user has set: flag, environment, config file, default.

The library reads it only for what a caller left out; every door resolves the same way.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from houkai.errors import InputError


@dataclass(frozen=True)
class Place:
    """A setting's value, and where it was found: "flag", "environment", a file, or "default"."""

    value: str
    origin: str


KEYS: Final = ("db", "collection", "embedder", "editor")
"""What a config file may set."""


@dataclass(frozen=True)
class UserSettings:
    """What applies to this process."""

    db: Place
    collection: Place
    embedder: Place
    config_path: Path
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def unknown(self) -> list[str]:
        """Return the keys of the config file that nothing reads, such as mistyped ones."""
        return [name for name in self.config if name not in KEYS]


def config_path() -> Path:
    """Return the path of the config file, which need not exist."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(os.environ.get("HOUKAI_CONFIG") or Path(base) / "houkai" / "config.toml")


def load(
    db: str | None = None, collection: str | None = None, embedder: str | None = None
) -> UserSettings:
    """Resolve the settings; arguments are what a caller or a flag gave. Raises InputError."""
    path = config_path()
    config = _read(path)
    home = str(Path.home() / ".houkai" / "memory.db")
    return UserSettings(
        db=_resolve(db, "HOUKAI_DB", config.get("db"), path, home),
        collection=_resolve(
            collection, "HOUKAI_COLLECTION", config.get("collection"), path, "default"
        ),
        embedder=_resolve(embedder, "HOUKAI_EMBEDDER", config.get("embedder"), path, "minilm"),
        config_path=path,
        config=config,
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(
            f"The config file {path} cannot be read: {error}.", hint="Mend it or move it away."
        ) from error


def _resolve(given: str | None, variable: str, configured: Any, path: Path, default: str) -> Place:
    if given:
        return Place(given, "flag")
    if environment := os.environ.get(variable):
        return Place(environment, variable)
    if configured is not None:
        if not isinstance(configured, str) or not configured:
            raise InputError(
                f"In {path}, db, collection and embedder must be text, got {configured!r}."
            )
        return Place(configured, str(path))
    return Place(default, "default")
