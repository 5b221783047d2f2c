"""Which state of the file a snapshot shows, so that what was read of it is known to hold."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from houkai.storage import vectors


class At(NamedTuple):
    """Which state of the file: the last operation, the vectors' epoch, the operation's hash.

    The hash tells a file that was restored and written again from the one that it was.
    """

    seq: int
    epoch: int
    hash: bytes | None


def at(connection: apsw.Connection) -> At:
    """Return the state that a snapshot shows."""
    return At(
        *connection.execute(
            f"""select coalesce((select max(seq) from operation), 0), ({vectors.EPOCH}),
                  (select hash from operation order by seq desc limit 1)"""
        ).get
    )


def goes_on(connection: apsw.Connection, since: At) -> bool:
    """Say whether a snapshot's history holds a state: a file that was restored has lost some."""
    hash = connection.execute("select hash from operation where seq = ?", (since.seq,)).get
    return bool(hash == since.hash)
