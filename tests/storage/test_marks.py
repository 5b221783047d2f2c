"""Which operations are marked as undone, however often undo and redo take turns."""

from __future__ import annotations

import apsw

from houkai import MemoryStore
from houkai.storage import marks


def test_a_long_row_of_undone_undos(store: MemoryStore) -> None:
    """Each undo of an undo turns the marks of all before it; none may be one too many."""
    memory = store.remember("back and forth")
    last = 3_001

    def lengthen(connection: apsw.Connection) -> None:
        image = connection.execute("select after from change").get
        for seq in range(2, last + 1):
            connection.execute(
                """insert into operation(seq, id, at, op, actor, collection, undoes, hash)
                   values (?1, ?1, ?2 + ?1, 'undo', 'lib', 'default', ?1 - 1, zeroblob(32))""",
                (seq, store.now()),
            )
            connection.execute(
                "insert into change(operation, kind, key, after) values (?, 'memory', ?, ?)",
                (seq, memory.id, image if seq % 2 else None),
            )
        assert len(marks.wrong_undos(connection)) == last // 2
        marks.mend_ends(connection)
        marks.mend_undos(connection)

    store.db.write(lengthen)
    store.undo(last)
    assert store.count() == 0
    with store.read() as connection:
        assert marks.wrong_undos(connection) == []


def test_a_batch_that_goes_on_after_it_was_undone(store: MemoryStore) -> None:
    """An operation would count as undone by what was done before it, and undo would pass it by."""
    ids = [memory.id for memory in store.remember_many(["one", "two", "three"])]

    def weigh(id: str) -> None:
        image = {"importance": 0.9}
        store.write(
            "edit", lambda tx: tx.put("memory", id, tx.get("memory", id) | image), batch="b"
        )

    weigh(ids[0])
    weigh(ids[1])
    undone = store.undo_last()
    weigh(ids[2])
    assert undone is not None
    redone = store.undo(undone.operation)
    store.undo(redone.operation)
    with store.read() as connection:
        assert marks.wrong_undos(connection) == []
    assert [memory.importance for memory in map(store.get, ids) if memory] == [0.5, 0.5, 0.9]
