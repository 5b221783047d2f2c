"""Take from a record the fields that a shape has."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from houkai.model import Memory

Given = Mapping[str, Any]
"""The arguments of the call, with defaults."""
Shape = TypeVar("Shape")


def pick(shape: type[Shape], record: Any, **more: Any) -> Shape:
    """Return the fields of a record, any dataclass, that a shape has, and what else it holds."""
    values = record.to_dict() if isinstance(record, Memory) else vars(record)
    values = {**values, **more}
    return cast("Shape", {name: values[name] for name in shape.__annotations__ if name in values})


def brief(shape: type[Shape], memory: Memory, **more: Any) -> Shape:
    """Pick from a memory, without an author that nobody named."""
    picked = cast("dict[str, Any]", pick(shape, memory, **more))
    if picked["author"] is None:
        del picked["author"]
    return cast("Shape", picked)
