"""Reading sqlite-vec's table of sketches whole tells what its own search tells."""

from __future__ import annotations

import random

import apsw
import numpy as np
import pytest

from houkai import MemoryStore
from houkai.errors import Corrupt
from houkai.search import chunks, in_file
from houkai.search.in_file import InFile
from houkai.storage import connection as connections
from houkai.testing import HashingEmbedder
from tests.conftest import Opener


def table(store: MemoryStore, bits: int) -> apsw.Connection:
    """Return a connection to a file whose table of sketches is empty and that wide."""
    assert store.db.path is not None
    made = connections.connect(connections.uri(store.db.path))
    made.execute("drop table memory_vec")
    made.execute(
        "create virtual table memory_vec using"
        f" vec0(collection integer partition key, sketch bit[{bits}])"
    )
    return made


@pytest.mark.parametrize("bits", [8, 40, 64, 384, 1_536])
def test_distances_are_those_of_vec0(bits: int, file_store: MemoryStore) -> None:
    """A chunk read wrongly would hide memories from the first recall of every process."""
    chance = random.Random(bits)
    made = table(file_store, bits)
    rows = [(n * 8_192, n % 3, chance.randbytes(bits // 8)) for n in range(1, 2_600)]
    made.executemany(
        "insert into memory_vec(rowid, collection, sketch) values (?, ?, vec_bit(?))", rows
    )
    gone = chance.sample(rows, 700)
    made.executemany("delete from memory_vec where rowid = ?", [(row[0],) for row in gone])
    wanted = chance.randbytes(bits // 8)
    for scope in (None, 0, 2, 9):
        inside = "" if scope is None else f"and collection = {scope}"
        told = made.execute(
            f"""select rowid, distance from memory_vec
                where sketch match vec_bit(?) and k = 4096 {inside}""",
            (wanted,),
        ).fetchall()
        keys, signs = chunks.read(made, bits // 8, scope)
        distance = chunks.differing(signs, wanted)
        assert dict(zip(keys.tolist(), distance.tolist(), strict=True)) == dict(told)  # type: ignore[arg-type]
        assert len(keys) == len(told)


def test_a_chunk_that_is_cut_off_is_reported(file_store: MemoryStore) -> None:
    """Half a chunk is damage that the doctor can mend, not memories that are not there."""
    made = table(file_store, 384)
    made.execute(
        "insert into memory_vec(rowid, collection, sketch) values (8192, 1, vec_bit(?))",
        (bytes(48),),
    )
    made.execute("update memory_vec_vector_chunks00 set vectors = zeroblob(100)")
    with pytest.raises(Corrupt, match="sketches is damaged"):
        chunks.read(made, 48, None)


def test_what_vec0_has_not_taken_in_is_found(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written a moment ago must be found by the first recall of another process."""
    monkeypatch.setattr(in_file, "EXACT", 10)
    store: MemoryStore = open_store(embedder=HashingEmbedder(64))
    store.remember_many([f"filler {n}" for n in range(50)])
    store.db.settle()
    fresh = store.remember("quetzal feathers").id
    vector = HashingEmbedder(64).query("quetzal feathers")
    with store.read() as connection:
        assert len(chunks.read(connection, 8, None).key) == 51
        near = InFile().at(connection).near(vector, store.where(), 1)
        pk = connection.execute("select pk from memory where id = ?", (fresh,)).get
    assert pk in near.pk.tolist()
    assert len(np.unique(near.embedding)) == len(near.embedding)
