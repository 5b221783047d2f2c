"""Every parameter's type, range and sentence, written once; each door reads them from here.

An alias such as `Importance` is `Annotated[type, sentence, rule]`. `rules.clean` applies them to
a library call; `houkai.doors.wire` turns the same aliases into JSON Schema.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from houkai import limits
from houkai.clock import Moment
from houkai.rules import AsId, AsIds, AsNames, AsRef, AsText, Between, Doc
from houkai.time_rules import AsMoment, AsSeconds
from houkai.vocabulary import (
    ConflictPolicy,
    Direction,
    Fusion,
    MemoryType,
    Polarity,
    RecallMode,
    Relation,
    Trust,
)

_label: Final = AsText(4 * limits.NAME_CHARS, "name", blank="absent")

Text = Annotated[
    str,
    Doc("What to remember, in plain words; one fact or event works best."),
    AsText(limits.TEXT_BYTES, "text"),
]
Query = Annotated[
    str,
    Doc("What to look for, as a question or a few words."),
    AsText(limits.QUERY_BYTES, "query"),
]
Type = Annotated[
    MemoryType,
    Doc("episodic: an event; semantic: a fact; procedural: how-to; feedback: a preference."),
]
Tags = Annotated[
    list[str] | tuple[str, ...],
    Doc("Topic labels."),
    AsNames(limits.TAGS, limits.TAG_CHARS),
]
Tag = Annotated[str, Doc("A tag."), AsText(4 * limits.TAG_CHARS, "tag")]
Entities = Annotated[
    list[str] | tuple[str, ...],
    Doc("Names of people, places or things that the memory is about."),
    AsNames(limits.ENTITIES, limits.ENTITY_CHARS),
]
Importance = Annotated[
    float | None, Doc("How much it matters, 0 to 1; 0.5 when left out."), Between(0, 1)
]
Source = Annotated[str | None, Doc("Where it comes from: a file, a URL, a session id."), _label]
Author = Annotated[str | None, Doc("Who said it: user, assistant, or a name."), _label]
Position = Annotated[
    int | None,
    Doc("Its place in the order of its source; the next one when left out."),
    Between(0, 2**53, whole=True),
]
Sentiment = Annotated[Polarity, Doc("1 for positive, -1 for negative, 0 for neither.")]
ExpiresAt = Annotated[
    Moment | None,
    Doc('When it stops being shown; "7d" means in seven days, 0 means never.'),
    AsMoment("forward"),
]
Ttl = Annotated[
    float | str | None,
    Doc('Seconds until it expires, or a span such as "7d"; instead of an expiry date.'),
    AsSeconds(),
]
Pinned = Annotated[bool, Doc("Keep it in the working set, safe from pruning.")]
TrustLevel = Annotated[
    Trust, Doc("trusted: from the user; reported: second-hand; untrusted: from outside.")
]
Idempotent = Annotated[
    bool, Doc("Return the live memory that says the same instead of storing it twice.")
]
ValidFrom = Annotated[
    Moment | None,
    Doc("World time from which the fact is true; 0 clears it."),
    AsMoment("refuse"),
]
ValidUntil = Annotated[
    Moment | None,
    Doc("World time from which the fact is no longer true; 0 clears it."),
    AsMoment("refuse"),
]
CreatedAt = Annotated[
    Moment | None, Doc("When it was learnt; now when left out, the past may be given."), AsMoment()
]
MemoryId = Annotated[
    str,
    Doc("The id of a memory, or any unique beginning of it."),
    AsId(4 * limits.NAME_CHARS, "id"),
]
OperationRef = Annotated[
    str | int, Doc("The number of an operation, or the beginning of its id."), AsRef()
]
Rel = Annotated[Relation, Doc("How the first memory relates to the second.")]
RelFilter = Annotated[Relation | None, Doc("Only links of this relation; all when left out.")]
Heading = Annotated[Direction, Doc("Follow links out of a memory, into it, or both.")]
Depth = Annotated[
    int,
    Doc("How many links away to go, 0 to 6."),
    Between(0, limits.GRAPH_DEPTH, whole=True),
]
MemoryIds = Annotated[
    list[str] | tuple[str, ...], Doc("The ids of memories."), AsIds(limits.GRAPH_NODES, 1_024)
]
ActorName = Annotated[
    str, Doc("Who does it, as the journal shows it."), AsText(4 * limits.NAME_CHARS, "name")
]
CollectionName = Annotated[
    str, Doc("The collection to work in."), AsText(4 * limits.NAME_CHARS, "name")
]
ConflictThreshold = Annotated[
    float,
    Doc("How similar in meaning two memories must be to repeat or contradict each other."),
    Between(0, 1),
]
K = Annotated[
    int,
    Doc("How many memories to return at most; 5 when left out."),
    Between(-(2**53), 2**53, whole=True),
]
Limit = Annotated[int | None, Doc("How many to return at most."), Between(0, 2**53, whole=True)]
TypeFilter = Annotated[MemoryType | None, Doc("Only memories of this type.")]
TagFilter = Annotated[str | None, Doc("Only memories that carry this tag."), _label]
MinImportance = Annotated[
    float | None, Doc("Only memories at least this important, 0 to 1."), Between(0, 1)
]
SourceFilter = Annotated[str | None, Doc("Only memories from exactly this source."), _label]
AuthorFilter = Annotated[str | None, Doc("Only memories said by this author."), _label]
Since = Annotated[
    Moment | None,
    Doc('Only memories learnt at or after this: epoch, ISO, or "7d" ago.'),
    AsMoment(),
]
Until = Annotated[
    Moment | None,
    Doc('Only memories learnt at or before this: epoch, ISO, or "7d" ago.'),
    AsMoment(),
]
Before = Annotated[
    Moment | None,
    Doc("Go on after the memory with this id, or before this moment."),
    AsMoment(),
]
MinTrust = Annotated[
    Trust | None, Doc("Only memories at least this trusted: trusted > reported > untrusted.")
]
ValidAt = Annotated[
    Moment | None,
    Doc("World time: only facts that are true at this moment; now when left out."),
    AsMoment(),
]
IncludeSuperseded = Annotated[bool, Doc("Also memories that a newer one replaced.")]
IncludeExpired = Annotated[bool, Doc("Also memories past their expiry.")]
IncludeRetired = Annotated[bool, Doc("Also facts that are not true at that world time.")]
CollectionFilter = Annotated[
    str | None,
    Doc('Another collection than the store\'s own; "*" for all of them.'),
    _label,
]
Mode = Annotated[RecallMode, Doc("hybrid: meaning and words together; semantic: meaning alone.")]
FusionName = Annotated[
    Fusion | None,
    Doc("How the signals join: blend (the measured default), weighted, or rrf."),
]
MinCosine = Annotated[
    float | None,
    Doc("Drop what is less similar in meaning than this, -1 to 1; may leave nothing."),
    Between(-1, 1),
]
MinRelevance = Annotated[
    float | None,
    Doc("Answer nothing below this measure of relevance: 0.15 is careful, 0.4 strict, 0 is off."),
    Between(0, 2),
]
Diversity = Annotated[
    float | None,
    Doc("Share of relevance against novelty in what is chosen, 0 to 1; off when left out."),
    Between(0, 1),
]
DedupThreshold = Annotated[
    float | None,
    Doc("Skip what is at least this similar in meaning to a better hit, 0 to 1."),
    Between(0, 1),
]
GraphWeight = Annotated[
    float | None,
    Doc("Weight of being linked to other strong hits; 0 when left out."),
    Between(0, 1_000),
]
Overfetch = Annotated[
    int,
    Doc("Candidates to rank for each memory returned, at least."),
    Between(1, 1_000, whole=True),
]
Task = Annotated[
    str,
    Doc("What is about to be done, in a sentence or a page."),
    AsText(limits.QUERY_BYTES, "query"),
]
MaxItems = Annotated[
    int, Doc("How many memories to consider at most."), Between(0, 10_000, whole=True)
]
MaxPhrases = Annotated[
    int,
    Doc("How many key phrases of the task to ask about besides it."),
    Between(0, 64, whole=True),
]
TokenBudget = Annotated[
    int, Doc("Tokens the block may use, the header not counted."), Between(0, 10**9, whole=True)
]
Header = Annotated[
    str,
    Doc("The line above the block; empty for none."),
    AsText(4_096, "header", blank="keep"),
]
Compress = Annotated[bool, Doc("Fold similar memories that did not fit into one line.")]
CompressThreshold = Annotated[
    float, Doc("Share of words in common that makes memories similar, 0 to 1."), Between(0, 1)
]
CompressMinGroup = Annotated[
    int, Doc("How many similar memories make a line."), Between(1, 10_000, whole=True)
]
IncludePinned = Annotated[bool, Doc("Put pinned memories first, inside the budget.")]
Touch = Annotated[bool, Doc("Count this as an access of the memories returned.")]
Explain = Annotated[bool, Doc("Add to each hit how its score came about.")]
OnConflict = Annotated[
    ConflictPolicy | None, Doc("What to do when it contradicts or repeats a stored memory.")
]
Separator = Annotated[
    str, Doc("What to put between the two texts."), AsText(limits.QUERY_BYTES, "separator", "keep")
]
Deep = Annotated[bool, Doc("Also look for contradictions of memories that share words.")]
Days = Annotated[float | None, Doc("Only what has lain there for this many days."), Between(0)]
TtlDays = Annotated[float, Doc("Days to keep a memory in the trash."), Between(-1e9, 1e9)]
AsOf = Annotated[
    Moment,
    Doc('Transaction time: what the store knew then; epoch, ISO, or "7d" ago.'),
    AsMoment(zero="moment"),
]
DoneSince = Annotated[
    Moment,
    Doc('Only what was done at or after this: epoch, ISO, or "7d" ago.'),
    AsMoment(zero="moment"),
]
DoneUntil = Annotated[
    Moment | None,
    Doc('Only what was done at or before this: epoch, ISO, or "7d" ago.'),
    AsMoment(),
]
PruneBefore = Annotated[
    Moment | None,
    Doc('Drop what was replaced at or before this: epoch, ISO, or "90d" ago.'),
    AsMoment(),
]
AskedAt = Annotated[
    Moment | None,
    Doc("When the question is asked, for expiry, validity and words such as yesterday."),
    AsMoment(),
]
RecallAsOf = Annotated[
    Moment | None,
    Doc("Transaction time: rank what the store knew at this moment, as it was then."),
    AsMoment(),
]
Actor = Annotated[str | None, Doc("Only what this actor did: lib, cli, mcp or a name."), _label]
Session = Annotated[
    str | None, Doc("Only what was done in this session of an agent, by the session's id."), _label
]
KeepLast = Annotated[
    int | None,
    Doc("How many of the newest operations to keep whole."),
    Between(0, 2**53, whole=True),
]
DryRun = Annotated[bool, Doc("Only tell what would happen.")]
OperationName = Annotated[str | None, Doc("Only this kind of operation, such as edit."), _label]
BatchSize = Annotated[
    int, Doc("How many to embed and commit at once."), Between(1, 10_000, whole=True)
]
EmbedderSpec = Annotated[
    Any,
    Doc("minilm, openai:MODEL or ollama:MODEL, an Embedder, or a callable from texts to vectors."),
]
