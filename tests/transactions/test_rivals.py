"""Two processes curate one file at once, and nothing that either did is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from houkai import InputError, MemoryStore, NotFound
from houkai.testing import HashingEmbedder
from tests.conftest import DIM, Opener
from tests.durability.checks import Say, together

ROUNDS = 20


class Side(NamedTuple):
    """What one of two processes works with: its store, its name, and the memories of each."""

    store: MemoryStore
    me: str
    hub: str
    mine: list[str]
    rivals: list[str]


Deed = Callable[[Side, int], object]


def _fight(say: Say, path: Path, deed: Deed, ids: list[str], me: str) -> None:
    mine, others = (ids[::2], ids[1::2]) if me == "0" else (ids[1::2], ids[::2])
    with MemoryStore(path, embedder=HashingEmbedder(DIM), actor=me) as store:
        side = Side(store, me, ids[0], mine, others)
        for n in range(ROUNDS):
            with contextlib.suppress(InputError, NotFound):
                deed(side, n)


def rivals(path: Path, deed: Deed, ids: list[str]) -> None:
    """Run a deed in two processes, `ROUNDS` times each, from one moment on."""
    together(_fight, [(path, deed, ids, me) for me in "01"])


@pytest.fixture
def ids(open_store: Opener) -> list[str]:
    """Return memories for both processes to fight over."""
    with open_store() as store:
        return [m.id for m in store.remember_many([f"memory {n}" for n in range(2 * ROUNDS + 2)])]


def whole(store: MemoryStore) -> None:
    """Check that journal, rows and chain agree."""
    assert store.verify_journal() is None
    everything = {m.id: m for m in store.state_at("now")}
    assert all(link.to in everything for m in everything.values() for link in m.links)
    assert all(
        m.superseded_by is None or m.superseded_by in everything for m in everything.values()
    )


def test_links_of_both_are_kept(path: Path, ids: list[str], open_store: Opener) -> None:
    """AI-Houkai kept 36 to 39 of 60 links that two processes made."""
    rivals(path, lambda s, n: s.store.link(s.hub, s.mine[1 + n]), [ids[0], *ids])
    with open_store() as store:
        assert len(store.neighbors(ids[0])) == 2 * ROUNDS
        assert len(store.journal(None, op="link")) == 2 * ROUNDS
        whole(store)


def test_edits_of_both_are_kept(path: Path, ids: list[str], open_store: Opener) -> None:
    """An edit of one field must not write back the rival's old value of another."""

    def edit(s: Side, n: int) -> None:
        if s.me == "0":
            s.store.edit(s.hub, tags=[f"tag {n}"])
        else:
            s.store.edit(s.hub, source=f"file {n}")
        s.store.recall("memory", 3)

    rivals(path, edit, ids)
    with open_store() as store:
        hub = store.get(ids[0])
        assert hub is not None
        assert (hub.tags, hub.source) == ([f"tag {ROUNDS - 1}"], f"file {ROUNDS - 1}")
        assert len(store.journal(None, op="edit")) == 2 * ROUNDS
        whole(store)


def test_merges_of_both_are_kept(path: Path, ids: list[str], open_store: Opener) -> None:
    """A merge that overwrites its rival's loses a memory's text for good."""
    rivals(path, lambda s, n: s.store.merge(s.hub, s.mine[1 + n], separator="; "), [ids[0], *ids])
    with open_store() as store:
        hub = store.get(ids[0])
        assert hub is not None
        parts = [f"memory {n}" for n in range(2 * ROUNDS + 1)]
        assert sorted(hub.text.split("; ")) == sorted(parts)
        assert store.count() == 2
        assert len(store.versions(ids[0])) == 2 * ROUNDS
        whole(store)


def test_nothing_is_superseded_in_a_circle(path: Path, ids: list[str], open_store: Opener) -> None:
    """Each half of a circle is harmless; two processes must not make one half each."""
    rivals(path, lambda s, n: s.store.supersede(s.mine[n], s.rivals[n]), ids)
    with open_store() as store:
        hidden = [m for m in store.list_recent(None, include_superseded=True) if m.superseded_by]
        shown = store.list_recent(None)
        assert len(hidden) == ROUNDS
        assert len(shown) == len(ids) - ROUNDS
        links = [m for m in shown for link in m.links if link.rel == "supersedes"]
        assert len(links) == ROUNDS
        whole(store)


def test_one_superseder_wins(path: Path, ids: list[str], open_store: Opener) -> None:
    """Two superseders of one memory would leave a link that restore does not know."""
    rivals(path, lambda s, n: s.store.supersede(s.hub, s.mine[1 + n]), [ids[0], *ids])
    with open_store() as store:
        winner = store.get(store.get(ids[0]).superseded_by)  # type: ignore[union-attr, arg-type]
        assert winner is not None
        linked = [m.id for m in store.list_recent(None) if m.links]
        assert linked == [winner.id]
        assert store.restore(ids[0])
        assert not [m for m in store.list_recent(None) if m.links]
        whole(store)


def test_a_memory_trashed_twice_comes_back_once(
    path: Path, ids: list[str], open_store: Opener
) -> None:
    """Two cleaners that meet at one memory must not leave two of it, or none."""

    def clean(s: Side, n: int) -> None:
        s.store.trash(ids[n])
        s.store.trash_restore(ids[n])
        s.store.trash(ids[n])

    rivals(path, clean, ids)
    with open_store() as store:
        assert len(store.trash_list()) == ROUNDS
        assert store.count() == len(ids) - ROUNDS
        for entry in store.trash_list():
            assert store.trash_restore(entry.memory_id) is not None
        assert store.count() == len(ids)
        whole(store)
