"""How a connection is set up, and that readers stay readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from houkai import MemoryStore, StorageError
from houkai.storage import connection as sqlite
from tests.conftest import Opener


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_pragmas_are_what_they_should_be(
    durability: Any, level: int, open_store: Opener, path: Path
) -> None:
    """SQLite ignores a pragma that it cannot set, so each is read back."""
    store = open_store(durability=durability)
    wanted = {"foreign_keys": 1, "trusted_schema": 0, "cell_size_check": 1, "temp_store": 2,
              "journal_mode": "wal"}  # fmt: skip
    with store.read() as reader:
        assert {name: reader.pragma(name) for name in wanted} == wanted
        assert reader.pragma("query_only") == 1
    seen = store.db.write(lambda c: {name: c.pragma(name) for name in (*wanted, "synchronous")})
    assert seen == {**wanted, "synchronous": level}


def test_a_refused_pragma_is_an_error() -> None:
    """A wrong foreign_keys, say, must stop the store and not corrupt it later."""
    connection = apsw.Connection(":memory:")
    with pytest.raises(StorageError, match="journal_mode"):
        sqlite.verify_pragma(connection, "journal_mode", "wal")


def test_readers_cannot_write(file_store: MemoryStore) -> None:
    """Every change goes through the one writer, or it would miss the journal."""
    with pytest.raises(StorageError), file_store.read() as connection:
        connection.execute("delete from memory")


def test_no_reader_of_a_crowd_can_write(file_store: MemoryStore) -> None:
    """The first connection is set up apart from those that are opened when it is lent."""
    with file_store.read(), file_store.read() as second:
        assert second.pragma("query_only") == 1
        with pytest.raises(apsw.ReadOnlyError):
            second.execute("delete from memory")
