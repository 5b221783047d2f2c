"""Draw what quality.py and reads.py have measured, as SVG pictures for the README.

    python benchmarks/plot.py quality RESULTS.json PICTURE.svg     # quality.py --json RESULTS.json
    python benchmarks/plot.py reads RESULTS.jsonl PICTURE.svg      # reads.py --json, several runs

Needs the extra [report].
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

METHODS = {
    "words": ("words alone (BM25)", "s", "#8c8c8c"),
    "meaning": ("meaning alone (MiniLM)", "^", "#d98c1f"),
    "default": ("houkai's default", "o", "#1f6fb4"),
}
RECALLS = {
    "recall hybrid, 10 words": ("hybrid, 10 words", "#0b3c66"),
    "recall hybrid, 4 words": ("hybrid, 4 words", "#1f6fb4"),
    "recall hybrid, a tag of 1 %, 4 words": ("hybrid, a tag of 1 %", "#7fb2dd"),
    "recall semantic, 4 words": ("meaning alone", "#d98c1f"),
}


def quality(results: dict[str, Any], axes: Axes) -> None:
    """Draw a row a set and a mark a method, over R@10; the hardest set comes last."""
    sets = sorted(results, key=lambda name: results[name]["default"]["R@10"])
    for row, name in enumerate(sets):
        values = {method: results[name][method]["R@10"] for method in METHODS}
        axes.plot([min(values.values()), max(values.values())], [row, row], color="#dddddd", lw=3)
        for method, (label, mark, color) in METHODS.items():
            axes.scatter(
                values[method], row, marker=mark, color=color, zorder=3, label=label * (row == 0)
            )
    axes.set_yticks(range(len(sets)), [name.removesuffix("_dev") for name in sets])
    axes.set_xlim(0, 1.02)
    axes.set_xlabel("share of the relevant memories among the first ten")
    axes.legend(loc="center left", frameon=False)


def reads(rows: list[dict[str, Any]], axes: Axes) -> None:
    """Draw a line a kind of recall: the median run, and from the fastest to the slowest run."""
    counts = sorted({row["memories"] for row in rows})
    for name, (label, color) in RECALLS.items():
        runs = [
            [row["ms"] for row in rows if (row["name"], row["memories"]) == (name, count)]
            for count in counts
        ]
        axes.plot(counts, [median(run) for run in runs], marker="o", color=color, label=label)
        axes.fill_between(
            counts, list(map(min, runs)), list(map(max, runs)), color=color, alpha=0.15
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_yticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.set_xlabel("memories in the file")
    axes.set_ylabel("ms of CPU, without the embedding")
    axes.legend(frameon=False)


def main() -> None:
    """Draw one picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["quality", "reads"])
    parser.add_argument("results", type=Path)
    parser.add_argument("picture", type=Path)
    given = parser.parse_args()
    text = given.results.read_text(encoding="utf-8")
    plt.rcParams |= {"svg.hashsalt": "houkai", "axes.spines.top": False, "axes.spines.right": False}
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    if given.what == "quality":
        quality(json.loads(text), axes)
    else:
        reads([json.loads(line) for line in text.splitlines()], axes)
    axes.grid(axis="x", color="#eeeeee")
    axes.set_axisbelow(True)
    given.picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(given.picture, metadata={"Date": None})


if __name__ == "__main__":
    main()
