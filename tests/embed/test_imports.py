from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


def test_embedding_reports_nothing_to_anybody(tmp_path: Path) -> None:
    """Onnxruntime would leave a device id and a queue of events to send in the user's cache."""
    kept = ("PATH", "PYTHONPATH", "SYSTEMROOT", "VIRTUAL_ENV")  # without CI, which silences it too
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    cache = tmp_path / "cache"
    cache.mkdir()
    environment |= dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"), str(cache))
    script = "from houkai.embed import default; default().query('private')"
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=60)
    assert {path.name for path in cache.iterdir()} <= {"houkai"}
