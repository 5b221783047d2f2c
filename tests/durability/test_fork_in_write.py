"""A fork in the middle of a write: the child gets one clear error and touches nothing."""

from __future__ import annotations

from pathlib import Path

from tests.durability.checks import assert_sound
from tests.durability.test_endings import HEAD
from tests.support import run


def test_a_fork_inside_a_write_is_refused_the_file(path: Path) -> None:
    """The child's copy of the writer has no thread, and its connection shares the parent's log."""
    code = (
        HEAD
        + """
from houkai.storage import writer
writer.DRAIN_S = 0.05
store = opened()
store.remember("before")
begun, go_on = threading.Event(), threading.Event()
held = threading.Thread(target=store.db.write, args=(lambda _: (begun.set(), go_on.wait()),))
held.start()
begun.wait()
in_use = store.db._writer.connection
counted = sys.getrefcount(in_use)
child = os.fork()
if not child:
    signal.alarm(20)
    try:
        store.db.write(lambda _: None)
    except StorageError as error:
        assert "forked" in str(error) and error.hint, error
        os._exit(3 if sys.getrefcount(in_use) == counted + 1 else 5)
    os._exit(4)
ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go_on.set()
held.join()
assert ended == 3, ended
store.remember("after")
assert store.count() == 2
"""
    )
    run(code, str(path))
    assert len(assert_sound(path)) == 2


def test_a_file_opened_while_a_fork_waits_is_opened_after_it(path: Path) -> None:
    """The fork would not know of it: the child would go on with the parent's connection."""
    code = (
        HEAD
        + """
first, made = opened(), []
hold, opening = first.db.hold, threading.Thread(target=lambda: made.append(opened()))

def hold_slowly():
    opening.start()
    opening.join(0.5)
    return hold()

first.db.hold = hold_slowly
child = os.fork()
if not child:
    signal.alarm(20)
    os._exit(3 if not made else 4)
ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
opening.join()
made[0].remember("after")
assert ended == 3, ended
"""
    )
    run(code, str(path))
    assert len(assert_sound(path)) == 1
