"""One filter, three forms: the SQL condition and its twins in Python and in arrays agree."""

from __future__ import annotations

from typing import Any

import apsw
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from houkai import MemoryStore
from houkai.search import facts as all_facts
from houkai.search.arrays import numbers
from houkai.search.facts import Labels
from houkai.search.in_file import InFile
from houkai.search.resident import Resident
from houkai.storage.eligible import ANY_COLLECTION, Filter, allows, condition
from houkai.storage.journal import Tx
from houkai.testing import HashingEmbedder
from houkai.vocabulary import MEMORY_TYPES, TRUST_LEVELS

NOW = 1_000.0
EMBEDDER = HashingEmbedder(8)
moments = st.sampled_from([1.0, 999.0, 999.5, NOW, 1_000.5, 2_000.0])
ends = st.one_of(st.none(), moments)
labels = st.sampled_from(["a", "A", "b", "*", "%", "", "日本", "a'b"])
shares = st.sampled_from([0.0, 0.25, 0.5, 1.0])

images = st.fixed_dictionaries(
    {"collection": st.sampled_from(["default", "other", "*"]), "created_at": moments},
    optional={
        "type": st.sampled_from(MEMORY_TYPES),
        "tags": st.lists(labels.filter(bool), unique=True, max_size=3),
        "importance": shares,
        "source": labels,
        "author": labels,
        "trust": st.sampled_from(TRUST_LEVELS),
        "expires_at": moments,
        "valid_from": moments,
        "valid_until": moments,
        "superseded_by": st.just("another"),
    },
)
filters = st.builds(
    Filter,
    collection=st.sampled_from(["default", "other", ANY_COLLECTION, "none"]),
    now=st.just(NOW),
    type=st.one_of(st.none(), st.sampled_from(MEMORY_TYPES)),
    tag=st.one_of(st.none(), labels),
    min_importance=st.one_of(st.none(), shares),
    source=st.one_of(st.none(), labels),
    author=st.one_of(st.none(), labels),
    since=ends,
    until=ends,
    min_trust=st.one_of(st.none(), st.sampled_from(TRUST_LEVELS)),
    valid_at=ends,
    include_superseded=st.booleans(),
    include_expired=st.booleans(),
    include_retired=st.booleans(),
)


def fill(store: MemoryStore, many: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Put images into the tables as they are, and return them by id."""
    stored = {
        f"id {n}": {"text": "x", "type": "semantic", "importance": 0.5, **image}
        for n, image in enumerate(many)
    }

    def work(tx: Tx) -> None:
        for id, image in stored.items():
            tx.put("memory", id, image)

    store.write("fill", work)
    return stored


@settings(max_examples=60)
@given(many=st.lists(images, min_size=1, max_size=12), wheres=st.lists(filters, min_size=8))
def test_sql_and_python_agree(many: list[dict[str, Any]], wheres: list[Filter]) -> None:
    """If they differ, a memory is shown by one path and hidden by another."""
    with MemoryStore(":memory:", embedder=EMBEDDER) as store:
        stored = fill(store, many)
        with store.read() as connection:
            for where in wheres:
                sql, values = condition(where)
                rows = connection.execute(f"select m.id from memory m where {sql}", values)
                by_sql = {id for (id,) in rows.fetchall()}
                by_python = {id for id, image in stored.items() if allows(where, image)}
                assert by_sql == by_python, where


@settings(max_examples=60)
@given(
    many=st.lists(images, min_size=1, max_size=12),
    later=st.lists(images, max_size=6),
    wheres=st.lists(filters, min_size=8),
    known=st.integers(0, 3),
)
def test_what_is_looked_up_and_what_is_held_agree(
    many: list[dict[str, Any]], later: list[dict[str, Any]], wheres: list[Filter], known: int
) -> None:
    """If they differ, the second recall of a process shows what the first one hid."""
    with MemoryStore(":memory:", embedder=EMBEDDER) as store:
        held, in_file = Resident(), InFile()
        fill(store, many)
        with store.read() as connection:
            held.at(connection)  # so that what follows is patched
        fill(store, later)
        with store.read() as connection:
            pks = np.sort(numbers(connection, "select pk as number from memory", ()))
            for where in (*wheres, Filter("default", NOW, known_by=known)):
                looked_up, in_ram = in_file.at(connection), held.at(connection)
                sql, values = condition(where)
                rows = connection.execute(f"select m.pk from memory m where {sql}", values)
                by_sql = sorted(pk for (pk,) in rows.fetchall())
                for view in (looked_up, in_ram):
                    found = view.few(where, 100)
                    assert found is not None
                    assert found.tolist() == by_sql, where
                    assert view.eligible(pks, where).tolist() == by_sql, where


def test_every_field_of_a_filter_counts_in_arrays() -> None:
    """A field that arrays do not know lets everything through in a process that stays."""
    base = Filter("default", NOW)
    facts = all_facts.of(apsw.Connection(":memory:"), Labels(), "memory", np.empty(0, np.int64))
    asked: set[str] = set()

    class Spy:
        def __getattr__(self, name: str) -> Any:
            asked.add(name)
            return getattr(base, name)

    all_facts.mask(facts, Spy(), 1, np.empty(0, np.int64))  # type: ignore[arg-type]
    assert asked == set(Filter.__dataclass_fields__)


@settings(max_examples=40)
@given(many=st.lists(images, min_size=1, max_size=8), where=filters)
def test_past_versions_are_filtered_as_live_ones_were(
    many: list[dict[str, Any]], where: Filter
) -> None:
    """A recall as of a moment must let through what it would have let through then."""
    with MemoryStore(":memory:", embedder=EMBEDDER) as store:
        stored = fill(store, many)
        known = store.journal(1)[0].operation if store.journal(1) else 1

        def replace(tx: Tx) -> None:
            for id, image in stored.items():
                tx.put("memory", id, {**image, "text": "replaced", "collection": "elsewhere"})

        store.write("replace", replace)
        then = Filter(**{**where.__dict__, "known_by": known})
        with store.read() as connection:
            sql, values = condition(then, past=True)
            rows = connection.execute(f"select m.id from past m where {sql}", values)
            by_sql = {id for (id,) in rows.fetchall()}
            sql, values = condition(then)
            assert connection.execute(f"select m.id from memory m where {sql}", values).get is None
        assert by_sql == {id for id, image in stored.items() if allows(where, image)}
