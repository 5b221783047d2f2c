"""One page of any b-tree, or the head of the file, may be lost: what is stored twice comes out."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from houkai import HoukaiError
from houkai.ops import doctor
from tests.durability.checks import Contents, opened
from tests.durability.salvaging import PAGE, rescued
from tests.support import is_one_sentence

TREES = {
    "sqlite_schema", "memory", "sqlite_autoindex_memory_1", "tag", "link", "operation", "change",
    "change_by_key", "trash", "collection", "embedding", "memory_fts_data", "memory_vec_chunks",
    "past",
}  # fmt: skip


def ends_of_trees(path: Path) -> list[tuple[str, int]]:
    """Return the first and the last page of each b-tree that matters."""
    connection = apsw.Connection(str(path))
    found = connection.execute(
        """select name, min(pageno) from dbstat group by name
           union select name, max(pageno) from dbstat group by name order by 1, 2"""
    ).fetchall()
    connection.close()
    return [(str(name), int(str(page))) for name, page in found if name in TREES]


def flipped(data: bytes, start: int, end: int) -> bytes:
    """Return bytes of which some are turned into their opposite."""
    return data[:start] + bytes(byte ^ 255 for byte in data[start:end]) + data[end:]


def test_a_lost_page_of_any_tree_costs_nothing_that_is_stored_twice(
    good: tuple[bytes, Contents], path: Path
) -> None:
    """Rows, journal, trash and indexes must each be able to do without any one page of theirs."""
    data, held = good
    path.write_bytes(data)
    pages = ends_of_trees(path)
    assert {name for name, _ in pages} == TREES
    whole, _ = rescued(path, data)
    for name, page in pages:
        damaged = flipped(data, (page - 1) * PAGE, page * PAGE)
        report, out = rescued(path, damaged)
        assert out == held, (name, page)
        assert (report.trashed, report.links) == (whole.trashed, whole.links), (name, page)
        assert (report.lost, report.untagged, report.doubtful) == ([], [], []), (name, page)
        if name != "embedding":
            assert report.vectors == whole.vectors, (name, page)
        path.write_bytes(damaged)
        assert [one for one in doctor.examine(path) if not one.ok and one.name != "model"]


@pytest.mark.parametrize(("start", "end"), [(0, 16), (0, 100), (0, PAGE), (100, PAGE)], ids=str)
def test_a_file_without_its_head_says_so_in_a_sentence(
    start: int, end: int, good: tuple[bytes, Contents], path: Path
) -> None:
    """Where nothing can be opened, the one thing left to say is what may still help."""
    data, held = good
    assert rescued(path, flipped(data, start, end))[1] == held
    with pytest.raises(HoukaiError) as refused:
        opened(path)
    assert is_one_sentence(refused.value)
    (found,) = doctor.examine(path)
    assert not found.ok
    assert "houkai salvage" in found.hint
