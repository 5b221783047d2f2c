"""Decide in one place, in SQL, which memories a query may see.

`condition` is put into every query over `memory m`; `allows` is its twin for one memory in
Python, held equal by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from houkai.vocabulary import TRUST_LEVELS, MemoryType, Trust

ANY_COLLECTION: Final = "*"


@dataclass(frozen=True)
class Filter:
    """Which memories a query may see. Times are epoch seconds, normalised before this is made."""

    collection: str
    now: float
    type: MemoryType | None = None
    tag: str | None = None
    min_importance: float | None = None
    source: str | None = None
    author: str | None = None
    since: float | None = None
    until: float | None = None
    min_trust: Trust | None = None
    valid_at: float | None = None
    include_superseded: bool = False
    include_expired: bool = False
    include_retired: bool = False
    known_by: int | None = None
    """Only what was there once this operation was done, as it was then."""

    def narrow(self) -> bool:
        """Say whether more is asked than to be there, to stand and to be of the collection."""
        asked = (self.type, self.tag, self.min_importance, self.source, self.author, self.since)
        return any(one is not None for one in (*asked, self.until, self.min_trust))

    def trusted_enough(self) -> tuple[Trust, ...]:
        """Return the trust levels at or above the floor."""
        floor = self.min_trust or TRUST_LEVELS[-1]
        return TRUST_LEVELS[: TRUST_LEVELS.index(floor) + 1]


_COMPARED: Final = (
    ("collection", "m.collection = (select pk from collection where name = :f_collection)"),
    ("type", "m.type = :f_type"),
    ("tag", "m.pk in (select memory from tag where name = :f_tag)"),
    ("min_importance", "m.importance >= :f_min_importance"),
    ("source", "m.source = :f_source"),
    ("author", "m.author = :f_author"),
    ("since", "m.created_at >= :f_since"),
    ("until", "m.created_at <= :f_until"),
    ("known_by", "m.operation <= :f_known_by"),
)
"""The fields that stand for nothing when absent, and what each asks of `memory m`."""
_TAG_OF_EACH: Final = "exists (select 1 from tag where memory = m.pk and name = :f_tag)"
_TAG_OF_PAST: Final = "exists (select 1 from json_each(m.tags) where value = :f_tag)"


def condition(
    where: Filter, *, past: bool = False, each: bool = False
) -> tuple[str, dict[str, Any]]:
    """Return an SQL condition on `memory m`, or `past m`, and its named parameters.

    It says the same with `each`, but is quicker where memories are looked up one by one and not
    listed.
    """
    tag = _TAG_OF_PAST if past else _TAG_OF_EACH if each else None
    parts: list[str] = []
    values: dict[str, Any] = {}
    for name, sql in _COMPARED:
        value = getattr(where, name)
        if value is not None and (name, value) != ("collection", ANY_COLLECTION):
            parts.append(tag if tag and name == "tag" else sql)
            values[f"f_{name}"] = value
    if where.min_trust is not None:
        trusted = {f"f_trust{n}": level for n, level in enumerate(where.trusted_enough())}
        parts.append(f"m.trust in (:{', :'.join(trusted)})")
        values |= trusted
    if not where.include_superseded:
        parts.append("m.superseded_by is null")
    if not where.include_expired:
        parts.append("(m.expires_at is null or m.expires_at > :f_now)")
        values["f_now"] = where.now
    if not where.include_retired:
        parts.append("(m.valid_from is null or m.valid_from <= :f_valid)")
        parts.append("(m.valid_until is null or m.valid_until > :f_valid)")
        values["f_valid"] = where.now if where.valid_at is None else where.valid_at
    if past:
        parts.append("m.until > :f_known_by")
    return " and ".join(parts) or "true", values


def allows(where: Filter, image: Mapping[str, Any]) -> bool:
    """Say whether `where` lets through a memory given as an image or a dict of its fields."""
    get = image.get
    valid_at = where.now if where.valid_at is None else where.valid_at
    start, end, expiry = get("valid_from"), get("valid_until"), get("expires_at")
    return (
        where.collection in (ANY_COLLECTION, get("collection"))
        and where.type in (None, get("type"))
        and (where.tag is None or where.tag in (get("tags") or ()))
        and (where.min_importance is None or get("importance", 0.5) >= where.min_importance)
        and where.source in (None, get("source"))
        and where.author in (None, get("author"))
        and (where.since is None or image["created_at"] >= where.since)
        and (where.until is None or image["created_at"] <= where.until)
        and (where.min_trust is None or get("trust", "trusted") in where.trusted_enough())
        and (where.include_superseded or get("superseded_by") is None)
        and (where.include_expired or expiry is None or expiry > where.now)
        and (
            where.include_retired
            or ((start is None or start <= valid_at) and (end is None or end > valid_at))
        )
    )
