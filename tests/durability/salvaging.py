"""What the tests of salvage share: how a file is rescued, and what must hold of it."""

from __future__ import annotations

from pathlib import Path

from houkai import StorageError
from houkai.ops.salvage import Salvaged, salvage
from houkai.storage.remains import LOST
from tests.durability.checks import Contents, assert_sound, opened
from tests.support import contents, sha256

PAGE = 4_096


def rescued(path: Path, data: bytes) -> tuple[Salvaged, Contents]:
    """Salvage bytes; the source must stay as it was, and what comes out must be sound."""
    path.write_bytes(data)
    before = sha256(path)
    target = path.with_name("salvaged.db")
    target.unlink(missing_ok=True)
    try:
        report = salvage(path, target)
    except StorageError:
        assert not target.exists()
        raise
    finally:
        assert sha256(path) == before
        assert sorted(p.name for p in path.parent.glob("memory.db*")) == [path.name]
        assert not list(path.parent.glob("salvage-*"))
    if report.vectors == report.memories:
        assert_sound(target)
    held = _held(target)
    assert report.memories == len(held)
    return report, held


def _held(target: Path) -> Contents:
    with opened(target) as store, opened(target, collection=LOST) as other:
        return contents(store) | contents(other)
