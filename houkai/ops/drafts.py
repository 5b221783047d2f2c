"""Turn what a caller says of a memory into a checked draft, and a draft into an image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from houkai import params
from houkai.clock import parse_time
from houkai.errors import InputError
from houkai.rules import clean
from houkai.storage.rows import Image, trim


@dataclass(frozen=True)
class RememberItem:
    """One memory to store, as `remember_many` takes it; the fields are `remember`'s."""

    text: params.Text
    type: params.Type = "semantic"
    tags: params.Tags = ()
    importance: params.Importance = None
    source: params.Source = None
    polarity: params.Sentiment = 0
    expires_at: params.ExpiresAt = None
    ttl_seconds: params.Ttl = None
    pinned: params.Pinned = False
    trust: params.TrustLevel = "trusted"
    valid_from: params.ValidFrom = None
    valid_until: params.ValidUntil = None
    created_at: params.CreatedAt = None
    author: params.Author = None
    position: params.Position = None
    entities: params.Entities = ()


_DEFAULTS: Final = {field.name: field.default for field in fields(RememberItem)}


def draft(item: str | RememberItem | Mapping[str, Any], now: float) -> dict[str, Any]:
    """Return an item's fields, checked and normalised; spans count from `now`.

    Raises InputError.
    """
    if isinstance(item, str):
        given: Mapping[str, Any] = {"text": item}
    elif isinstance(item, RememberItem):
        given = {name: getattr(item, name) for name in _DEFAULTS}
    elif isinstance(item, Mapping):
        given = item
    else:
        raise InputError(
            f"An item must be text, or hold the fields of `remember`, got {type(item).__name__}."
        )
    unknown = [str(name) for name in given if name not in _DEFAULTS]
    if unknown:
        fields = ", ".join(_DEFAULTS)
        raise InputError(f"An item has no field {unknown[0]!r}; fields are: {fields}.")
    if "text" not in given:
        raise InputError("An item needs its text.")
    # `remember` names every parameter, of which most are as they were left: nothing to check.
    said = {name: value for name, value in given.items() if value is not _DEFAULTS[name]}
    return _consistent(clean(RememberItem, said, at=now), now)


def drafts(
    items: Iterable[str | RememberItem | Mapping[str, Any]], now: float, *, numbered: bool
) -> list[dict[str, Any]]:
    """Return the drafts of items; where `numbered`, a refusal says which item it is about."""
    made: list[dict[str, Any]] = []
    for item in items:
        try:
            made.append(draft(item, now))
        except InputError as error:
            if not numbered:
                raise
            raise InputError(f"items[{len(made)}]: {error.message}", hint=error.hint) from None
    return made


def _consistent(values: dict[str, Any], now: float) -> dict[str, Any]:
    ttl = values.pop("ttl_seconds", None)
    if ttl is not None:
        if values.get("expires_at") is not None:
            raise InputError("Give ttl_seconds or expires_at, not both.")
        values["expires_at"] = parse_time(now + ttl, "ttl_seconds, counted from now,")
    check_validity(values.get("valid_from"), values.get("valid_until"))
    values["text"] = values["text"].strip()
    return values


def check_validity(start: float | None, end: float | None) -> None:
    """Refuse a world time that ends before it begins."""
    if start is not None and end is not None and end <= start:
        raise InputError("valid_until must be later than valid_from.")


def image(values: Mapping[str, Any], collection: str, importance: float, now: float) -> Image:
    """Return the image of a new memory from a draft. The position is settled when it is written."""
    made = {
        "collection": collection,
        "type": "semantic",
        **values,
        "importance": importance,
        "pinned": int(values.get("pinned", False)),
        "created_at": now if values.get("created_at") is None else values["created_at"],
    }
    return trim(made)


def changed_image(before: Image, values: Mapping[str, Any]) -> Image:
    """Return an image with the given fields replaced; None in `values` means absent."""
    after = {**before, **values}
    if after["created_at"] is None:  # every memory was learnt at some time
        after["created_at"] = before["created_at"]
    if "pinned" in values:
        after["pinned"] = int(values["pinned"])
    if "text" in values:
        after["text"] = values["text"].strip()
    check_validity(after.get("valid_from"), after.get("valid_until"))
    return trim(after)
