"""What the operations that rank memories answer."""

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict, cast

from houkai.doors.shapes.memories import Brief
from houkai.doors.shapes.picking import Given, brief, pick
from houkai.hits import ExplainedHit, Hit
from houkai.model import Memory
from houkai.ops.evaluate import EvalResult
from houkai.packing import PackResult


class Recalled(Brief):
    """What a recall shows of a memory."""

    importance: float
    score: float
    explain: NotRequired[dict[str, Any]]


class Packed(TypedDict):
    """What a pack shows of a memory."""

    id: str
    text: str
    type: str
    tags: list[str]
    importance: float
    score: float
    tokens: int
    trust: str


class Folded(TypedDict):
    """Similar memories that a pack shows as one line."""

    ids: list[str]
    text: str
    tokens: int
    count: int


class Pack(TypedDict):
    """A block of text for a prompt, and what is in it."""

    text: str
    used_tokens: int
    budget: int
    truncated: bool
    items: list[Packed]
    compressed_groups: list[Folded]
    near_misses: int


class Context(Pack):
    """A pack, and the queries that it answers."""

    queries: list[str]


class Measured(TypedDict):
    """How well recall answered questions with known answers."""

    n: int
    k: int
    recall_at_k: float
    precision_at_k: float
    mrr: float
    map: float
    ndcg_at_k: float
    per_case: list[dict[str, Any]]


def recall(hits: Sequence[Hit | ExplainedHit], _given: Given) -> list[Recalled]:
    """Show hits, best first."""
    return [_hit(*hit) for hit in hits]


def _hit(memory: Memory, score: float, explain: dict[str, Any] | None = None) -> Recalled:
    more = {} if explain is None else {"explain": explain}
    return brief(Recalled, memory, score=round(score, 4), **more)


def recall_pack(pack: PackResult, _given: Given) -> Pack:
    """Show a pack."""
    return {
        "text": pack.text,
        "used_tokens": pack.used_tokens,
        "budget": pack.budget,
        "truncated": pack.truncated,
        "items": [
            pick(Packed, one.memory, score=round(one.score, 4), tokens=one.tokens)
            for one in pack.items
        ],
        "compressed_groups": [
            {
                "ids": [memory.id for memory in group.memories],
                "text": group.text,
                "tokens": group.tokens,
                "count": len(group.memories),
            }
            for group in pack.compressed_groups
        ],
        "near_misses": pack.near_misses,
    }


def auto_context(pack: PackResult, given: Given) -> Context:
    """Show a pack with the queries it answers."""
    return {**recall_pack(pack, given), "queries": pack.queries}


def eval_recall(result: EvalResult, _given: Given) -> Measured:
    """Show the measures."""
    return cast("Measured", vars(result))
