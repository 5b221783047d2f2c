"""Fetch the original files of a model from the hub, when a user asks for them and never else.

models.lock pins the revision and each file's SHA-256. A download that was cut off goes on where it
ended; a file takes its name only once its bytes are the pinned ones. HF_ENDPOINT names another
hub, HF_TOKEN a key for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, Final, Literal

from houkai.embed.lockfile import LockedFile, cache_folder, lock_path
from houkai.errors import ModelMissing, NotFound, NotReady

Progress = Callable[[str, int, int], None]
State = Literal["missing", "partial", "present", "damaged", "verified"]
HUB: Final = "https://huggingface.co"
HEAD_S: Final = 10.0


@dataclass(frozen=True)
class HubModel:
    """The originals of a model, as models.lock pins them."""

    name: str
    repository: str
    revision: str
    licence: str
    dimension: int
    files: tuple[LockedFile, ...]

    @property
    def folder(self) -> Path:
        """Say where pulled files are kept: in the user's cache, a folder a revision."""
        cache = cache_folder()
        if cache is None:
            raise NotReady("No home folder is known, so there is no place for pulled models.")
        return cache / "houkai" / "models" / self.name / self.revision

    def chosen(self, names: Sequence[str]) -> list[LockedFile]:
        """Return the files of these names, all when none is named. Raises NotFound."""
        known = {file.name: file for file in self.files}
        for name in names:
            if name not in known:
                raise NotFound(
                    f"{self.name} has no file {name!r} on the hub; it has: {', '.join(known)}."
                )
        return [known[name] for name in names] if names else list(self.files)


@cache
def hub_models() -> dict[str, HubModel]:
    """Return every model of models.lock whose originals are on the hub."""
    lock = tomllib.loads(lock_path().read_text(encoding="utf-8"))
    return {
        name: HubModel(
            name,
            entry["hub"]["repository"],
            entry["revision"],
            entry["licence"],
            entry["dimension"],
            tuple(
                LockedFile(file, about["sha256"], about["bytes"])
                for file, about in entry["hub"]["files"].items()
            ),
        )
        for name, entry in lock["models"].items()
        if "hub" in entry
    }


def hub_model(name: str) -> HubModel:
    """Return a model by its name. Raises NotFound."""
    models = hub_models()
    if name not in models:
        raise NotFound(f"models.lock has no model {name!r}; it has: {', '.join(models)}.")
    return models[name]


def state(path: Path, file: LockedFile, *, hashed: bool = True) -> State:
    """Say what is there of a file; "present" is one of the right size that was not hashed."""
    if not path.is_file():
        return "partial" if _part(path).is_file() else "missing"
    if not hashed and path.stat().st_size == file.bytes:
        return "present"
    return "verified" if _is_pinned(path, file) else "damaged"


def pull(name: str, files: Sequence[str] = (), *, progress: Progress | None = None) -> list[Path]:
    """Download files of a model that are not there yet, all when none is named.

    `progress` is called with (file, bytes done, bytes in all). Raises NotFound, NotReady.
    """
    model = hub_model(name)
    return [_pull(model, file, progress) for file in model.chosen(files)]


def _pull(model: HubModel, file: LockedFile, progress: Progress | None) -> Path:
    path = model.folder / file.name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NotReady(f"{path.parent} cannot be made: {error.strerror}.") from error
    with _alone(path):
        if not (path.is_file() and _is_pinned(path, file)):
            path.unlink(missing_ok=True)
            _fetch(model, file, _part(path), progress)
            os.replace(_part(path), path)
    return path


def _fetch(model: HubModel, file: LockedFile, part: Path, progress: Progress | None) -> None:
    """Bring the rest of a file and refuse it unless it is the pinned one."""
    if part.exists() and part.stat().st_size > file.bytes:
        part.unlink()
    with _told(model, file), _quiet():
        from huggingface_hub import hf_hub_url, utils
        from huggingface_hub.file_download import http_get

        tools: Any = utils
        endpoint = os.environ.get("HF_ENDPOINT") or HUB
        url = hf_hub_url(model.repository, file.name, revision=model.revision, endpoint=endpoint)
        token: str | bool = os.environ.get("HF_TOKEN") or False
        _check_offer(model, file, url, token)
        # hf_hub_download begins every call anew, so what it got before a cut would be lost.
        with part.open("ab") as stream:
            counted = _Counted(stream, file, progress)
            http_get(
                url,
                counted,  # type: ignore[arg-type]
                resume_size=stream.tell(),
                headers={**tools.build_hf_headers(token=token), "Accept-Encoding": "identity"},
                expected_size=file.bytes,
                displayed_filename=file.name,
            )
            os.fsync(stream.fileno())
    if not _is_pinned(part, file):
        part.unlink()
        raise ModelMissing(
            f"{file.name} of {model.name} came with other bytes than models.lock pins, "
            "so it was removed.",
            hint="Try again; if it happens again, the hub or what HF_ENDPOINT names is not to "
            "be trusted.",
        )


def _check_offer(model: HubModel, file: LockedFile, url: str, token: str | bool) -> None:
    """Refuse another revision or file before its bytes are paid for."""
    from huggingface_hub import get_hf_file_metadata

    offer = get_hf_file_metadata(url, token=token, timeout=HEAD_S)
    sha256 = offer.etag if offer.etag and len(offer.etag) == 64 else file.sha256
    found = (offer.commit_hash, offer.size or file.bytes, sha256)
    if found != (model.revision, file.bytes, file.sha256):
        raise ModelMissing(
            f"The hub offers another {file.name} of {model.name} than models.lock pins, "
            "so it was not downloaded.",
            hint="Check HF_ENDPOINT, or upgrade houkai.",
        )


class _Counted:
    """A file that tells how much of it there is."""

    def __init__(self, stream: IO[bytes], file: LockedFile, progress: Progress | None) -> None:
        self._stream = stream
        self._file = file
        self._progress = progress
        self._tell()

    def write(self, chunk: bytes) -> int:
        """Write and tell."""
        number = self._stream.write(chunk)
        self._tell()
        return number

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._file.name, self._stream.tell(), self._file.bytes)

    def __getattr__(self, name: str) -> Any:
        """Be the file in everything else."""
        return getattr(self._stream, name)


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _is_pinned(path: Path, file: LockedFile) -> bool:
    if path.stat().st_size != file.bytes:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep two pulls from writing one file. Raises NotReady."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(path.with_name(f"{path.name}.lock"), timeout=0):
            yield
    except Timeout:
        raise NotReady(
            f"Another process is pulling {path.name} now.", hint="Wait for it, then try again."
        ) from None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the hub's own bars and warnings from the caller's terminal."""
    from huggingface_hub import utils

    tools: Any = utils
    bars, level = "huggingface_hub.http_get", tools.logging.get_verbosity()
    shown = not tools.are_progress_bars_disabled(bars)
    if shown:
        tools.disable_progress_bars(bars)
    tools.logging.set_verbosity_error()
    try:
        yield
    finally:
        tools.logging.set_verbosity(level)
        if shown:
            tools.enable_progress_bars(bars)


@contextlib.contextmanager
def _told(model: HubModel, file: LockedFile) -> Iterator[None]:
    """Turn what the hub's client raises into one sentence.

    By its version that client stands on requests, httpx or httpx2, each with errors of its own.
    """
    from huggingface_hub.errors import (
        EntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except NotReady:
        raise
    except OfflineModeIsEnabled:
        raise NotReady(
            "HF_HUB_OFFLINE forbids downloads.", hint="Unset it and try again."
        ) from None
    except (EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise ModelMissing(
            f"The hub does not have {file.name} of {model.repository} at the pinned revision.",
            hint="Check HF_ENDPOINT, or upgrade houkai.",
        ) from error
    except Exception as error:
        raise NotReady(
            f"{file.name} of {model.repository} could not be downloaded ({_reason(error)}).",
            hint="Run the same command again; it goes on where this one ended.",
        ) from error


def _reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP {response.status_code}"
    return getattr(error, "strerror", None) or type(error).__name__
