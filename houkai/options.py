"""The options that operations share, in groups; callers write them flat [PEP 692].

`storage.eligible.Filter`, `search.ranking.Ranking` and the packers hold the defaults.
"""

from __future__ import annotations

from typing import Annotated, Final, TypedDict

from houkai import params
from houkai.errors import InputError, shown
from houkai.model import ExpandSpec, HybridWeights
from houkai.rules import Doc, clean

OBJECTS: Final = ("weights",)
"""Records that a door takes as one; the fields of others lie flat, such as `expand_depth`."""


class CoreFilter(TypedDict, total=False):
    """The filters that `recall` also takes by position."""

    type: params.TypeFilter
    tag: params.TagFilter
    min_importance: params.MinImportance


class MoreFilter(TypedDict, total=False):
    """The filters that are always named."""

    source: params.SourceFilter
    author: params.AuthorFilter
    since: params.Since
    until: params.Until
    min_trust: params.MinTrust
    valid_at: params.ValidAt
    include_superseded: params.IncludeSuperseded
    include_expired: params.IncludeExpired
    include_retired: params.IncludeRetired
    collection: params.CollectionFilter


class FilterOptions(CoreFilter, MoreFilter, total=False):
    """Which memories an operation may see; `storage.eligible.Filter` holds the defaults."""


class RankingOptions(TypedDict, total=False):
    """How recall ranks; `search.ranking.Ranking` holds the defaults."""

    mode: params.Mode
    fusion: params.FusionName
    weights: Annotated[
        HybridWeights | None,
        Doc("Weights of the weighted and rrf fusions; without fusion they mean weighted."),
    ]
    min_cosine: params.MinCosine
    min_relevance: params.MinRelevance
    overfetch: params.Overfetch
    diversity: params.Diversity
    dedup_threshold: params.DedupThreshold
    expand: ExpandSpec | None
    graph: params.GraphWeight


class BudgetOptions(TypedDict, total=False):
    """How much to pack, and how it looks."""

    token_budget: params.TokenBudget
    header: params.Header
    compress: params.Compress
    compress_threshold: params.CompressThreshold
    compress_min_group: params.CompressMinGroup
    include_pinned: params.IncludePinned


class RecallOptions(MoreFilter, RankingOptions, total=False):
    """The named options of a recall."""

    as_of: params.RecallAsOf
    now: params.AskedAt


class EvalOptions(CoreFilter, RecallOptions, total=False):
    """The named options of a measurement."""


class PackOptions(CoreFilter, RecallOptions, BudgetOptions, total=False):
    """The named options of a pack."""


def check_weights(weights: HybridWeights, name: str = "weights") -> HybridWeights:
    """Return weights, or refuse those that cannot rank. Raises InputError."""
    if not isinstance(weights, HybridWeights):
        raise InputError(
            f"{name} must be HybridWeights, got {shown(weights)}.",
            hint="Make them with houkai.HybridWeights(...).",
        )
    clean(HybridWeights, vars(weights), prefix=f"{name}.")
    if weights.cosine + weights.lexical + weights.recency + weights.importance <= 0:
        raise InputError(
            f"{name}: cosine, lexical, recency and importance must sum to more than 0."
        )
    return weights
