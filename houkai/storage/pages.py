"""Read rows out of a damaged SQLite file page by page, asking nothing of what links the pages.

[SQLite, fileformat2.html: 1.5 freelist, 1.6 b-tree pages, 2.1 records, 4 the WAL]
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

Value = int | float | str | bytes | None

_MAGIC: Final = b"SQLite format 3\0"
_LEAF_OF_A_TABLE: Final = 0x0D
_SIZES: Final = (512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536)
_USUAL: Final = 4_096
_WAL_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_NUMBERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""Bytes of an integer by its serial type."""


class Damaged(ValueError):
    """Say that bytes are no cell of a page."""


class Pages:
    """The pages of a file, newer ones of its log laid over them; pages count from 1."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        self.size = _page_size(self._data)
        self._newer: dict[int, bytes] = {}
        log = path.with_name(f"{path.name}-wal")
        if log.exists():
            self._newer = _committed(log.read_bytes(), self.size)
        whole = -(-len(self._data) // self.size)
        self.count = max([whole, *self._newer])
        self.usable = self.size - (self._data[20] if self._data.startswith(_MAGIC) else 0)

    def page(self, number: int) -> bytes:
        """Return a page, filled up with zeros where the file is cut off."""
        if number in self._newer:
            return self._newer[number]
        at = (number - 1) * self.size
        return self._data[at : at + self.size].ljust(self.size, b"\0")

    def free(self) -> set[int]:
        """Return the pages that hold nothing any more, as far as their list can be read."""
        found: set[int] = set()
        (trunk,) = struct.unpack(">I", self.page(1)[32:36])
        while 1 < trunk <= self.count and trunk not in found:
            found.add(trunk)
            page = self.page(trunk)
            trunk, length = struct.unpack(">II", page[:8])
            leaves = min(length, self.size // 4 - 2)
            found.update(struct.unpack(f">{leaves}I", page[8 : 8 + 4 * leaves]))
        return found

    def rows(self) -> Iterator[tuple[int, list[Value]]]:
        """Yield (rowid, values) of every row of an ordinary table that can be read."""
        free = self.free()
        for number in range(1, self.count + 1):
            if number not in free:
                yield from self._rows_of(number)

    def _rows_of(self, number: int) -> Iterator[tuple[int, list[Value]]]:
        page = self.page(number)
        start = 100 if number == 1 else 0
        if page[start] != _LEAF_OF_A_TABLE:
            return
        (cells,) = struct.unpack(">H", page[start + 3 : start + 5])
        last = min(start + 8 + 2 * cells, self.size - 1)
        for at in range(start + 8, last - 1, 2):
            (offset,) = struct.unpack(">H", page[at : at + 2])
            try:
                length, after = _varint(page, offset)
                rowid, begin = _varint(page, after)
                yield rowid, _values(self._payload(page, begin, length))
            except (Damaged, UnicodeDecodeError):
                continue

    def _payload(self, page: bytes, begin: int, length: int) -> bytes:
        """Return a cell's content with what overflows into other pages."""
        most = self.usable - 35
        if length <= most:
            return _cut(page, begin, length)
        least = (self.usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (self.usable - 4)
        local = local if local <= most else least
        content = _cut(page, begin, local)
        (following,) = struct.unpack(">I", _cut(page, begin + local, 4))
        seen: set[int] = set()
        while len(content) < length:
            if not 1 < following <= self.count or following in seen:
                raise Damaged
            seen.add(following)
            more = self.page(following)
            content += more[4 : min(self.usable, 4 + length - len(content))]
            (following,) = struct.unpack(">I", more[:4])
        return content


def _page_size(data: bytes) -> int:
    """Return the size of pages, the usual one where the header is lost."""
    if not data.startswith(_MAGIC):
        return _USUAL
    size = int.from_bytes(data[16:18], "big")
    size = 65_536 if size == 1 else size
    return size if size in _SIZES else _USUAL


def _cut(page: bytes, begin: int, length: int) -> bytes:
    piece = page[begin : begin + length]
    if begin < 0 or length < 0 or len(piece) < length:
        raise Damaged
    return piece


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends."""
    value = 0
    for index, byte in enumerate(data[at : at + 9]):
        if index == 8:
            return (value << 8 | byte) - (1 << 64 if value >> 55 else 0), at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    raise Damaged


def _values(record: bytes) -> list[Value]:
    """Return the values of a record, which must fill it exactly."""
    header, at = _varint(record, 0)
    if not at <= header <= len(record):
        raise Damaged
    kinds = []
    while at < header:
        kind, at = _varint(record, at)
        kinds.append(kind)
    values = []
    for kind in kinds:
        size = _NUMBERS.get(kind, (kind - 12) // 2 if kind >= 12 else 8 if kind == 7 else 0)
        values.append(_value(kind, _cut(record, at, size)))
        at += size
    if at != len(record):
        raise Damaged
    return values


def _value(kind: int, raw: bytes) -> Value:
    if kind in _NUMBERS:
        return int.from_bytes(raw, "big", signed=True)
    if kind == 7:
        return float(struct.unpack(">d", raw)[0])
    if kind in (8, 9):
        return kind - 8
    if kind >= 12:
        return raw.decode() if kind % 2 else raw
    if kind:
        raise Damaged
    return None


def _committed(log: bytes, size: int) -> dict[int, bytes]:
    """Return the newest page of each number up to the log's last whole transaction."""
    if len(log) < _WAL_HEADER or int.from_bytes(log[8:12], "big") != size:
        return {}
    order = ">" if log[3] & 1 else "<"
    sums = _checksum(order, log[:24], (0, 0))
    committed: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    for at in range(_WAL_HEADER, len(log) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
        head, page = log[at : at + _FRAME_HEADER], log[at + 24 : at + 24 + size]
        sums = _checksum(order, head[:8] + page, sums)
        if head[8:16] != log[16:24] or struct.unpack(">II", head[16:24]) != sums:
            break
        pending[int.from_bytes(head[:4], "big")] = page
        if head[4:8] != b"\0\0\0\0":
            committed.update(pending)
            pending = {}
    return committed


def _checksum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    one, two = sums
    for left, right in struct.iter_unpack(f"{order}II", data):
        one = (one + left + two) & 0xFFFFFFFF
        two = (two + right + one) & 0xFFFFFFFF
    return one, two
