"""Tell what a path holds before anything is opened for writing."""

from __future__ import annotations

import os
import re
import stat
from enum import Enum
from pathlib import Path
from typing import Final

from houkai.errors import Corrupt, Foreign, ReadOnly, StorageError

APPLICATION_ID: Final = int.from_bytes(b"hkai", "big")
_MAGIC: Final = b"SQLite format 3\x00"
_HEADER: Final = 100


class Found(Enum):
    """What stands at a path."""

    NOTHING = "nothing"
    DATABASE = "database"


def inspect(path: Path) -> Found:
    """Say whether a path is free or holds a SQLite database.

    Raises Foreign for any other file, Corrupt for one that is cut off. The file is only read.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return Found.NOTHING
    except OSError as error:
        raise StorageError(
            f"The memory file {path} cannot be reached: {error.strerror}."
        ) from error
    if stat.S_ISDIR(status.st_mode):
        raise Foreign(
            f"{path} is a folder, not a memory file.",
            hint="Give the path of a file, such as memory.db in it.",
        )
    if not stat.S_ISREG(status.st_mode):
        raise Foreign(f"{path} is not a file.", hint="Give the path of a memory file.")
    if status.st_size == 0:
        return Found.NOTHING
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER)
    except OSError as error:
        raise StorageError(f"The memory file {path} cannot be read: {error.strerror}.") from error
    if not header.startswith(_MAGIC[: len(header)]):
        raise Foreign(
            f"{path} is not a houkai memory file.",
            hint="It was left as it was; choose another path, or `houkai salvage` if it was one.",
        )
    if len(header) < _HEADER:
        raise Corrupt(f"{path} is cut off: {status.st_size} bytes are less than a header.")
    _refuse_other(path, header, status.st_size)
    return Found.DATABASE


def _refuse_other(path: Path, header: bytes, size: int) -> None:
    """Refuse what SQLite's header gives away; the rest is told once the file is open."""
    application = int.from_bytes(header[68:72], "big")
    if application not in (0, APPLICATION_ID):  # 0 while all there is lies in the log
        raise Foreign(
            f"{path} is a database of another program.",
            hint="It was left as it was; choose another path.",
        )
    page = int.from_bytes(header[16:18], "big")
    # A disk that filled up while the log was folded in leaves half a page, which the log still has.
    if size % (65_536 if page == 1 else max(1, page)) and not has_log(path):
        raise Corrupt(f"{path} is cut off: its last page is not whole.")


def reserve(path: Path) -> None:
    """Create an empty file that only its owner can read, and the folders above it."""
    new = [folder for folder in path.parents if not folder.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        for folder in new:
            sync_folder(folder.parent)
    except PermissionError as error:
        raise ReadOnly(
            f"The folder {path.parent} cannot be written, so no memory file can be made there.",
            hint="Choose another path, or set HOUKAI_DB.",
        ) from error
    except OSError as error:
        kind = ReadOnly if error.errno == 30 else StorageError
        raise kind(f"No memory file can be made at {path}: {error.strerror}.") from error


def sync_folder(folder: Path) -> None:
    """Let a new entry of a folder survive a power cut; SQLite does so only for its own folder."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def writable(path: Path) -> bool:
    """Say whether the file and its folder can be written, as WAL mode needs both."""
    return os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)


def siblings(path: Path) -> list[Path]:
    """List SQLite's helper files that lie beside a database now."""
    return [
        other
        for suffix in ("-wal", "-shm", "-journal")
        if (other := path.with_name(path.name + suffix)).exists()
    ]


def has_log(path: Path) -> bool:
    """Say whether changes lie in a log beside the file: it is open, or its last user crashed."""
    try:
        return path.with_name(path.name + "-wal").stat().st_size > 0
    except OSError:
        return False


def refuse_unreadable_log(path: Path) -> None:
    """Refuse to read a file without the changes in its log, which cannot be read from here."""
    if has_log(path):
        raise ReadOnly(
            f"{path} has changes in {path.name}-wal,"
            " which can only be read where both can be written.",
            hint="Copy both files to a folder you own and open it there.",
        )


_NETWORK: Final = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|afs|coda|ncpfs|9p|ceph|glusterfs|lustre|beegfs|gpfs|orangefs"
    r"|vboxsf|vmhgfs|prl_fs"
    r"|fuse\.(sshfs|rclone|s3fs|gcsfuse|davfs2?|glusterfs|ceph-fuse|vmhgfs-fuse)|davfs"
)
_MOUNTS: Final = Path("/proc/self/mountinfo")


def network_type(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return the type of the network file system that a path is on, None for a local disk.

    Told apart where the system lists its mounts (Linux).
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    place = path.resolve().parent
    best: tuple[int, str] = (-1, "")
    for line in lines:
        head, _, tail = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), head.split()[4])
        if place.is_relative_to(point) and len(point) >= best[0]:
            best = (len(point), tail.split()[0])
    return best[1] if _NETWORK.fullmatch(best[1]) else None
