"""Notes: what an operation says beside its result."""

from __future__ import annotations

import contextvars
import threading
import warnings

import pytest

from houkai import notes
from houkai.testing import HashingEmbedder
from tests.conftest import Opener


def test_without_a_listener_it_is_a_warning() -> None:
    """A library user who listens to nothing still has Python's warnings."""
    with pytest.warns(UserWarning, match="by the way"):
        notes.note("by the way")


def test_a_listener_hears_each_note_once() -> None:
    """A door shows notes to people; ten times the same sentence is noise."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with notes.listening() as heard:
            notes.note("by the way")
            notes.note("by the way")
            notes.note("and another thing")
    assert heard == ["by the way", "and another thing"]


def test_calls_on_other_threads_keep_their_notes() -> None:
    """With one hook for the process, a concurrent call's note went to the wrong answer."""
    started = threading.Barrier(2, timeout=10)
    told: dict[str, list[str]] = {}

    def call(name: str) -> None:
        with notes.listening() as heard:
            started.wait()
            for _ in range(100):
                notes.note(name)
            started.wait()
        told[name] = heard

    threads = [threading.Thread(target=call, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told == {"one": ["one"], "two": ["two"]}


def test_notes_follow_a_call_to_its_thread() -> None:
    """Doors hand operations to worker threads with the context of the call."""
    with notes.listening() as heard:
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(notes.note, "from the thread"))
        thread.start()
        thread.join()
    assert heard == ["from the thread"]


def test_a_warning_names_the_callers_line(open_store: Opener) -> None:
    """A warning that points into houkai tells its reader nothing, and is shown only once."""
    with open_store() as store:
        store.remember("Anna lands at nine")
    other = open_store(embedder=HashingEmbedder(32))
    with pytest.warns(UserWarning, match="Recall by words only") as caught:
        other.recall("Anna")
    assert caught[0].filename == __file__
