"""What can be read of a damaged file comes out of it; nothing is invented, the source stays."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import apsw
import pytest

from houkai import InputError, StorageError
from houkai.ops.salvage import salvage
from houkai.storage import writer
from houkai.storage.pages import Pages
from tests.durability.checks import Contents, assert_sound, opened
from tests.durability.salvaging import PAGE, rescued
from tests.support import sha256


def bare(held: Contents) -> dict[str, dict[str, Any]]:
    """Return contents without links, which may be lost with either of their ends."""
    return {id: {**memory, "links": []} for id, memory in held.items()}


def test_a_healthy_file_comes_out_whole(good: tuple[bytes, Contents], path: Path) -> None:
    """A salvage that loses something of a healthy file cannot be trusted with a damaged one."""
    data, held = good
    report, out = rescued(path, data)
    assert out == held
    assert (report.lost, report.untagged, report.complaint) == ([], [], "")
    assert report.trashed >= 1
    assert report.from_journal == 0
    with opened(path.with_name("salvaged.db")) as store:
        assert store.trash_list()
        assert {entry.op for entry in store.journal(None)} == {"salvage"}
        store.undo_last()
        assert store.count() == 0


def damaged_pages(data: bytes, seed: int) -> Iterator[bytes]:
    """Yield the file with each page damaged in turn, in one of three ways."""
    chance = random.Random(seed)
    for start in range(0, len(data), PAGE):
        page = bytearray(data[start : start + PAGE])
        match chance.randrange(3):
            case 0:
                page = bytearray(PAGE)
            case 1:
                page = bytearray(chance.randbytes(PAGE))
            case _:
                for _ in range(40):
                    page[chance.randrange(PAGE)] = chance.randrange(256)
        yield data[:start] + bytes(page) + data[start + PAGE :]


def costs_no_memory(good: tuple[bytes, Contents], path: Path, seed: int, one_in: int) -> None:
    """Damage one page at a time, and fail if a memory is lost or another comes out."""
    data, held = good
    changed = 0
    for damaged in islice(damaged_pages(data, seed), seed % one_in, None, one_in):
        report, out = rescued(path, damaged)
        missing = held.keys() - out.keys()
        assert not missing or "fills several pages" in str([held[id]["text"] for id in missing])
        for id, memory in bare(out).items():
            if id in held and memory != bare(held)[id]:
                assert id in report.untagged or memory["collection"] == "salvaged"
                changed += 1
        assert set(out) <= set(held) | set(report.doubtful), "what came out was never in"
    assert changed < 3


def test_one_damaged_page_costs_no_memory(good: tuple[bytes, Contents], path: Path) -> None:
    """Each memory is in the file twice; one lost page must not take both."""
    costs_no_memory(good, path, seed=1, one_in=5)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(2, 6))
def test_any_one_damaged_page_costs_no_memory(
    seed: int, good: tuple[bytes, Contents], path: Path
) -> None:
    """There are a few pages in every file whose loss is worse than that of others."""
    costs_no_memory(good, path, seed, one_in=1)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_many_damaged_pages_leave_the_rest(
    share: float, good: tuple[bytes, Contents], path: Path
) -> None:
    """A half-destroyed disk still holds half of what somebody wants back."""
    data, held = good
    known = {memory["text"] for memory in held.values()} | set(texts_of(data))
    saved = []
    for seed in range(9):  # which pages are hit is chance, and some hold more than others
        chance = random.Random(seed + int(share * 100))
        damaged = bytearray(data)
        for start in range(PAGE, len(data), PAGE):
            if chance.random() < share:
                damaged[start : start + PAGE] = chance.randbytes(PAGE)
        try:
            report, out = rescued(path, bytes(damaged))
        except StorageError:  # nothing could be read
            saved.append(0)
            continue
        assert set(out) <= set(held) | set(report.doubtful)
        assert {memory["text"] for memory in out.values()} <= known
        saved.append(len(out))
    assert median(saved) > len(held) * (1 - share) / 2


def texts_of(data: bytes) -> list[str]:
    """Return every text that a file's history knows."""
    connection = apsw.Connection(":memory:")
    connection.deserialize("main", data[:18] + b"\1\1" + data[20:])
    found = connection.execute(
        """select after ->> '$.text' from change where kind = 'memory' and after is not null"""
    ).fetchall()
    connection.close()
    return [str(text) for (text,) in found]


def test_a_row_that_cannot_have_been_stored_gives_way_to_the_journal(
    good: tuple[bytes, Contents], path: Path
) -> None:
    """A damaged row that looks newer than its record would take the memory with it."""
    data, held = good
    path.write_bytes(data)
    connection = apsw.Connection(str(path))
    connection.execute("pragma ignore_check_constraints = on")
    connection.execute("update memory set operation = operation + 1000, polarity = 7")
    connection.close()
    report, out = rescued(path, path.read_bytes())
    assert out.keys() == held.keys()
    assert report.from_journal == 0
    assert report.doubtful == []


@pytest.mark.parametrize(("digit", "doubted"), [("^", False), ("f", True)])
def test_a_damaged_key_brings_no_memory_that_never_was(
    digit: str, doubted: bool, good: tuple[bytes, Contents], path: Path
) -> None:
    """A changed sign of an id in the journal would be told for another memory."""
    data, held = good
    path.write_bytes(data)
    made_up = f"0123456{digit}-89ab-4def-8123-456789abcdef"
    assert made_up not in held
    connection = apsw.Connection(str(path))
    connection.execute(
        """update change set key = ? where pk = (select max(pk) from change
             where kind = 'memory' and after is not null)""",
        (made_up,),
    )
    connection.close()
    report, out = rescued(path, path.read_bytes())
    assert out.keys() - held.keys() == ({made_up} if doubted else set())
    assert (made_up in report.doubtful) == doubted
    assert held.keys() <= out.keys()


@pytest.mark.parametrize("share", [0.75, 0.9])
def test_a_file_that_is_cut_off(share: float, good: tuple[bytes, Contents], path: Path) -> None:
    """A copy that was interrupted holds its beginning, and what is there must come out."""
    data, held = good
    cut = data[: int(len(data) * share)]
    report, out = rescued(path, cut)
    assert len(out) > 0
    assert report.complaint
    assert set(out) <= set(held) | set(report.doubtful)


def test_a_log_without_a_clean_end_is_read_too(
    good: tuple[bytes, Contents], path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest memories of a crashed program are in the log alone."""
    path.write_bytes(good[0])
    monkeypatch.setattr(writer, "QUIET_S", 1_000)
    with opened(path) as store, opened(path, journal_enabled=False) as unrecorded:
        added = store.remember("only in the log", tags=["new"])
        unrecorded.link(added.id, next(iter(good[1])))
        crashed = tmp_path / "crashed" / "memory.db"
        crashed.parent.mkdir()
        shutil.copy(path, crashed)
        shutil.copy(f"{path}-wal", f"{crashed}-wal")
    log = Path(f"{crashed}-wal")
    log.write_bytes(log.read_bytes() + b"half a frame")
    before = sha256(crashed), sha256(log)
    report = salvage(crashed, tmp_path / "out.db")
    assert (sha256(crashed), sha256(log)) == before, "reading the source has folded its log"
    found = assert_sound(tmp_path / "out.db")[added.id]
    assert (found["tags"], len(found["links"])) == (["new"], 1)
    assert report.memories == len(good[1]) + 1
    crashed.write_bytes(b"\0" * PAGE + crashed.read_bytes()[PAGE:])
    salvage(crashed, tmp_path / "again.db")
    assert added.id in assert_sound(tmp_path / "again.db")


def test_what_only_the_index_knows_is_reported_lost(
    good: tuple[bytes, Contents], path: Path
) -> None:
    """A user must be told what is gone, not left to notice it some day."""
    data, held = good
    target = next(id for id, memory in held.items() if memory["tags"])
    text = held[target]["text"].encode()
    damaged = data
    for start in range(PAGE, len(data), PAGE):
        page = data[start : start + PAGE]
        if text in page:
            damaged = damaged[:start] + bytes(PAGE) + damaged[start + PAGE :]
    report, out = rescued(path, damaged)
    assert target not in out
    assert target in report.lost or report.complaint


def test_what_was_forgotten_stays_forgotten(path: Path) -> None:
    """Pages that are free still hold what a user has deleted."""
    with opened(path) as store:
        for number in range(40):
            store.remember(f"to be purged {number} " * 30)
        kept = store.remember("to be kept")
        for memory in store.list_recent(None):
            if memory.id != kept.id:
                store.trash(memory.id)
        store.trash_purge()
    assert set(rescued(path, path.read_bytes())[1]) == {kept.id}


NOTHING = {
    "zeros": bytes(8 * PAGE),
    "noise": random.Random(0).randbytes(8 * PAGE),
    "a text": b"This is not a database.\n" * 999,
    "nothing": b"",
}


@pytest.mark.parametrize("name", list(NOTHING))
def test_a_file_without_memories_is_told_apart(name: str, path: Path) -> None:
    """An empty file made of nothing would look like a rescue."""
    with pytest.raises(StorageError, match="Nothing that looks like a memory"):
        rescued(path, NOTHING[name])


def test_places_are_checked_first(good: tuple[bytes, Contents], path: Path, tmp_path: Path) -> None:
    """A rescue that writes over a file could cost the backup."""
    with pytest.raises(InputError, match="no file"):
        salvage(path, tmp_path / "new.db")
    path.write_bytes(good[0])
    with pytest.raises(InputError, match="there already"):
        salvage(path, path)


@pytest.mark.parametrize("size", [512, 1_024, 8_192, 65_536])
def test_pages_of_every_size_are_read(size: int, tmp_path: Path) -> None:
    """A wrong sum of what spills over into other pages would lose every long text."""
    path = tmp_path / "sizes.db"
    held = apsw.Connection(str(path))
    held.pragma("page_size", size)
    held.execute("create table t(pk integer primary key, a, b, c)")
    chance = random.Random(size)
    rows = [
        (
            n,
            chance.randbytes(chance.randrange(3 * size)),
            chance.choice([None, 0, 1, -5, 2**40]),
            "é",
        )
        for n in range(-3, 40)
    ]
    held.executemany("insert into t values (?, ?, ?, ?)", rows)
    held.close()
    read = {rowid: values for rowid, values in Pages(path).rows() if len(values) == 4}
    assert {n: [None, *rest] for n, *rest in rows} == read
