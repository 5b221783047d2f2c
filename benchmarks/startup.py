"""Measure what starting houkai costs, in CPU time against what Python packages alone cost.

    python benchmarks/startup.py [RUNS]

Prints the median of several runs, taken in turn so that other load hits all alike, and the ratio
to the line that a command is measured by. CPU time of the process and its threads counts, not
the clock. The vectors of the test file are random: recall takes as long with any.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from houkai import MemoryStore
from houkai.embed import MiniLM

MEMORIES = 1_000
TYPER = "import typer"
MODEL = "import numpy, onnxruntime, tokenizers, apsw, typer"
BUDGETS = {"--help": (TYPER, 1.6), "list": (TYPER, None), "recall": (MODEL, 2.0)}
"""What a command is measured by, and how many times that it may cost."""


class RandomVectors:
    """An embedder that passes for the shipped model."""

    def __init__(self) -> None:
        real = MiniLM()
        self.name, self.dim, self.fingerprint = real.name, real.dim, real.fingerprint
        self.random = np.random.default_rng(1)

    def query(self, _text: str) -> np.ndarray:
        vector = self.random.normal(size=self.dim).astype(np.float32)
        return vector / np.linalg.norm(vector)

    def passages(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [self.query(text)[None] for text in texts]


def fill(path: Path) -> None:
    """Make a file of so many memories of a dozen words each."""
    words = [f"{a}{b}" for a in ("wa", "re", "lo", "mi", "su") for b in ("ter", "port", "ling")]
    random = np.random.default_rng(2)
    texts = [" ".join(random.choice(words, 12)) for _ in range(MEMORIES)]
    with MemoryStore(path, embedder=RandomVectors()) as store:
        store.remember_many(texts)


def cpu(arguments: Sequence[str], environment: dict[str, str]) -> float:
    """Run a program and return the seconds of processor time that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(runs: int, environment: dict[str, str]) -> dict[str, float]:
    """Return the median cost of each line and command."""
    houkai = "import sys; sys.argv[0] = 'houkai'; from houkai.cli import main; main()"
    programs = {
        "pass": ["pass"],
        TYPER: [TYPER],
        MODEL: [MODEL],
        "--help": [houkai, "--help"],
        "list": [houkai, "list"],
        "recall": [houkai, "recall", "where does the water come from"],
    }
    times: dict[str, list[float]] = {name: [] for name in programs}
    for turn in range(runs + 1):
        for name, arguments in programs.items():
            seconds = cpu([sys.executable, "-c", *arguments], environment)
            if turn:  # the first run compiles modules and hashes the model
                times[name].append(seconds)
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        fill(path)
        environment = {**os.environ, "HOUKAI_DB": str(path)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        found = measure(runs, environment)
    print(f"median of {runs} runs, {MEMORIES:,} memories\n")
    for name, seconds in found.items():
        line = f"{name if name not in BUDGETS else 'houkai ' + name:<52}{seconds * 1000:6.0f} ms"
        if name in BUDGETS:
            base, limit = BUDGETS[name]
            allowed = f", allowed {limit}" if limit else ""
            line += f"  {seconds / found[base]:.2f} x ({base}{allowed})"
        print(line)


if __name__ == "__main__":
    main()
