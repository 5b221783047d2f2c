"""Enter rows into the word indexes, and take them out.

The schema's triggers do the same for other tools that write to the file. They are off on houkai's
own write connection: a statement with a trigger opens a savepoint, at which FTS5 writes out the
words of every single row, which would make a batch three times as dear.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import apsw

Index = Literal["memory_fts", "past_fts"]
COLUMNS: Final = ("text", "words", "names", "dates")
"""The columns of a row whose change must reach the index, as must that of its collection."""


def add(connection: apsw.Connection, index: Index, pk: int, row: Mapping[str, Any]) -> None:
    """Enter a row, given as its columns, once it is stored."""
    scope = f"scope{row['collection']}"
    connection.execute(
        f"insert into {index}(rowid, text, words, names, dates, scope) values (?, ?, ?, ?, ?, ?)",
        (pk, row["text"], row["words"], row["names"], row["dates"], scope),
    )


def remove(connection: apsw.Connection, index: Index, pk: int) -> None:
    """Take a row out while it is still stored as it was entered: FTS5 reads its words there."""
    connection.execute(f"delete from {index} where rowid = ?", (pk,))
