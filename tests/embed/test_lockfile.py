from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from houkai.embed import MiniLM, lockfile
from houkai.embed.lockfile import LockedFile, LockedModel, locked, verify
from houkai.errors import ModelMissing

CONTENT = {"model.onnx": b"graph" * 100, "tokenizer.json": b"{}"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep stamps out of the user's own cache."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(lockfile, "cache_folder", lambda: folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the files of MODEL, written long ago."""
    for name, content in CONTENT.items():
        (tmp_path / name).write_bytes(content)
        os.utime(tmp_path / name, (1e9, 1e9))
    return tmp_path


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the list of files hashed so far."""
    seen: list[Path] = []
    check = lockfile._check_hash

    def watched(path: Path, file: LockedFile) -> None:
        seen.append(path)
        check(path, file)

    monkeypatch.setattr(lockfile, "_check_hash", watched)
    return seen


def _model() -> LockedModel:
    files = tuple(
        LockedFile(name, hashlib.sha256(content).hexdigest(), len(content))
        for name, content in CONTENT.items()
    )
    return LockedModel("small", 8, 256, 1, "Apache-2.0", "0", files)


def test_shipped_files_are_the_pinned_ones() -> None:
    """A wheel built around other weights would give vectors that no other install can read."""
    model = locked("all-MiniLM-L6-v2")
    assert (model.dimension, model.window) == (384, 256)
    verify(model, model.folder)


def test_fingerprint_follows_files_window_and_pooling() -> None:
    """A fingerprint that misses one of them would let two vector spaces mix in one file."""
    model = _model()
    file = LockedFile("model.onnx", "0" * 64, 500)
    prints = {
        model.fingerprint,
        LockedModel("small", 8, 128, 1, "", "", model.files).fingerprint,
        LockedModel("small", 8, 256, 2, "", "", model.files).fingerprint,
        LockedModel("small", 8, 256, 1, "", "", (file, *model.files[1:])).fingerprint,
    }
    assert len(prints) == 4


@pytest.mark.parametrize("name", list(CONTENT))
def test_flipped_byte_is_refused(folder: Path, name: str) -> None:
    """A damaged weight would spoil vectors without any error."""
    damaged = bytearray(CONTENT[name])
    damaged[len(damaged) // 2] ^= 1
    (folder / name).write_bytes(damaged)
    with pytest.raises(ModelMissing, match="damaged") as caught:
        verify(_model(), folder)
    assert name in str(caught.value)
    assert "pip install" in caught.value.hint


def test_truncated_file_is_refused_without_hashing(folder: Path, hashed: list[Path]) -> None:
    """A half-copied file would crash onnxruntime while it maps the weights."""
    (folder / "model.onnx").write_bytes(CONTENT["model.onnx"][:-1])
    with pytest.raises(ModelMissing, match="499 bytes instead of 500"):
        verify(_model(), folder)
    assert hashed == []


def test_missing_file_is_named(folder: Path) -> None:
    """A user must learn which file is gone and what to run."""
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelMissing, match=r"tokenizer\.json is missing"):
        verify(_model(), folder)


def test_unknown_model_is_refused() -> None:
    """A misspelt model must not fail later with a KeyError."""
    with pytest.raises(ModelMissing, match="does not describe the model 'none'"):
        locked("none")


def test_unchanged_files_are_hashed_once(folder: Path, hashed: list[Path]) -> None:
    """Hashing at every start would double what loading the model costs a command."""
    for _ in range(3):
        verify(_model(), folder)
    assert len(hashed) == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps no time of the last change of metadata")
def test_damage_that_restores_the_times_is_seen(folder: Path) -> None:
    """Tools such as rsync set the old time on new bytes, which size and mtime cannot tell."""
    verify(_model(), folder)
    path = folder / "model.onnx"
    before = path.stat()
    with path.open("r+b") as handle:
        handle.write(b"GRAPH")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ModelMissing, match="damaged"):
        verify(_model(), folder)


def test_just_written_files_are_hashed_again(folder: Path, hashed: list[Path]) -> None:
    """A write within the clock's grain after the hash would leave the times as they were."""
    (folder / "model.onnx").touch()
    verify(_model(), folder)
    verify(_model(), folder)
    assert len(hashed) == 4


@pytest.mark.parametrize("broken", ["file in the way", "no home"])
def test_unwritable_cache_only_costs_time(
    folder: Path, cache: Path, hashed: list[Path], broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container with a read-only or absent home must still get its model."""
    if broken == "no home":
        monkeypatch.setattr(lockfile, "cache_folder", lambda: None)
    cache.write_text("not a folder")
    verify(_model(), folder)
    verify(_model(), folder)
    assert len(hashed) == 4


def test_model_checks_its_files_before_the_first_vector(tmp_path: Path) -> None:
    """An embedder that skips the check would make the lock file decoration."""
    embedder = MiniLM(tmp_path)
    assert embedder.dim == 384
    with pytest.raises(ModelMissing, match="is missing"):
        embedder.query("text")
