"""The file an editor gets: what was not changed in it is not changed in the memory."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from houkai import InputError, Memory
from houkai.cli import document

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=40)
NAMES = st.lists(WORDS, max_size=3)
MEMORIES = st.builds(
    Memory,
    id=st.just("0" * 36),
    text=WORDS,
    tags=NAMES,
    entities=NAMES,
    source=st.none() | WORDS,
    author=st.none() | WORDS,
    position=st.none() | st.integers(0, 9),
    importance=st.floats(0, 1),
    created_at=st.floats(0, 4e9),
    expires_at=st.none() | st.floats(1, 4e9),
    pinned=st.booleans(),
)


@given(MEMORIES)
def test_any_memory_survives_the_file(memory: Memory) -> None:
    """A sign that the file cannot carry would corrupt the memory of everyone who edits it."""
    text = document.written(memory)
    assert document.changes(text, text) == {}
    assert document.changes(text, text.replace("\n", "\r\n")) == {}


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ('tags = ["a, b", "c"]', {"tags": ["a, b", "c"]}),
        ('source = ""', {"source": None}),
        ('position = ""', {"position": None}),
        ('expires_at = ""', {"expires_at": 0}),
        ('expires_at = "7d"', {"expires_at": "7d"}),
        ("pinned = true", {"pinned": True}),
        ("", {}),
    ],
)
def test_a_changed_line_is_one_change(line: str, changes: dict[str, Any]) -> None:
    """What stands in a line must be what is written; a line that is deleted changes nothing."""
    memory = Memory("0" * 36, "text", tags=["old"], source="x", position=1, expires_at=2e9)
    text = document.written(memory)
    name = line.partition(" ")[0] or "tags"
    lines = [line if one.startswith(f"{name} =") else one for one in text.splitlines()]
    assert document.changes(text, "\n".join(lines)) == changes


def test_text_may_look_like_the_frame() -> None:
    """A memory about such files must not be cut at its own +++ line."""
    memory = Memory("0" * 36, "first\n+++\nlast")
    text = document.written(memory)
    assert document.changes(text, text) == {}
    assert document.changes(text, text + "more") == {"text": "first\n+++\nlast\nmore"}


def test_complaints_name_the_line() -> None:
    """Whoever mistypes must be told where."""
    text = document.written(Memory("0" * 36, "text"))
    line = next(n for n, one in enumerate(text.splitlines(), 1) if one.startswith("trust"))
    with pytest.raises(InputError, match=f"line {line}"):
        document.changes(text, text.replace("trust = ", "trust = ?"))
