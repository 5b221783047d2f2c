"""Measure conflict detection: its precision and recall on labelled pairs, and what a scan costs.

    python benchmarks/conflicts.py FOLDER [--memories N ...] [--chats FILE ...] [--messages N]

FOLDER holds JSON-lines files of pairs {a, b, label, score?}: `sick_*` with entailment,
contradiction and neutral, `stsb_*` with a similarity from 0 to 5; files whose name holds
"conflicts" or "updates" hold pairs that are conflicts all. The texts are embedded with houkai's own
model, and what two memories with these texts would be called is compared with the labels.
FILE holds the messages of chats as JSON lines {text, meta: {group}}, hardly any of which conflict:
what is flagged among those of one chat is nearly all false alarm.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from houkai import MemoryStore
from houkai.conflict_rules import DUPLICATE_SIMILARITY, is_negated
from houkai.embed.minilm import MiniLM
from houkai.search.pairs import among, similarity
from houkai.search.sketches import Vector
from houkai.testing import HashingEmbedder

THRESHOLDS = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.95]


class Labelled(NamedTuple):
    """A pair with its label, its similarity, and whether one side is negated."""

    label: str
    score: float
    similarity: float
    negated: bool


def labelled(path: Path, vectors: dict[str, Vector]) -> list[Labelled]:
    """Return the pairs of a file, measured."""
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]
    return [
        Labelled(
            row["label"],
            float(row.get("score", 0)),
            similarity(vectors[row["a"]], vectors[row["b"]]),
            is_negated(row["a"]) != is_negated(row["b"]),
        )
        for row in rows
    ]


def embedded(paths: Iterable[Path]) -> dict[str, Vector]:
    """Return the vectors of every text in some files."""
    texts: dict[str, None] = {}
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            texts |= {row["a"]: None, row["b"]: None}
    model, vectors = MiniLM(), {}
    ordered = sorted(texts, key=len)
    for start in range(0, len(ordered), 256):
        some = ordered[start : start + 256]
        vectors |= dict(zip(some, model.passages(some), strict=True))
    return vectors


def curve(
    title: str,
    pairs: list[Labelled],
    flagged: Callable[[Labelled, float], bool],
    right: Callable[[Labelled], bool],
) -> None:
    """Print precision and recall of a flag at each threshold."""
    wanted = sum(map(right, pairs))
    print(f"\n{title}: {len(pairs)} pairs, {wanted} of them are meant")
    print(f"{'threshold':>10}{'flagged':>9}{'precision':>11}{'recall':>8}{'F1':>7}")
    for threshold in THRESHOLDS:
        found = [pair for pair in pairs if flagged(pair, threshold)]
        hits = sum(map(right, found))
        precision, recall = hits / max(1, len(found)), hits / max(1, wanted)
        both = 2 * hits / max(1, len(found) + wanted)
        print(f"{threshold:>10.2f}{len(found):>9}{precision:>11.3f}{recall:>8.3f}{both:>7.3f}")


def duplicate(pair: Labelled, threshold: float) -> bool:
    """Say whether a pair would be called a duplicate."""
    return pair.similarity >= threshold and not pair.negated


def contradiction(pair: Labelled, threshold: float) -> bool:
    """Say whether a pair would be called a contradiction."""
    return pair.similarity >= threshold and pair.negated


def quality(folder: Path) -> None:
    """Print the curves that the thresholds were chosen from."""
    paths = [p for p in sorted(folder.glob("*.jsonl")) if p.name.startswith(("sick_", "stsb_"))]
    conflicts = [
        p for p in sorted(folder.glob("*.jsonl")) if "conflicts" in p.name or "updates" in p.name
    ]
    vectors = embedded([*paths, *conflicts])
    for path in paths:
        pairs = labelled(path, vectors)
        if path.name.startswith("stsb_"):
            curve(
                f"{path.stem}: duplicates (score 4 or more)",
                pairs,
                duplicate,
                lambda p: p.score >= 4,
            )
            continue
        curve(
            f"{path.stem}: duplicates (entailment)",
            pairs,
            duplicate,
            lambda p: p.label == "entailment",
        )
        curve(
            f"{path.stem}: contradictions",
            pairs,
            contradiction,
            lambda p: p.label == "contradiction",
        )
    for path in conflicts:
        pairs = labelled(path, vectors)
        values = np.percentile([pair.similarity for pair in pairs], (25, 50, 75))
        share = sum(pair.similarity >= DUPLICATE_SIMILARITY for pair in pairs) / len(pairs)
        print(f"\n{path.stem}: {len(pairs)} conflicts, similarity quartiles {np.round(values, 2)},")
        print(f"  {share:.0%} reach {DUPLICATE_SIMILARITY}; one side is negated in ", end="")
        print(f"{sum(pair.negated for pair in pairs) / len(pairs):.0%}")


def alarms(path: Path, most: int) -> None:
    """Print how many pairs of one chat's messages are flagged for each thousand messages."""
    chats: dict[str, dict[str, None]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["meta"].get("role") != "assistant":
            chats.setdefault(row["meta"]["group"], {})[row["text"]] = None
    model, found, number = MiniLM(), list[tuple[float, bool]](), 0
    for chat in chats.values():
        lines = list(chat)[:most]
        negated = [is_negated(line) for line in lines]
        windows = [
            part for at in range(0, len(lines), 64) for part in model.passages(lines[at : at + 64])
        ]
        near = among(windows, THRESHOLDS[0])
        found += [(one.similarity, negated[one.a] != negated[one.b]) for one in near]
        number += len(lines)
        print(f"\r{path.parent.name}: {number} messages", end="", file=sys.stderr)
    print(f"\n{path.parent.name}: {len(chats)} chats, {number} messages; pairs a 1,000 messages")
    print(f"{'threshold':>10}{'duplicates':>12}{'contradictions':>16}")
    for threshold in THRESHOLDS:
        flags = [negated for similarity, negated in found if similarity >= threshold]
        told = [1_000 * flags.count(kind) / number for kind in (False, True)]
        print(f"{threshold:>10.2f}{told[0]:>12.1f}{told[1]:>16.1f}")


def texts(number: int) -> list[str]:
    """Return sentences of which about one in ten has a double."""
    chance = random.Random(1)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(chance.choices(letters, k=chance.randint(4, 9))) for _ in range(5_000)]
    made: list[str] = []
    for _ in range(number):
        if made and chance.random() < 0.1:
            made.append(f"{chance.choice(made)} indeed")
        else:
            made.append(" ".join(chance.choices(words, k=10)))
    return made


def cost(number: int) -> None:
    """Print the CPU seconds of whole scans, and of one memory's."""
    with (
        tempfile.TemporaryDirectory() as folder,
        MemoryStore(
            Path(folder) / "c.db", embedder=HashingEmbedder(), durability="normal"
        ) as store,
    ):
        made = store.remember_many(texts(number))
        calls: dict[str, Callable[[], list[Any]]] = {
            "find_conflicts()": store.find_conflicts,
            "find_conflicts(id), first": lambda: store.find_conflicts(made[0].id),
            "find_conflicts(id)": lambda: store.find_conflicts(made[number // 2].id),
            "find_conflicts(id, deep=True)": lambda: store.find_conflicts(made[9].id, deep=True),
            "find_conflicts() again": store.find_conflicts,
        }
        print(f"\n{number:,} memories of 384 dimensions")
        for name, call in calls.items():
            began, cpu = time.perf_counter(), time.process_time()
            found = len(call())
            spent = time.process_time() - cpu
            print(f"{name:<32}{spent:>8.3f} s CPU{time.perf_counter() - began:>9.3f} s{found:>8}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--memories", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--chats", type=Path, nargs="*", default=[])
    parser.add_argument("--messages", type=int, default=300, help="of each chat at most")
    given = parser.parse_args()
    if given.folder is not None:
        quality(given.folder)
    for path in given.chats:
        alarms(path, given.messages)
    for number in given.memories:
        cost(number)


if __name__ == "__main__":
    main()
