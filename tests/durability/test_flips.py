"""A changed bit in anything a user stored, or that recall relies on, is found by the doctor."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import apsw
import pytest

from houkai.ops import doctor
from houkai.storage import connection as sqlite
from houkai.storage import shape
from tests.durability.checks import opened

TABLES = ("meta", "model", "collection", "memory", "tag", "entity", "link", "operation", "change",
          "trash", "embedding", "past")  # fmt: skip
HARMLESS = {
    "change.pk": "orders what one operation changed",
    "change.row": "tells open processes what to read anew, and is not read later",
    "change.digest": "null but for what was purged",
    "collection.created_at": "is nobody's",
    "embedding.pk": "is a number that nothing refers to",
    "embedding.vector": "is derived from the text, which needs the model",
    "entity.ordinal": "orders names, and the only one here has its place whatever it is",
    "model.fingerprint": "is compared with the chosen model, which is another one here",
    "model.name": "is a label",
}
"""What may change without a loss, or is found by other means."""
ONLY = {"meta.value": "key not in ('created_at', 'store_id', 'vector_epoch')"}
"""Rows that can be told at all: nothing else knows when a file was made, or its name, and an epoch
only has open processes read anew.
"""
COLUMNS = [
    f"{table}.{column}"
    for table in TABLES
    for column in shape.columns(table)
    if f"{table}.{column}" not in HARMLESS
]


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a value in every column, before and after a pruning."""
    path = tmp_path_factory.mktemp("lived") / "memory.db"
    with opened(path) as store:
        agent = store.as_actor("agent", session="s1")
        first = agent.remember(
            "the first memory names fooBar and snake_case",
            tags=["tag", "b"], source="notes", position=3, author="user", entities=["Anna"],
            importance=0.3, polarity=1, trust="reported", pinned=True, expires_at="2090-01-01",
            valid_from="2020-01-01", valid_until="2080-01-01",
        )  # fmt: skip
        second = store.remember("the second memory", author="user")
        store.link(first.id, second.id)
        store.edit(first.id, text="the first memory, edited", importance=0.9)
        store.undo_last()
        store.redo()
        store.supersede(second.id, first.id)
        store.edit(second.id, importance=0.2)
        store.trash(store.remember("the third memory").id)
        store.remember_many(["four", "five", "six"], batch_size=1)
        store.prune_journal(keep_last=10)
        store.edit(first.id, text="the first memory, fooBar again")
    with opened(path, collection="other") as store:
        store.remember("elsewhere")
    assert ill(path) == set()
    return path


def ill(path: Path) -> set[str]:
    """Return the names of the checks that find something."""
    checks = doctor.examine(path, deep=True)
    return {check.name for check in checks if not check.ok} - {"model"}


def flipped(value: Any) -> Any:
    """Return a value with one of its bits changed."""
    if isinstance(value, int):
        return value ^ 1
    raw = bytearray(struct.pack("<d", value) if isinstance(value, float) else
                    value.encode() if isinstance(value, str) else value)  # fmt: skip
    raw[0 if isinstance(value, float) else len(raw) // 2] ^= 1
    if isinstance(value, float):
        return struct.unpack("<d", raw)[0]
    return raw.decode() if isinstance(value, str) else bytes(raw)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_flipped_bit_is_found(name: str, lived: Path, path: Path) -> None:
    """What no check compares with anything could be another memory by tomorrow."""
    table, column = name.split(".")
    with sqlite.connect(sqlite.uri(lived)) as held:
        values = held.execute(
            f"""select distinct {column} from {table}
                where {column} is not null and {ONLY.get(name, "true")}"""
        ).fetchall()
    assert values, "the file holds nothing to change"
    for (value,) in values[:1] + values[-1:]:
        shutil.copy(lived, path)
        if flip(path, table, column, value):
            assert ill(path), f"{column} {value!r} of {table} changed unseen"


def flip(path: Path, table: str, column: str, value: Any) -> bool:
    """Change a bit behind houkai's back; False where SQLite itself has no room for the result."""
    held = sqlite.connect(sqlite.uri(path))
    held.pragma("foreign_keys", False)
    held.pragma("ignore_check_constraints", True)
    held.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    try:
        held.execute(f"update {table} set {column} = ? where {column} = ?", (flipped(value), value))
    except apsw.ConstraintError:
        return False
    finally:
        held.close()
    return True
