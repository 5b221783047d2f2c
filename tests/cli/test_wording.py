"""Errors call options and arguments what their user types."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

import pytest

from houkai import InputError, MemoryStore
from houkai.cli import wording
from houkai.rules import parameters
from tests.cli.conftest import Runner
from tests.cli.test_options import OPERATIONS, built
from tests.support import ROOT

TYPED = {
    ("remember", "x", "--ttl", "soon"): "--ttl must be seconds or a span",
    ("remember", "x", "--ttl", "1d", "--expires-at", "2d"): "Give --ttl or --expires-at, not both.",
    ("remember", "x", "--valid-from", "7d"): "--valid-from must be epoch seconds or an ISO date",
    ("remember", "x", "--valid-from", "2026-02-01", "--valid-until", "2026-01-01"):
        "--valid-until must be later than --valid-from.",
    ("remember", "x", "-g", "y" * 200): "A name in --tag has 200 characters",
    ("remember", " "): "TEXT must not be empty or blank.",
    ("remember", "x", "-i", "7"): "--importance must be a number from 0 to 1, got 7.0.",
    ("recall", " "): "QUERY must not be empty or blank.",
    ("recall", "x", "--since", "since"): "--since must be epoch seconds",
    ("recall", "x", "-x", "9"): "--expand must be a whole number from 0 to 6, got 9.",
    ("recall", "x", "--expand-rel", "likes"): "--expand-rel must be of: related",
    ("recall", "x", "-w", "cosine=5000"): "--weight cosine must be a number from -1000 to 1000",
    ("recall", "x", "-w", "decay_rate=-1"): "--weight decay_rate must be a number from 0",
    ("recall", "x", "--weight", "cosine=0", "-w", "lexical=0", "-w", "recency=0", "-w",
     "importance=0"): "--weight: cosine, lexical, recency and importance must sum",
    ("pack", "x", "--budget", "-1"): "--budget must be a whole number from 0",
    ("auto-context", " "): "TASK must not be empty",
    ("diff", "soon"): "FROM must be epoch seconds",
    ("diff", "0", "soon"): "TO must be epoch seconds",
    ("state-at", "soon"): "WHEN must be epoch seconds",
    ("journal", "tail", "-n", "-1"): "--number must be a whole number",
    ("journal", "prune"): "Give --before or --keep-last, one of them.",
    ("undo", "--since", "soon"): "--since must be epoch seconds",
    ("trash", "purge", "--older-than", "-1", "--yes"): "--older-than must be a number of 0",
    ("tags", "rename", " ", "x"): "OLD must not be empty",
    ("show", ""): "ID must not be empty or blank.",
    ("recall", "x", "-w", "cosine"): "--weight must be NAME=X, such as cosine=0.7, got 'cosine'.",
    ("pack", "x", "--max-items", "-1"): "--max-items must be a whole number from 0 to 10000, got",
    ("-C", "*", "list"): 'A store works in one collection. "*" looks in all of them as an option',
}  # fmt: skip


@pytest.mark.parametrize("arguments", TYPED, ids=lambda arguments: " ".join(arguments)[:40])
def test_errors_name_what_was_typed(arguments: Sequence[str], cli: Runner) -> None:
    """Who typed --ttl has never heard of ttl_seconds, and may look for it in vain."""
    cli("remember", "a memory")
    done = cli(*arguments)
    assert done.code == 1
    assert done.err.startswith(f"Error: {TYPED[tuple(arguments)]}")
    assert not re.search(r"\w_\w", re.sub("decay_rate|derived_from|example_of", "", done.err))


def test_a_memory_named_twice(cli: Runner) -> None:
    """The ids of a link are arguments of one command."""
    id = cli("remember", "a memory").out.strip()
    assert "FROM and TO must differ" in cli("link", id, id).err


@pytest.mark.parametrize("words", OPERATIONS)
def test_no_name_of_the_library_is_left(words: str) -> None:
    """A parameter that is added later must be named as it is typed, without being listed here."""
    taken = built(words).params
    for name in set(parameters(OPERATIONS[words])) & {one.name for one in taken}:
        error = InputError(f"{name} must be 1.", hint=f"Give {name} once.")
        wording.retell(error, taken)
        said = (error.message.split()[0], error.hint.split()[1])
        assert said[0] == said[1]
        assert said[0].startswith("--") or said[0].isupper()


def test_words_that_only_look_like_names_stay() -> None:
    """What the user gave, and plain English, must not be translated."""
    taken: Any = built("recall").params
    for sentence in (
        "The type of it is limit.",
        "query-string must be 'as_of'.",
        "No memory has the id 'as_of'.",
        "Run `houkai list as_of`.",
        "Line 3: k must be a whole number.",
        "/tmp/as_of.db and /tmp/as_of/x and /as_of are no files.",
    ):
        error = InputError(sentence)
        wording.retell(error, taken)
        assert error.message == sentence


def test_the_library_keeps_its_own_names(store: MemoryStore) -> None:
    """A program reads the same sentence as before."""
    with pytest.raises(InputError, match="ttl_seconds must be more than zero"):
        store.remember("x", ttl_seconds=-0.0)


def test_no_editor_is_started_where_nobody_can_type(cli: Runner) -> None:
    """An agent's shell has no terminal: the usual editor would wait for keys for ever."""
    id = cli("remember", "a memory").out.strip()
    done = cli("edit", id)
    assert (done.code, done.err) == (
        1,
        "Error: There is no terminal for an editor. Give what changes, such as --text.\n",
    )


def test_a_tag_that_nothing_carries_is_said_to_be_so(cli: Runner) -> None:
    """\"Renamed it\" would hide that the tag was misspelt."""
    cli("remember", "a memory", "-g", "ops")
    done = cli("tags", "rename", "opps", "work")
    assert (done.code, done.out) == (0, "")
    assert done.err == "Note: No memory has the tag 'opps'; nothing was renamed.\n"


SLIPS = {
    ("recall", "two", "words"): "(words). Put quotes around a text with spaces.",
    ("show", "a", "b"): "(b). It takes: ID.",
    ("salvage", "a", "b", "c"): "(c). It takes: FILE NEW.",
    ("--format", "json", "list"): "--format. Options of a command stand after it.",
    ("doctor", "/tmp"): "(/tmp). It takes options alone; --db names a memory file.",
    ("trash", "ab12"): "'ab12'. There are: put, list, restore, purge. Did you mean: "
        "houkai trash put ab12",
    ("journal", "12"): "verify. Did you mean: houkai journal show 12",
    ("tags", "ops"): "'ops'. There are: list, rename, merge, delete.",
    ("trash", "lst"): "No such command 'lst'. Did you mean 'list'?",
    ("recal", "x"): "No such command 'recal'. Did you mean 'recall'",
    ("xyz",): "No such command 'xyz'.",
}  # fmt: skip


@pytest.mark.parametrize("arguments", SLIPS, ids=lambda arguments: " ".join(arguments))
def test_a_slip_is_told_how_it_is_typed(arguments: Sequence[str], cli: Runner) -> None:
    """The commonest slips of all must not end in a riddle about arguments."""
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert SLIPS[tuple(arguments)] in done.err


def named_in_sentences() -> set[str]:
    """Find the operations that the library's sentences name between backticks."""
    said: list[str] = []
    for folder in ("ops", "storage", "embed", "search"):
        for path in (ROOT / "houkai" / folder).glob("*.py"):
            nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
            docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
            said += [
                str(node.value)
                for node in nodes
                if isinstance(node, ast.Constant) and id(node) not in docstrings
            ]
    return {name for name in re.findall(r"`(\w+)`", " ".join(said)) if hasattr(MemoryStore, name)}


def test_an_operation_is_named_as_its_command() -> None:
    """A hint such as "`journal` lists what was done" sends a shell's user to nothing."""
    assert {f"`{name}`" for name in named_in_sentences()} == set(wording.COMMANDS)
    for command in wording.COMMANDS.values():
        assert built(command.strip("`").removeprefix("houkai "))


def test_notes_name_what_was_typed(cli: Runner) -> None:
    """A note is read at the same door as an error, so it must speak the same words."""
    one, two = (cli("remember", text).out.strip() for text in ("Anna lands at nine", "zzz qqq"))
    cli("link", one, two)
    done = cli("recall", "Anna", "-k", "1", "-x", "1")
    assert done.err == (
        "Note: No linked memory was added: the hits have links of related, and --expand-rel "
        "follows refines, example_of.\n"
    )
    assert "houkai journal tail` lists" in cli("undo", "99").err
