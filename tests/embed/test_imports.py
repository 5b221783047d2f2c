from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import houkai.embed, houkai.embed.adapt, houkai.embed.lockfile, houkai.embed.minilm
import houkai.embed.port, houkai.embed.runtime, houkai.embed.windows, houkai.testing
model = houkai.embed.default()
assert len(model.fingerprint) == 64 and model.dim == 384 and model.name == "all-MiniLM-L6-v2"
houkai.embed.adapt(lambda texts: [[1.0]])
houkai.testing.HashingEmbedder()
print(*sorted({"numpy", "onnxruntime", "tokenizers", "huggingface_hub"} & set(sys.modules)))
"""


def test_naming_a_model_loads_none() -> None:
    """Commands that need no vector would pay for numpy and onnxruntime at every start."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []
    assert done.stderr == ""
