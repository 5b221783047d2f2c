"""Measure what recall refuses as irrelevant: what it should, and what it should not.

    python benchmarks/abstention.py FOLDER SET [SET ...] [--work DIR] [--least 0.15] [--asked 150]
    python benchmarks/abstention.py --small

Sets and stores are those of quality.py. For each set: the share refused of its own questions, of
those whose answer is missing, of another group's questions (another conversation), and of another
set's questions. Only the first should be near 0; the second nobody knows how to tell.

--small measures the stores of six to twenty notes in small_stores.jsonl, whose questions share few
words with the notes that answer them: for each threshold the share refused of each kind of
question, and what a pack holds.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from quality import LabelledSet, build, lines, load

from houkai import MemoryStore
from houkai.packing import LEAST_RELEVANCE

SMALL = Path(__file__).with_name("small_stores.jsonl")
THRESHOLDS = (0.05, 0.10, 0.15, 0.20, 0.25, 0.30, 0.35, 0.40, 0.45)
KINDS = ("answered", "unanswered", "off topic")
FOREIGN = ("german", "spanish")
"""Stores in languages that the bundled model hardly reads."""

Question = tuple[str, str]
"""The group to ask, and the question."""


class Asked(NamedTuple):
    """A question to a small store: its kind, how relevant the store is to it, what is packed."""

    store: str
    kind: str
    text: str
    relevance: float
    packed: int
    tokens: int
    place: int | None
    """From 0, the place of the note that answers it in the pack without a threshold."""


def kinds(data: LabelledSet, other: LabelledSet, folder: Path) -> dict[str, list[Question]]:
    """Return the questions of each kind."""
    answered = {query["id"] for query in data.queries if data.relevant.get(query["id"])}
    every = [q for q in lines(folder / data.name / "queries.jsonl") if q["text"].strip()]
    groups = sorted({document["meta"]["group"] for document in data.documents})
    following = dict(zip(groups, groups[1:] + groups[:1], strict=True))
    own = [(q["meta"]["group"], q["text"]) for q in every if q["id"] in answered]
    return {
        "own": own,
        "missing": [(q["meta"]["group"], q["text"]) for q in every if q["id"] not in answered],
        "another group": [(following[g], text) for g, text in own] if len(groups) > 1 else [],
        "another set": [(groups[0], query["text"]) for query in other.queries],
    }


def refused(path: Path, questions: Sequence[Question], least: float, embedder: Any) -> float:
    """Return the share of the questions that get no answer."""
    count = 0
    for group, text in questions:
        with MemoryStore(path, group, embedder=embedder) as store:
            count += not store.recall(text, 1, min_relevance=least, touch=False)
    return count / len(questions)


def table(
    names: Sequence[str], folder: Path, work: Path, least: float, asked: int, embedder: Any
) -> Iterator[str]:
    """Yield a line a set."""
    loaded = {name: load(folder / name) for name in names}
    for at, name in enumerate(names):
        other = loaded[names[(at + 1) % len(names)]]
        build(loaded[name], work / f"{name}.db", embedder)
        row = []
        for questions in kinds(loaded[name], other, folder).values():
            some = random.Random(7).sample(questions, min(asked, len(questions)))
            share = refused(work / f"{name}.db", some, least, embedder) if some else None
            row.append("     -" if share is None else f"{share:6.3f}")
        yield f"{name:20} {'        '.join(row)}  ({other.name})"


def small(embedder: Any = None) -> list[Asked]:
    """Ask every small store all of its questions."""
    stores: dict[str, list[dict[str, Any]]] = {}
    for record in lines(SMALL):
        stores.setdefault(record["store"], []).append(record)
    asked: list[Asked] = []
    for name, records in stores.items():
        with MemoryStore(":memory:", embedder=embedder) as store:
            notes = store.remember_many([one["text"] for one in records if one["kind"] == "note"])
            ids = [note.id for note in notes]
            asked += [_asked(store, name, r, ids) for r in records if r["kind"] != "note"]
    return asked


def _asked(store: MemoryStore, name: str, one: dict[str, Any], ids: Sequence[str]) -> Asked:
    sure = store.recall(one["text"], 5, min_relevance=1e-9, touch=False).relevance
    pack = store.recall_pack(one["text"], min_relevance=0, touch=False)
    found = [item.memory.id for item in pack.items]
    place = found.index(ids[one["answer"]]) if "answer" in one else None
    return Asked(name, one["kind"], one["text"], sure or 0.0, len(found), pack.used_tokens, place)


def area(asked: Sequence[Asked], kind: str, apart: str) -> float:
    """Return how often a question of one kind is above one of another (area under the ROC)."""
    some, others = ([one.relevance for one in asked if one.kind == k] for k in (kind, apart))
    above = sum((a > b) + (a == b) / 2 for a in some for b in others)
    return above / (len(some) * len(others))


def small_table(asked: Sequence[Asked]) -> Iterator[str]:
    """Yield the shares refused at each threshold, the areas, and what is packed."""
    yield f"{'refused below':16}" + "".join(f"{kind:>12}" for kind in KINDS)
    for least in THRESHOLDS:
        shares = []
        for kind in KINDS:
            of_kind = [one.relevance < least for one in asked if one.kind == kind]
            shares.append(sum(of_kind) / len(of_kind))
        yield f"{least:<16.2f}" + "".join(f"{share:12.3f}" for share in shares)
    for apart in KINDS[1:]:
        yield f"area, answered above {apart}: {area(asked, 'answered', apart):.3f}"
    for kind in KINDS:
        some = [one for one in asked if one.kind == kind]
        tokens = sum(one.tokens for one in some) / len(some)
        items = sum(one.packed for one in some) / len(some)
        yield f"packed without a threshold, {kind}: {items:.1f} memories, {tokens:.0f} tokens"
    places = [one.place for one in asked if one.place is not None]
    for k in (1, 3, 5):
        yield f"answer among the first {k}: {sum(p < k for p in places) / len(places):.3f}"


def main(arguments: Sequence[str] | None = None, embedder: Any = None) -> None:
    """Measure the sets named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--work", type=Path, default=Path("quality-stores"))
    parser.add_argument("--least", type=float, default=LEAST_RELEVANCE)
    parser.add_argument("--asked", type=int, default=150)
    given = parser.parse_args(arguments)
    if given.small:
        asked = small(embedder)
        for foreign in (False, True):
            print("in other languages" if foreign else "in English")
            print(*small_table([a for a in asked if (a.store in FOREIGN) == foreign]), sep="\n")
        return
    if not given.sets:
        parser.error("name a folder and its sets, or --small")
    given.work.mkdir(parents=True, exist_ok=True)
    print(f"share refused below {given.least}")
    print(f"{'set':20} {'   own':14}{'missing':14}{'another group':14}{'another set':14}")
    for line in table(given.sets, given.folder, given.work, given.least, given.asked, embedder):
        print(line, flush=True)


if __name__ == "__main__":
    main()
