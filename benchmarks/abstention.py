"""Measure what recall refuses as irrelevant: what it should, and what it should not.

    python benchmarks/abstention.py FOLDER SET [SET ...] [--work DIR] [--least 0.15] [--asked 150]

Sets and stores are those of quality.py. For each set: the share refused of its own questions, of
those whose answer is missing, of another group's questions (another conversation), and of another
set's questions. Only the first should be near 0; the second nobody knows how to tell.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from quality import LabelledSet, build, lines, load

from houkai import MemoryStore
from houkai.packing import LEAST_RELEVANCE

Question = tuple[str, str]
"""The group to ask, and the question."""


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


def main(arguments: Sequence[str] | None = None, embedder: Any = None) -> None:
    """Measure the sets named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--work", type=Path, default=Path("quality-stores"))
    parser.add_argument("--least", type=float, default=LEAST_RELEVANCE)
    parser.add_argument("--asked", type=int, default=150)
    given = parser.parse_args(arguments)
    given.work.mkdir(parents=True, exist_ok=True)
    print(f"share refused below {given.least}")
    print(f"{'set':20} {'   own':14}{'missing':14}{'another group':14}{'another set':14}")
    for line in table(given.sets, given.folder, given.work, given.least, given.asked, embedder):
        print(line, flush=True)


if __name__ == "__main__":
    main()
