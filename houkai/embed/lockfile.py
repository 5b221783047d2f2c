"""Read models.lock and refuse a model file that is not the one it pins.

Reading needs the standard library only, so a store can be matched with its model by fingerprint
before numpy or onnxruntime is loaded.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from houkai.errors import ModelMissing

PACKAGE: Final = Path(__file__).resolve().parent.parent
REINSTALL: Final = "Run: pip install --force-reinstall houkai"
SETTLED_S: Final = 2.0


@dataclass(frozen=True)
class LockedFile:
    """One file of a model and what it must be."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class LockedModel:
    """One entry of models.lock."""

    name: str
    dimension: int
    window: int
    pooling: int
    licence: str
    revision: str
    files: tuple[LockedFile, ...]

    @property
    def fingerprint(self) -> str:
        """Identify the vector space: every file, the window and how vectors are pooled."""
        parts = [self.name, str(self.window), str(self.pooling)]
        parts += [f"{file.name} {file.sha256}" for file in self.files]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @property
    def folder(self) -> Path:
        """Say where the package keeps the model's files."""
        return PACKAGE / "models" / self.name


def lock_path() -> Path:
    """Return where models.lock is: in an installed package, or beside an editable one."""
    for path in (PACKAGE / "models.lock", PACKAGE.parent / "models.lock"):
        if path.is_file():
            return path
    raise ModelMissing("The houkai package has lost its models.lock.", hint=REINSTALL)


@cache
def locked(name: str) -> LockedModel:
    """Return what models.lock says about a model."""
    path = lock_path()
    try:
        entry = tomllib.loads(path.read_text(encoding="utf-8"))["models"][name]
        return _parse(entry)
    except (OSError, ValueError, LookupError, TypeError) as error:
        sentence = f"{path} does not describe the model {name!r}."
        raise ModelMissing(sentence, hint=REINSTALL) from error


def _parse(entry: dict[str, Any]) -> LockedModel:
    files = sorted(entry["files"].items())
    return LockedModel(
        name=entry["name"],
        dimension=entry["dimension"],
        window=entry["window"],
        pooling=entry["pooling"],
        licence=entry["licence"],
        revision=entry["revision"],
        files=tuple(LockedFile(name, about["sha256"], about["bytes"]) for name, about in files),
    )


def verify(model: LockedModel, folder: Path, *, again: bool = False) -> None:
    """Raise ModelMissing unless each file of the model in `folder` has the pinned bytes.

    Hashing 45 MB costs a one-shot command about as much as loading the model. Bytes that were
    right stay right until somebody writes the file, which moves its change time; so each state
    of the files on disk is hashed once, and only their sizes are read after that, unless `again`
    asks for more. This guards against damage, not against somebody who can write to the package.
    """
    states = [_state(folder / file.name, file) for file in model.files]
    stamp = _stamp(model, states)
    known = stamp is not None and os.path.exists(stamp)  # False, too, where it may not be asked
    if known and not again:
        return
    for file in model.files:
        _check_hash(folder / file.name, file)
    if stamp is not None and _settled(folder, model):
        _leave(stamp)


def _state(path: Path, file: LockedFile) -> str:
    try:
        found = path.stat()
    except OSError as error:
        raise ModelMissing(f"The model file {path} is missing.", hint=REINSTALL) from error
    if found.st_size != file.bytes:
        raise ModelMissing(
            f"The model file {path} is damaged: it has {found.st_size} bytes instead of "
            f"{file.bytes}.",
            hint=REINSTALL,
        )
    return f"{path.absolute()} {found.st_ino} {found.st_mtime_ns} {found.st_ctime_ns}"


def _check_hash(path: Path, file: LockedFile) -> None:
    try:
        with path.open("rb") as handle:
            actual = hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError as error:
        raise ModelMissing(f"The model file {path} cannot be read.", hint=REINSTALL) from error
    if actual != file.sha256:
        raise ModelMissing(
            f"The model file {path} is damaged: its SHA-256 is not the one in models.lock.",
            hint=REINSTALL,
        )


def _settled(folder: Path, model: LockedModel) -> bool:
    """Say whether the files are old enough that a later write must show in their times."""
    newest = max((folder / file.name).stat().st_mtime for file in model.files)
    return time.time() - newest > SETTLED_S


def _stamp(model: LockedModel, states: list[str]) -> Path | None:
    """Return the empty file whose presence says that these states were hashed and right."""
    cache = cache_folder()
    if cache is None:
        return None
    # The fingerprint holds every pinned hash, so a new models.lock leaves old stamps unused.
    key = hashlib.sha256("\n".join([model.fingerprint, *states]).encode("utf-8", "surrogateescape"))
    return cache / "houkai" / "verified" / key.hexdigest()


def _leave(stamp: Path) -> None:
    """Create the stamp; where the cache cannot be written, every start hashes again."""
    try:
        stamp.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp.touch(exist_ok=True)
    except OSError:
        return


def cache_folder() -> Path | None:
    """Return the user's cache folder, None where no home is known."""
    try:
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches"
        given = Path(os.environ.get("XDG_CACHE_HOME") or "")
        return given if given.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
