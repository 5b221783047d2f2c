"""A guided tour of a store in a temporary file: what it prints is what really happened."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from houkai import clock, render
from houkai.model import ExplainedHit, Hit, Memory
from houkai.ops.drafts import RememberItem
from houkai.store import MemoryStore

Say = Callable[[str], None]

FACTS: Final = (
    RememberItem("Ana cannot eat peanuts; even traces make her ill.", tags=["team"]),
    RememberItem("We ship on Tuesdays, because on-call is thin at the weekend.", "procedural"),
    RememberItem("The staging database is a copy of production from March.", tags=["ops"]),
    RememberItem("The user wants short answers without bullet points.", "feedback"),
    RememberItem("Payments broke after the TLS certificate ran out.", "episodic", tags=["ops"]),
    RememberItem("The mobile app is written in Kotlin and Swift.", tags=["app"]),
)
QUESTIONS: Final = (
    "which snacks are safe for the offsite?",
    "when is a good day to deploy?",
    "why did customers fail to pay?",
)


def tell(say: Say) -> None:
    """Tell the story of a memory file, made for it and deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="houkai-demo-") as folder:
        path = Path(folder) / "memory.db"
        with MemoryStore(path, "default", actor="demo") as store:
            for chapter in (_remember, _recall, _change, _lose, _record):
                chapter(store, say)
        _close(path, say)


def _title(say: Say, text: str) -> None:
    say(f"\n== {text}")


def _command(say: Say, text: str) -> None:
    say(f"\n  $ houkai {text}")


def _remember(store: MemoryStore, say: Say) -> None:
    _title(say, "An agent writes down what it learns")
    for memory in store.remember_many(FACTS):
        type = "" if memory.type == "semantic" else f" -t {memory.type}"
        tags = "".join(f" -g {tag}" for tag in memory.tags)
        _command(say, f'remember{type}{tags} "{memory.text}"')
        say(f"  {render.short(memory.id)}")


def _recall(store: MemoryStore, say: Say) -> None:
    _title(say, "Another session asks, in other words, offline")
    for question in QUESTIONS:
        _command(say, f'recall -k 2 "{question}"')
        for line in _hits(store.recall(question, k=2)):
            say(line)


def _hits(hits: Sequence[Hit | ExplainedHit]) -> Iterator[str]:
    for memory, score, *_ in hits:
        yield f"  {score:5.2f}  {render.short(memory.id)}  {memory.text}"


def _find(store: MemoryStore, word: str) -> Memory:
    return next(memory for memory in store.list_recent(None) if word in memory.text)


def _change(store: MemoryStore, say: Say) -> None:
    _title(say, "A fact changes, and the past stays known")
    old = _find(store, "Tuesdays")
    before = store.now()
    new = "We ship every day before noon, since on-call grew to six people."
    store.edit(old.id, text=new)
    _command(say, f'edit {render.short(old.id)} --text "{new}"')
    then = store.get_at(old.id, before)
    now = store.get(old.id)
    assert then is not None
    assert now is not None
    say(f"  now                   {now.text}")
    say(f"  {clock.iso(before)}  {then.text}")
    number = len(store.state_at(before))
    say(f"  At that moment the store knew {number} things; any moment can be asked about.")


def _lose(store: MemoryStore, say: Say) -> None:
    _title(say, "Somebody makes a mess, and it is put back")
    lost = store.as_actor("a hasty agent").nuke()
    _command(say, "nuke --yes")
    say(f"  Forgot {lost} memories. Left: {store.count()}")
    store.undo_last()
    _command(say, "undo")
    say(f"  Memories again: {store.count()}, found as before, with nothing computed anew:")
    for line in _hits(store.recall(QUESTIONS[1], k=1)):
        say(line)


def _record(store: MemoryStore, say: Say) -> None:
    _title(say, "Every change is on record: when, who, what")
    _command(say, "journal tail")
    for entry in reversed(store.journal()):
        what = render.about(render.entry_record(entry))
        say(f"  {entry.operation:>3}  {clock.iso(entry.ts)}  {entry.actor:<13}  {what}")


def _close(path: Path, say: Say) -> None:
    left = [found.name for found in path.parent.iterdir()]
    _title(say, "And all of it was one file")
    say(f"\n  {', '.join(left)}, {render.size(path.stat().st_size)}; it is deleted now.")
    say('\nYour turn:  houkai remember "..."   then   houkai recall "..."')
    say("For an agent:  houkai mcp")
