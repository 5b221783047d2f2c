"""What the write connection remembers is right, whoever else changed the file or failed."""

from __future__ import annotations

from collections.abc import Callable

import apsw
import pytest

from houkai import MemoryStore
from houkai.storage import chain, indexing, known, vectors
from houkai.storage.journal import recorded
from tests.agreement import disagreements
from tests.conftest import Opener
from tests.support import caught_up, texts


def statements(store: MemoryStore, act: Callable[[], object]) -> list[str]:
    """Return what the write connection runs meanwhile."""
    ran: list[str] = []

    def note(_cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
        ran.append(" ".join(sql.split()))
        return True

    def listen(connection: apsw.Connection) -> None:
        connection.exec_trace = note

    store.db.write(listen)
    act()
    return ran


def assert_whole(store: MemoryStore) -> None:
    """Assert that the journal is one chain and that everything derived agrees."""
    with store.read() as connection:
        assert chain.first_break(connection) is None
        last, count = connection.execute("select max(seq), count(*) from operation").get
    assert last == count
    assert disagreements(store) == []


def test_a_write_asks_for_nothing_that_the_one_before_knew(file_store: MemoryStore) -> None:
    """Six questions to the file took half of a write's statements."""
    file_store.remember("the first chooses the model")
    file_store.remember("the second makes all of it known")
    ran = statements(file_store, lambda: file_store.remember("the third"))
    assert not [sql for sql in ran if "from operation" in sql or "from collection" in sql]
    assert not [sql for sql in ran if "from model" in sql or "user_version" in sql]
    assert_whole(file_store)


def test_stores_that_take_turns_each_see_what_the_other_wrote(open_store: Opener) -> None:
    """A number of an operation that is taken would refuse the write, or break the chain."""
    one, two = open_store(), open_store()
    for turn in range(4):
        one.remember(f"one says {turn}")
        two.remember(f"two says {turn}")
    assert_whole(one)


def test_what_a_lost_transaction_knew_is_forgotten(file_store: MemoryStore) -> None:
    """SQLite's count of changes does not go back when a transaction does."""
    file_store.remember("kept")
    act = file_store.act("note")
    job = recorded(act, file_store.settings.clock, lambda tx: tx.note(why="rehearsed"))
    file_store.db.rehearse(job)
    file_store.remember("kept too")
    assert_whole(file_store)


def test_what_another_job_changed_is_asked_anew(file_store: MemoryStore) -> None:
    """A repair writes past the journal's door; the next write must not go by what was before."""
    file_store.remember("first")
    file_store.db.write(
        lambda connection: connection.execute("delete from meta where key = 'deferred'").fetchall()
    )
    file_store.remember("second")
    with file_store.read() as connection:
        assert indexing.deferred(connection) is not None


def test_a_table_made_anew_lacks_what_comes_after(file_store: MemoryStore) -> None:
    """Where the model is adopted or sketches are renewed, nothing is put off any more."""
    file_store.remember("first")

    file_store.write("renew", lambda tx: vectors.rebuild(tx.connection))
    file_store.remember("second")
    caught_up(file_store)
    assert texts(file_store.list_recent()) == ["second", "first"]
    with file_store.read() as connection:
        assert connection.execute("select count(*) from memory_vec").get == 2


def test_a_plain_connection_remembers_nothing() -> None:
    """Readers share nothing with the writer, whose facts would be of another snapshot."""
    connection = apsw.Connection(":memory:")
    known.begin(connection)
    known.of(connection).collections["default"] = 7
    assert known.of(connection).collections == {}
    assert known.sure(connection) is None
    known.forget(connection)


@pytest.mark.parametrize("count", [1, 3])
def test_a_neighbour_that_fails_halfway_takes_its_facts_along(
    file_store: MemoryStore, count: int
) -> None:
    """What a failed job knew of its own operation is no part of the file."""
    file_store.remember("first")

    def fail(connection: apsw.Connection) -> None:
        for _ in range(count):
            recorded(
                file_store.act("note"), file_store.settings.clock, lambda tx: tx.note(why="lost")
            )(connection)
        raise ValueError("after its operation was entered")

    with pytest.raises(ValueError, match="after its operation"):
        file_store.db.write(fail)
    file_store.remember("second")
    assert_whole(file_store)
