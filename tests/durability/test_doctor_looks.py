"""Doctor asks the model again when it is to be sure, and is not misled by what others write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from houkai import MemoryStore
from houkai.ops import doctor
from houkai.ops.looks import LOOKS, Look
from tests.durability.checks import opened
from tests.durability.test_doctor import damage


def test_deep_finds_a_vector_that_is_not_its_texts(path: Path) -> None:
    """A changed digit leaves a vector that looks like one, and its memory is found no more."""
    with MemoryStore(path) as store:
        store.remember("Anna cannot eat peanuts")
    damage(
        path,
        """update embedding set vector = cast(substr(vector, 1, 20) || x'002e' ||
             substr(vector, 23) as blob), sketch = sketch""",
    )
    assert {check.name for check in doctor.examine(path) if not check.ok} <= {"signs"}
    assert "meaning" in {one.name for one in doctor.examine(path, deep=True) if not one.ok}
    left = {one.name for one in doctor.repair(path, deep=True) if not one.ok}
    assert left == {"vectors"}
    with MemoryStore(path) as store:
        store.reembed()
    assert all(check.ok for check in doctor.examine(path, deep=True))


def test_what_came_with_the_journal_off_is_no_damage_after_a_pruning(path: Path) -> None:
    """Nothing can mend what doctor then took for memories that were never recorded."""
    with opened(path, journal_enabled=False) as store:
        kept, gone = store.remember_many(["a note that stays", "one that goes"])
        store.link(kept.id, store.remember("another").id, "related")
        store.forget(gone.id)
        store.prune_journal(keep_last=0)
    with opened(path) as store:
        store.prune_journal(keep_last=0)
        assert store.verify_journal() is None
    assert {check.name for check in doctor.examine(path) if not check.ok} <= {"model"}


def test_what_others_write_between_two_looks_is_no_damage(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FTS5 calls damage what another process wrote since the connection last read the index."""
    with opened(path) as rival:
        for number in range(30):
            rival.remember(f"{number} before the doctor comes")

        def amid(look: Look) -> Look:
            def faults(connection: apsw.Connection) -> list[str]:
                for number in range(20 if look.name == "indexes" else 1):
                    rival.remember(f"written before the look at {look.name} {number}")
                return look.faults(connection)

            return look if look.name in ("words", "past words") else replace(look, faults=faults)

        monkeypatch.setattr(doctor, "LOOKS", tuple(amid(look) for look in LOOKS))
        assert [one for one in doctor.examine(path) if not one.ok and one.name != "model"] == []
