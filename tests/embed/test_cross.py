"""The cross-encoder runs a real ONNX graph over pairs, and loads only the files it was told of."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from houkai import ModelMissing
from houkai.embed.cross import CrossEncoder
from tests.conftest import Opener
from tests.support import texts

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "gold", "silver", "lead", "what", "shines"]
WORTH = [0.0, 0.0, 0.0, 0.0, 5.0, 3.0, -1.0, 0.0, 1.0]


def make(folder: Path, inputs: tuple[str, ...]) -> dict[str, str]:
    """Write a graph that adds up what the memory's words are worth; return the files' hashes."""
    folder.mkdir(exist_ok=True)
    kind = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "s"]) for name in inputs]
    gates = [name for name in inputs if name != "input_ids"]
    nodes = [helper.make_node("Gather", ["worth", "input_ids"], ["value"])]
    last = "value"
    for gate in gates:
        nodes.append(helper.make_node("Cast", [gate], [f"{gate}_f"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Mul", [last, f"{gate}_f"], [f"{last}_{gate}"]))
        last = f"{last}_{gate}"
    nodes.append(helper.make_node("ReduceSum", [last, "axis"], ["logits"], keepdims=1))
    graph = helper.make_graph(
        nodes,
        "worth",
        kind,
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 1])],
        [
            helper.make_tensor("worth", TensorProto.FLOAT, [len(WORTH)], WORTH),
            helper.make_tensor("axis", TensorProto.INT64, [1], [1]),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "model.onnx")
    tokenizer = Tokenizer(models.WordLevel({w: n for n, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    tokenizer.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("model.onnx", "tokenizer.json")
    }


ALL = ("input_ids", "attention_mask", "token_type_ids")


@pytest.fixture
def judge(tmp_path: Path) -> CrossEncoder:
    """Return a model that likes gold."""
    return CrossEncoder(tmp_path / "judge", make(tmp_path / "judge", ALL))


def test_it_orders_a_recall(judge: CrossEncoder, open_store: Opener) -> None:
    """The hook must hand over query and texts as the model wants them, in any number."""
    store = open_store(reranker=judge)
    filler = [f"lead number {number}" for number in range(40)]
    store.remember_many([*filler, "silver", "gold and silver", "gold"])
    hits = store.recall("what shines gold", 3, overfetch=30, explain=True)
    assert texts(hit.memory for hit in hits) == ["gold and silver", "gold", "silver"]
    assert [hit.score for hit in hits] == [8.0, 5.0, 3.0]
    assert hits[0].explain["rerank"]["score"] == 8.0


def test_the_question_itself_is_worth_nothing(judge: CrossEncoder, open_store: Opener) -> None:
    """Token types tell the question's words from the memory's; a graph needs them right."""
    (lead,) = open_store().remember_many(["lead"])
    assert judge("gold gold gold", [lead]) == [-1.0]
    assert judge("gold", []) == []


def test_a_graph_without_token_types_runs(tmp_path: Path, open_store: Opener) -> None:
    """Exports of distilled models have no such input."""
    judge = CrossEncoder(tmp_path / "two", make(tmp_path / "two", ALL[:2]))
    (lead,) = open_store().remember_many(["lead"])
    assert judge("gold", [lead]) == [4.0]


def test_a_long_memory_is_cut_and_the_question_is_not(tmp_path: Path, open_store: Opener) -> None:
    """A model fails on more than its window; the question must stay whole."""
    files = make(tmp_path / "short", ALL)
    judge = CrossEncoder(tmp_path / "short", files, window=8)
    (long,) = open_store().remember_many(["gold " * 200])
    assert judge("what shines", [long]) == [3 * 5.0]


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_another_file_is_refused(name: str, tmp_path: Path, open_store: Opener) -> None:
    """Whoever names a hash means that file and no other."""
    files = make(tmp_path / "judge", ALL)
    (lead,) = open_store().remember_many(["lead"])
    with pytest.raises(ModelMissing, match=f"names no hash for {name}"):
        CrossEncoder(tmp_path / "judge", {n: h for n, h in files.items() if n != name})("q", [lead])
    with (tmp_path / "judge" / name).open("ab") as stream:
        stream.write(b" ")
    with pytest.raises(ModelMissing, match=f"{name} is not the file that was named"):
        CrossEncoder(tmp_path / "judge", files)("q", [lead])
    (tmp_path / "judge" / name).unlink()
    with pytest.raises(ModelMissing, match=f"{name} cannot be read"):
        CrossEncoder(tmp_path / "judge", files)("q", [lead])


def test_threads_share_it(judge: CrossEncoder, open_store: Opener) -> None:
    """A server reranks for several clients at once."""
    memories = open_store().remember_many(["gold", "lead"])
    found: list[Any] = []
    crowd = [
        threading.Thread(target=lambda: found.append(judge("what", memories))) for _ in range(8)
    ]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert found == [[5.0, -1.0]] * 8
