"""A file system that fails, fills up or loses its power at a chosen moment, and heals when told."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import apsw

Kind = Literal["write", "sync", "truncate"]


@dataclass(frozen=True)
class Fault:
    """Fail the call of a kind with this number, counted from 1, and all later ones if it stays.

    With a file's name, only calls for that file.
    """

    kind: Kind
    at: int
    stays: bool = False
    file: str = ""


class Disk(apsw.VFS):
    """The usual file system with faults; it is the default one while it is there."""

    def __init__(self) -> None:
        self.base = apsw.vfs_names()[0]
        self.fault: Fault | None = None
        self.room: int | None = None
        """Bytes that are still free, None for enough."""
        self.calls: Counter[Kind] = Counter()
        self.met = 0
        self.unsynced: dict[str, list[tuple[int, bytes, bytes]]] | None = None
        super().__init__("faulty", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> File:
        """Open a file of this disk."""
        return File(self, name, flags)

    def heal(self) -> None:
        """Let everything succeed from now on."""
        self.fault = self.room = None

    def meet(self, kind: Kind, name: str) -> bool:
        """Count a call and say whether it is to fail."""
        self.calls[kind] += 1
        fault = self.fault
        if fault is None or fault.kind != kind or not name.endswith(fault.file):
            return False
        number = self.calls[kind]
        failing = number == fault.at or (fault.stays and number > fault.at)
        self.met += failing
        return failing

    def remove(self) -> None:
        """Make the usual file system the default again."""
        apsw.set_default_vfs(self.base)
        self.unregister()


class File(apsw.VFSFile):
    """A file on such a disk."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__(disk.base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        """Write; a write that fails leaves half of its bytes behind."""
        if self.disk.meet("write", self.name):
            super().xWrite(data[: len(data) // 2], offset)
            raise apsw.IOError("a write failed")
        self._make_room(data, offset)
        self._note(data, offset)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        """Say that all is on the disk."""
        if self.disk.meet("sync", self.name):
            raise apsw.IOError("a sync failed")
        super().xSync(flags)
        if self.disk.unsynced is not None:
            self.disk.unsynced.pop(self.name, None)

    def xTruncate(self, size: int) -> None:
        """Cut the file."""
        if self.disk.meet("truncate", self.name):
            raise apsw.IOError("a truncation failed")
        if self.disk.room is not None:
            self.disk.room += max(0, self.xFileSize() - size)
        super().xTruncate(size)

    def _make_room(self, data: bytes, offset: int) -> None:
        """Take from the disk's room what the file grows by; a full disk still takes a part."""
        if self.disk.room is None:
            return
        there = self.xFileSize()
        growth = max(0, offset + len(data) - there)
        if growth > self.disk.room:
            self.disk.met += 1
            part = max(0, there - offset) + self.disk.room
            self.disk.room = 0
            if part:
                super().xWrite(data[:part], offset)
            raise apsw.FullError("no space left")
        self.disk.room -= growth

    def _note(self, data: bytes, offset: int) -> None:
        """Keep what a write replaces, to be able to lose it."""
        if self.disk.unsynced is None:
            return
        there = max(0, min(len(data), self.xFileSize() - offset))
        before = self.xRead(there, offset) if there else b""
        self.disk.unsynced.setdefault(self.name, []).append((offset, before, data))


@contextmanager
def faulty() -> Iterator[Disk]:
    """Yield a disk on which everything that is opened lies, until the end of the block."""
    disk = Disk()
    try:
        yield disk
    finally:
        disk.heal()
        disk.remove()


def after_power_loss(disk: Disk, path: Path, target: Path, chance: random.Random) -> None:
    """Write what a power cut now would leave of a file: of unsynced writes, some, in any order."""
    for suffix in ("", "-wal", "-journal"):
        source = Path(f"{path}{suffix}")
        if not source.exists():
            continue
        image = bytearray(source.read_bytes())
        writes = (disk.unsynced or {}).get(str(source), [])
        for offset, before, data in reversed(writes):
            image[offset : offset + len(data)] = before.ljust(len(data), b"\0")
        for offset, _, data in chance.sample(writes, chance.randint(0, len(writes))):
            image[offset : offset + len(data)] = data
        Path(f"{target}{suffix}").write_bytes(image)
