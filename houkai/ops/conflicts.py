"""Find memories that repeat or contradict each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apsw

from houkai import conflict_rules as rules
from houkai import params
from houkai.handle import Store
from houkai.limits import CONFLICTS
from houkai.model import Conflict, Memory
from houkai.notes import note
from houkai.rules import clean
from houkai.storage import memories
from houkai.storage.eligible import Filter, condition


def find_conflicts(
    store: Store,
    memory_id: params.MemoryId | None = None,
    *,
    threshold: params.ConflictThreshold | None = None,
    deep: params.Deep = False,
    limit: params.Limit = None,
) -> list[Conflict]:
    """Find memories that contradict or repeat each other, contradictions first.

    Compares one memory with all others, or every pair. Memories conflict when they are of one
    type, similar in meaning, and not tagged apart: as contradictions by opposite polarity, by
    negation (English only) or by the store's own function, as duplicates otherwise. A pair linked
    as contradicting is told of until one side is superseded or forgotten, or the link removed.
    `deep` also finds less similar contradictions by their words, at the price of a search for each
    memory. Raises InputError.
    """
    given = {"memory_id": memory_id, "threshold": threshold, "deep": deep, "limit": limit}
    values = clean(find_conflicts, given)
    least = values["threshold"]
    least = store.settings.conflict_threshold if least is None else least
    where = store.where()
    with store.read() as connection:
        subject = _number(connection, values["memory_id"], where)
        if subject is None and values["memory_id"] is not None:
            return []
        linked = _linked(connection, subject, where)
        near = _suspects(store, connection, where, subject, least, linked, values["deep"])
        found = memories.by_pks(connection, list({pk for pair in near for pk in pair}), None)
    floor = rules.CONTRADICTION_SIMILARITY if values["deep"] else None
    told = []
    for pair, similarity in near.items():
        a, b = _in_order(pair, found, subject)
        verdict: Conflict | None
        if pair in linked:
            rounded = round(similarity, rules.DIGITS)
            verdict = Conflict(a, b, rounded, "contradiction", "link")
        else:
            custom = store.settings.contradiction_fn
            verdict = rules.judge(a, b, similarity, least, custom, floor=floor)
        told += [verdict] if verdict else []
    return sorted(told, key=_gravity)[: values["limit"]]


def _suspects(
    store: Store,
    connection: apsw.Connection,
    where: Filter,
    subject: int | None,
    least: float,
    linked: set[tuple[int, int]],
    deep: bool,
) -> dict[tuple[int, int], float]:
    """Return the pairs to judge with their similarities."""
    from houkai.search import suspects  # numpy, which a listing never needs

    view = store.sketches().at(connection)
    near = suspects.near(view, where, rules.reach(least), subject, CONFLICTS)
    if len(near) == CONFLICTS:
        note(f"Only the {CONFLICTS:,} most similar pairs were judged, the limit of conflicts.")
    more = set(linked)
    if deep:
        more |= suspects.worded(view, where, subject)
    return near | suspects.similarities(connection, more - near.keys())


def _number(connection: apsw.Connection, id: str | None, where: Filter) -> int | None:
    """Return the number of a memory that is not hidden."""
    sql, values = condition(where)
    number: int | None = connection.execute(
        f"select m.pk from memory m where m.id = :id and {sql}", {**values, "id": id}
    ).get
    return number


def _linked(
    connection: apsw.Connection, subject: int | None, where: Filter
) -> set[tuple[int, int]]:
    """Return the pairs that are linked as contradicting and not resolved."""
    sql, values = condition(where)
    rows: list[tuple[Any, ...]] = connection.execute(
        f"""with live as (select m.pk from memory m where {sql})
            select min(l.src, l.dst), max(l.src, l.dst) from link l
            where l.rel = 'contradicts' and l.src in live and l.dst in live
              and (:subject is null or :subject in (l.src, l.dst))""",
        {**values, "subject": subject},
    ).fetchall()
    return {(a, b) for a, b in rows}


def _in_order(
    pair: tuple[int, int], found: Mapping[int, Memory], subject: int | None
) -> tuple[Memory, Memory]:
    """Return the memory asked about and the other, or the older and the newer."""
    a, b = pair
    swap = b == subject if subject is not None else found[b].created_at < found[a].created_at
    return (found[b], found[a]) if swap else (found[a], found[b])


def _gravity(one: Conflict) -> tuple[bool, bool, float]:
    return (one.kind != "contradiction", one.reason != "link", -one.similarity)
