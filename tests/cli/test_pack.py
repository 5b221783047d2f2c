"""Blocks for a prompt, and how well recall answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Runner


def test_pack_prints_a_block(cli: Runner, filled: list[str]) -> None:
    """The block goes into a prompt as it is: header, then a line for each memory."""
    assert filled
    done = cli("pack", "deploys", "--header", "# Known", "--max-items", "1")
    assert done.out == "# Known\n- (procedural) Deploys go out with make release\n"
    assert cli("pack", "deploys", "-b", "1").out == ""
    assert cli("pack", "deploys", "-b", "1").err == "Note: Nothing fits the budget.\n"
    assert cli("pack", "deploys", "-g", "nothing").err == "Note: No memories found.\n"


def test_pack_tells_programs_what_it_took(cli: Runner, filled: list[str]) -> None:
    """A hook must see which memories it used, and what they cost."""
    told = json.loads(cli("pack", "deploys", "-f", "json", "--include-pinned", "-w", "graph=1").out)
    assert {item["memory"]["id"] for item in told["items"]} == set(filled)
    assert told["items"][0]["memory"]["pinned"]
    assert told["used_tokens"] == sum(item["tokens"] for item in told["items"])


def test_auto_context_asks_from_several_angles(cli: Runner, filled: list[str]) -> None:
    """A task is a page rather than a question, and may come from a pipe."""
    assert filled
    done = cli("auto-context", "-", "-f", "json", "--max-phrases", "1", stdin=b"Ship the release")
    assert json.loads(done.out)["queries"] == ["Ship the release", "ship release"]
    assert "make release" in cli("auto-context", "Ship the release").out


def test_eval_measures(cli: Runner, filled: list[str], tmp_path: Path) -> None:
    """Changes of ranking are judged by these numbers, and short ids must count like whole ones."""
    gold = tmp_path / "gold.jsonl"
    cases = [
        {"query": "Deploys go out with make release", "relevant_ids": [filled[0][:8]]},
        {"query": "Payments failed on Monday", "relevant_ids": [filled[3]], "k": 1},
    ]
    gold.write_text("\n\n".join(map(json.dumps, cases)) + "\n", encoding="utf-8")
    told = json.loads(cli("eval", str(gold), "-k", "1", "--json").out)
    assert told == {"n": 2, "k": 1, "recall_at_k": 0.5, "precision_at_k": 0.5, "mrr": 0.5,
                    "map": 0.5, "ndcg_at_k": 0.5}  # fmt: skip
    each = json.loads(cli("eval", str(gold), "-k", "1", "--json", "--per-case").out)["per_case"]
    assert [case["recall_at_k"] for case in each] == [1.0, 0.0]
    assert "questions  2" in cli("eval", str(gold), "--per-case").lines
    assert not any(json.loads(line)["access_count"] for line in cli("list", "-f", "jsonl").lines)


@pytest.mark.parametrize(
    "line", ["", "no", "[1]", '{"query": "x"}', '{"query": "x", "relevant_ids": ["nobody"]}',
             '{"query": "x", "relevant_ids": [1]}', '{"query": 1, "relevant_ids": []}']
)  # fmt: skip
def test_a_wrong_gold_file_is_refused(line: str, cli: Runner, filled: list[str]) -> None:
    """An id that is not there would lower every measure without a word."""
    assert filled
    done = cli("eval", "-", stdin=f"\n{line}\n".encode())
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("Error: ")
    assert cli("eval", "nowhere.jsonl").code == 1
