"""A guided tour of a store in a temporary file: what it prints is what really happened."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from houkai import clock, render
from houkai.hits import ExplainedHit, Hit
from houkai.model import Memory
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
            for chapter in (_remember, _recall, _serve, _change, _lose, _record):
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


def _serve(store: MemoryStore, say: Say) -> None:
    """Let a server in another process remember and recall in the same file."""
    _title(say, "Meanwhile an agent speaks to the same file, over MCP")
    _command(say, "mcp")
    fact = {"text": "Ben takes over on-call from June.", "tags": ["team"]}
    question = {"query": "who is on duty in summer?", "k": 1}
    for name, given in (("remember", fact), ("recall", question)):
        say(f"  -> {name} {json.dumps(given)}")
        answer = _ask(store.db.name, name, given)
        found = answer.get("result", [answer])[0]
        say(f"  <- {json.dumps({key: found[key] for key in ('text', 'stored') if key in found})}")


def _ask(path: str, tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """Call one tool of `houkai mcp` as a client does, and return its structured answer."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "demo", "version": "1"},
    }
    asked: list[dict[str, Any]] = [
        {"id": 0, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/call", "params": {"name": tool, "arguments": given}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **one}) + "\n" for one in asked)
    command = [sys.executable, "-m", "houkai.cli", "--db", path, "mcp"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    answer: dict[str, Any] = next(a for a in answers if a.get("id") == 1)["result"]
    return dict(answer["structuredContent"])


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
