"""When to hold a file's memories in RAM: once a process has shown that it stays."""

from __future__ import annotations

from typing import Final

import apsw

from houkai.search.in_file import InFile
from houkai.search.resident import WHOLE, Resident
from houkai.search.sketches import View

ONCE: Final = 1
OFTEN: Final = 8
"""Recalls that ask the file itself, of a small file and of one with more than WHOLE memories.

To read a large file whole takes as long as about so many recalls do that look up what they need.
"""


class Warming:
    """A file that is asked at first and held from then on."""

    def __init__(self) -> None:
        self._asked = 0
        self._in_file = InFile()
        self._resident = Resident()

    def at(self, connection: apsw.Connection) -> View:
        """Return the memories as the connection's snapshot has them."""
        self._asked += 1
        if self._asked > OFTEN:
            return self._resident.at(connection)
        last: int = connection.execute("select coalesce(max(pk), 0) from memory").get
        warm = self._asked > (ONCE if last <= WHOLE else OFTEN)
        return self._resident.at(connection) if warm else self._in_file.at(connection)
