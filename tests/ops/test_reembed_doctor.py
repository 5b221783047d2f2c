from __future__ import annotations

from pathlib import Path

import pytest

from houkai import MemoryStore
from houkai.ops import doctor
from houkai.storage import vectors
from tests.ops.changing import OLD, New, Windowed, check_whole, fill, rows
from tests.support import caught_up


def ill(path: Path) -> dict[str, str]:
    """Return what the doctor finds wrong, whose model is none that a spec names."""
    checks = doctor.examine(path)
    return {one.name: one.found for one in checks if not one.ok and one.name != "model"}


def test_an_index_that_is_being_filled_is_no_fault(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks while a file changes over would be told that it is damaged."""
    with MemoryStore(path, embedder=OLD) as store:
        fill(store)
        with monkeypatch.context() as patch:
            patch.setattr(vectors, "fill_index", lambda connection, limit: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                store.reembed(New())
        assert ill(path) == {}
        store.db.write(lambda connection: vectors.fill_index(connection, 4))
        assert ill(path) == {}
        store.db.write(
            lambda connection: connection.execute(
                "delete from memory_vec where rowid > 65536"
            ).fetchall()
        )
        assert "sketches" in ill(path)
        doctor.repair(path)
        assert ill(path) == {}
        store.reembed(New())
        check_whole(store, New())


def test_vectors_of_two_models_are_no_fault(path: Path) -> None:
    """Half a re-embedding would look like damage, and a repair would undo it."""
    new = New()

    def stop(texts: object) -> None:
        if len(new.seen) >= 4:
            raise KeyboardInterrupt

    new.before = stop
    with MemoryStore(path, embedder=OLD) as store:
        fill(store)
        with pytest.raises(KeyboardInterrupt):
            store.reembed(new, batch_size=4)
        assert ill(path) == {}
        doctor.repair(path)
        new.before = lambda texts: None
        assert store.reembed(new).embedded == 6


def test_a_text_that_lost_a_window_is_embedded_anew(path: Path) -> None:
    """What remained would count as all of it, and its middle would never be found again."""
    new = Windowed()
    with MemoryStore(path, embedder=new) as store:
        store.remember("alpha beta gamma delta")
        store.db.write(
            lambda connection: connection.execute(
                "update embedding set vector = zeroblob(512) where window = 2"
            ).fetchall()
        )
        assert "vector values" in ill(path)
        doctor.repair(path)
        assert list(ill(path)) == ["vectors"]
        assert rows(store, "select count(*) from embedding") == [(0,)]
        assert store.reembed().embedded == 1
        assert ill(path) == {}
        assert store.recall("gamma", mode="semantic")[0].score > 0.99


@pytest.mark.parametrize("how", ["reembed", "remember", "edit", "forget", "nuke"])
def test_a_file_whose_vectors_are_lost_but_not_their_sketches_stays_in_use(
    how: str, path: Path
) -> None:
    """A sketch that nothing accounts for would refuse every later write of its memory."""
    with MemoryStore(path, embedder=OLD) as store:
        ids = [store.remember(f"note {n}").id for n in range(4)]
        caught_up(store).db.write(
            lambda connection: connection.execute("delete from embedding where pk > 1").fetchall()
        )
        assert set(ill(path)) == {"sketches", "vectors"}
        {
            "reembed": lambda: store.reembed(),
            "remember": lambda: store.remember("note 2"),
            "edit": lambda: store.edit(ids[3], text="note 9"),
            "forget": lambda: (store.forget(ids[3]), store.remember("note 9")),
            "nuke": lambda: store.nuke(),
        }[how]()
        store.reembed()
        assert ill(path) == {}
