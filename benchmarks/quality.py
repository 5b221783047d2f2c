"""Measure recall on labelled sets, beside its first stage, words and meaning alone.

    python benchmarks/quality.py FOLDER [SET ...] [--work DIR] [--json FILE]

FOLDER holds one folder a set: corpus.jsonl(.gz) {id, text, ts?, meta}, queries.jsonl {id, text,
meta}, qrels.tsv (query, document, relevance), for conversations qrels_session.tsv. The sets are
other people's (LoCoMo, BEAM, LongMemEval, CoSQA, SciFact, ...): they are measured, not shipped.
A store a set is kept in --work, so that texts are embedded once.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from houkai import MemoryStore
from houkai.clock import parse_time
from houkai.embed import default
from houkai.evaluation import ndcg_at_k, recall_at_k, reciprocal_rank

DEPTH = 100
UNANSWERABLE = {"adversarial", "abstention"}
METHODS: dict[str, dict[str, Any]] = {
    "default": {},
    "first": {"late": False},
    "words": {"dense": False},
    "meaning": {"mode": "semantic"},
    "rrf": {"fusion": "rrf"},
    "weighted": {"fusion": "weighted"},
}


class WithoutTokens:
    """An embedder that gives no token vectors, which leaves the second stage of recall out."""

    def __init__(self, source: Any) -> None:
        self.name, self.dim, self.fingerprint = source.name, source.dim, source.fingerprint
        self.passages, self.query = source.passages, source.query


@dataclass
class LabelledSet:
    """A set's documents, questions and labels."""

    name: str
    documents: list[dict[str, Any]]
    queries: list[dict[str, Any]]
    relevant: dict[str, set[str]]
    sessions: dict[str, set[str]] = field(default_factory=dict)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a .jsonl file, packed or not."""
    packed = path.with_name(path.name + ".gz")
    raw = gzip.decompress(packed.read_bytes()) if packed.exists() else path.read_bytes()
    yield from (json.loads(line) for line in raw.split(b"\n") if line.strip())


def labels(path: Path) -> dict[str, set[str]]:
    """Return the relevant ids of each question."""
    found: dict[str, set[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        query, document, grade = line.split("\t")
        if grade.lstrip("-").isdigit() and int(grade) > 0:
            found.setdefault(query, set()).add(document)
    return found


def load(folder: Path) -> LabelledSet:
    """Read a set; only session labels count for questions that cannot be answered."""
    relevant = labels(folder / "qrels.tsv")
    sessions = folder / "qrels_session.tsv"
    by_session = labels(sessions) if sessions.exists() else {}
    queries = list(lines(folder / "queries.jsonl"))
    for query in queries:
        meta = query["meta"]
        if meta.get("category") in UNANSWERABLE or meta.get("abstention"):
            relevant.pop(query["id"], None)
    return LabelledSet(
        folder.name,
        list(lines(folder / "corpus.jsonl")),
        [query for query in queries if query["id"] in relevant or query["id"] in by_session],
        relevant,
        by_session,
    )


def item(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document as a memory: conversations with source, position, author and date."""
    meta = document["meta"]
    given = {
        "text": document["text"].replace("\x00", " "),
        "source": meta.get("session"),
        "position": meta.get("pos"),
        "author": meta.get("role") or meta.get("speaker"),
        "tags": [str(tag)[:128] for tag in (meta.get("tags") or [])][:64],
        "entities": [
            str(name)[:128] for name in (meta.get("entities") or []) + (meta.get("aliases") or [])
        ][:64],
    }
    if document.get("ts"):
        given["created_at"] = parse_time(document["ts"])
    return {name: value for name, value in given.items() if value not in (None, [])}


def build(data: LabelledSet, path: Path, embedder: Any = None) -> dict[str, str]:
    """Store a set, a collection a group, a call a source; return memory ids to document ids."""
    names = path.with_suffix(".names.json")
    if names.exists():
        loaded: dict[str, str] = json.loads(names.read_text())
        return loaded
    path.unlink(missing_ok=True)
    groups: dict[str, list[dict[str, Any]]] = {}
    for document in data.documents:
        if document["text"].strip():
            groups.setdefault(document["meta"]["group"], []).append(document)
    known: dict[str, str] = {}
    for number, (group, documents) in enumerate(groups.items(), 1):
        with MemoryStore(path, group, embedder=embedder) as store:
            memories = store.remember_many([item(d) for d in documents], batch_size=512)
        known |= {m.id: d["id"] for m, d in zip(memories, documents, strict=True)}
        print(f"\r{data.name}: {number}/{len(groups)} groups", end="", file=sys.stderr)
    print(file=sys.stderr)
    names.write_text(json.dumps(known))
    return known


def ask(
    data: LabelledSet, path: Path, known: dict[str, str], method: str, embedder: Any = None
) -> dict[str, list[str]]:
    """Return the documents that each question finds, best first."""
    options = dict(METHODS[method])
    if not options.pop("late", True):
        embedder = WithoutTokens(embedder or default())
    if not options.pop("dense", True):
        options |= {"fusion": "weighted", "weights": _words_alone()}
    stores: dict[str, MemoryStore] = {}
    found: dict[str, list[str]] = {}
    for query in data.queries:
        group = query["meta"]["group"]
        store = stores.setdefault(group, MemoryStore(path, group, embedder=embedder))
        now = query["meta"].get("now")
        moment = {"now": parse_time(now)} if now else {}
        hits = store.recall(query["text"], DEPTH, touch=False, **options, **moment)
        found[query["id"]] = [known[hit.memory.id] for hit in hits]
    for store in stores.values():
        store.close()
    return found


def _words_alone() -> Any:
    from houkai import HybridWeights

    return HybridWeights(cosine=0, lexical=1, recency=0, importance=0, polarity_weight=0)


def measure(data: LabelledSet, found: dict[str, list[str]]) -> dict[str, float]:
    """Return the means of a method's answers."""
    session = {d["id"]: d["meta"].get("session") for d in data.documents}
    rows = [
        (found[q["id"]], data.relevant[q["id"]]) for q in data.queries if q["id"] in data.relevant
    ]

    def mean(of: Callable[[Sequence[str], set[str]], float]) -> float:
        return sum(of(got, want) for got, want in rows) / len(rows)

    result = {
        "R@5": mean(lambda got, want: recall_at_k(got, want, 5)),
        "R@10": mean(lambda got, want: recall_at_k(got, want, 10)),
        "nDCG@10": mean(lambda got, want: ndcg_at_k(got, want, 10)),
        "MRR": mean(reciprocal_rank),
    }
    if data.sessions:
        asked = [q["id"] for q in data.queries if q["id"] in data.sessions]
        hits = 0
        for id in asked:
            distinct = list(dict.fromkeys(str(session[d]) for d in found[id]))
            hits += not data.sessions[id].isdisjoint(distinct[:5])
        result["session hit@5"] = hits / len(asked)
    return result


def main(arguments: Sequence[str] | None = None, embedder: Any = None) -> None:
    """Measure the sets named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--work", type=Path, default=Path("quality-stores"))
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    given.work.mkdir(parents=True, exist_ok=True)
    chosen = given.sets or [
        folder.name for folder in sorted(given.folder.iterdir()) if (folder / "qrels.tsv").exists()
    ]
    results: dict[str, dict[str, dict[str, float]]] = {}
    print(f"{'set':20} {'method':9} {'R@5':>6} {'R@10':>6} {'nDCG':>6} {'MRR':>6} {'sess':>6}    s")
    for name in chosen:
        data = load(given.folder / name)
        path = given.work / f"{name}.db"
        known = build(data, path, embedder)
        for method in given.methods:
            started = time.perf_counter()
            row = measure(data, ask(data, path, known, method, embedder))
            results.setdefault(name, {})[method] = row
            shown = " ".join(f"{row[key]:6.3f}" for key in ("R@5", "R@10", "nDCG@10", "MRR"))
            sess = f"{row['session hit@5']:6.3f}" if "session hit@5" in row else " " * 6
            seconds = time.perf_counter() - started
            print(f"{name:20} {method:9} {shown} {sess} {seconds:4.0f}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
