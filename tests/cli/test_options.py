"""Flags are the library's parameters: none is missing, none is described twice."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, get_type_hints

import pytest
import typer

from houkai import HybridWeights, InputError, MemoryStore, RememberItem
from houkai.cli import app, options
from houkai.cli.recall import weights
from houkai.rules import parameters
from tests.cli.conftest import Runner

ROOT: Any = typer.main.get_command(app.app)
GIVEN_OTHERWISE = {
    "remember": {"text", "contradiction_fn"},
    "recall": {"query", "reranker", "expand"},
    "list": set[str](),
    "edit": {"memory_id"},
    "journal tail": {"limit"},
    "undo": set[str](),
    "pack": {"query", "reranker", "token_counter", "expand"},
    "auto-context": {"reranker", "token_counter", "expand"},
    "eval": {"cases", "collection", "expand"},
    "conflicts": {"memory_id"},
    "neighbors": {"memory_id"},
    "path": {"from_id", "to_id"},
    "journal prune": {"dry_run"},
    "tags list": set[str](),
    "trash purge": {"memory_id"},
}
"""Parameters that are an argument or another flag, or make no sense on a command line."""
OPERATIONS = {
    "remember": MemoryStore.remember,
    "recall": MemoryStore.recall,
    "list": MemoryStore.list_recent,
    "edit": MemoryStore.edit,
    "journal tail": MemoryStore.journal,
    "undo": MemoryStore.preview_undo,
    "pack": MemoryStore.recall_pack,
    "auto-context": MemoryStore.auto_context_pack,
    "eval": MemoryStore.eval_recall,
    "conflicts": MemoryStore.find_conflicts,
    "neighbors": MemoryStore.neighbors,
    "path": MemoryStore.find_path,
    "journal prune": MemoryStore.prune_journal,
    "tags list": MemoryStore.list_tags,
    "trash purge": MemoryStore.trash_purge,
}


def built(words: str) -> Any:
    """Return a command, or one inside a group, as Typer builds it."""
    command = ROOT
    for word in words.split():
        parent = typer.Context(command)
        command = command.get_command(parent, word)
    return command


def leaves() -> list[str]:
    """Name every command, those inside groups by two words."""
    found: list[str] = []
    for name in app.ENTRIES:
        inside = getattr(built(name), "commands", {})
        found += [f"{name} {child}" for child in inside] or [name]
    return found


@pytest.mark.parametrize("words", OPERATIONS)
def test_every_parameter_has_its_flag(words: str) -> None:
    """A knob of the library that the command line lacks would drift away unseen."""
    names = {parameter.name for parameter in built(words).params}
    wanted = set(parameters(OPERATIONS[words])) - GIVEN_OTHERWISE[words] - {"store"}
    assert wanted <= names


@pytest.mark.parametrize("words", leaves())
def test_moments_say_of_what(words: str) -> None:
    """When a memory was learnt and when something was done to it are different moments."""
    told = {p.name: p.help for p in built(words).params if p.name in ("since", "until")}
    done = words in ("journal tail", "undo")
    assert all(("done at" if done else "learnt at") in (text or "") for text in told.values())


def test_option_groups_are_the_librarys() -> None:
    """A field added to a memory must not be forgotten by remember and edit."""
    fields = set(inspect.signature(RememberItem).parameters) - {"text"}
    assert set(get_type_hints(options.RememberOptions)) == fields | {"idempotent", "on_conflict"}
    edited = set(inspect.signature(MemoryStore.edit).parameters)
    assert set(get_type_hints(options.EditOptions)) == edited - {"store", "memory_id", "text"}


@pytest.mark.parametrize("words", leaves())
def test_every_option_says_what_it_does(words: str) -> None:
    """An option without a sentence sends its user to the source."""
    silent = [p.name for p in built(words).params if not p.help and not getattr(p, "hidden", 0)]
    assert not silent


@pytest.mark.parametrize("words", leaves())
def test_what_may_be_repeated_says_so(words: str) -> None:
    """Who is not told writes -g a,b and gets one tag of that name."""
    for one in built(words).params:
        if one.param_type_name == "option" and one.multiple:
            assert "May be repeated." in one.help


@pytest.mark.parametrize("words", leaves())
def test_every_command_shows_its_help(words: str, cli: Runner) -> None:
    """A command whose options clash or cannot be built fails only when somebody calls it."""
    done = cli(*words.split(), "--help")
    assert done.code == 0
    assert "Usage: houkai" in done.out
    assert "\x1b" not in done.out


def test_no_command_gives_one_flag_two_meanings() -> None:
    """Of two options with one name only the last would ever be reached."""
    clashes = {}
    for words in leaves():
        flags = [flag for p in built(words).params for flag in (*p.opts, *p.secondary_opts)]
        twice = {flag for flag in flags if flags.count(flag) > 1}
        if twice:
            clashes[words] = twice
    assert not clashes


def test_the_first_help_says_what_the_commands_say() -> None:
    """The sentences of the table are copies, kept for a quick start: copies drift."""
    for entry in app.ENTRIES.values():
        command = built(entry.name)
        assert command.help.partition("\n")[0] == entry.sentence
        assert import_module(f"houkai.cli.{entry.module}")


def test_weights_are_read() -> None:
    """A weight that is lost on the way ranks by something the user did not ask for."""
    read = weights(["recency=1", "recency_basis=accessed"])
    assert read == HybridWeights(recency=1.0, recency_basis="accessed")
    for wrong in ("recency", "recency=much", "charm=1"):
        with pytest.raises(InputError):
            weights([wrong])


def test_expansion_is_chosen_in_full(cli: Runner) -> None:
    """Expansion by depth alone could neither choose relations nor bound what it brings."""
    one = cli("remember", "Anna lands at nine").out.strip()
    two = cli("remember", "zzz qqq").out.strip()
    cli("link", one, two, "--rel", "derived_from")

    def found(*more: str) -> bool:
        return two in cli("recall", "Anna", "-k", "1", "--format", "tsv", *more).out

    assert not found("--expand", "1")
    assert found("--expand-rel", "derived_from")
    assert not found("--expand-rel", "derived_from", "--expand-cap", "0")
