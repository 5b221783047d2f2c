"""What a command loads: a start that is paid a hundred times a day."""

from __future__ import annotations

from pathlib import Path

import pytest

from houkai import MemoryStore
from houkai.testing import HashingEmbedder
from tests.support import run

HEAVY = {"numpy", "onnxruntime", "tokenizers", "mcp", "pydantic", "huggingface_hub", "rich",
         "starlette", "uvicorn", "textual", "asyncio"}  # fmt: skip
CODE = """
import sys
sys.argv = ["houkai", *sys.argv[1:]]
from houkai.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
print("loaded", *sorted({name.partition(".")[0] for name in sys.modules}))
print("own", *sorted(name for name in sys.modules if name.startswith("houkai.")))
"""


def loaded(*arguments: str) -> tuple[set[str], set[str]]:
    """Run a command and return the packages it loaded, and houkai's own modules."""
    lines = run(CODE, *arguments).splitlines()
    found = {line.partition(" ")[0]: set(line.split()[1:]) for line in lines if line}
    return found["loaded"], found["own"]


@pytest.mark.parametrize(
    "words",
    ["list", "list -f json", "journal tail", "stats", "show {id}", "forget {id} -y",
     "bump {id} +0.1", "history {id}", "undo", "tag {id} -a x", "list --help",
     "neighbors {id}", "graph {id}", "versions {id}", "tags list", "trash list", "state-at now",
     "diff 1h", "journal verify"],
)  # fmt: skip
def test_short_commands_load_nothing_heavy(words: str, path: Path) -> None:
    """Numpy or pydantic in a listing doubles what every shell prompt and hook waits for."""
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
        memory = store.remember("Deploys are slow")
    packages, _ = loaded(*(word.format(id=memory.id) for word in words.split()))
    assert packages & HEAVY == set()


def test_help_loads_no_store() -> None:
    """Help that opens SQLite and reads every option is slower than the commands it names."""
    packages, own = loaded("--help")
    assert packages & (HEAVY | {"apsw", "tomllib", "sqlite_vec"}) == set()
    assert own == {"houkai.cli", "houkai.cli.app", "houkai.cli.parsing", "houkai.cli.place",
                   "houkai.errors"}  # fmt: skip


def test_a_table_loads_rich_and_nothing_more(path: Path) -> None:
    """Rich is for tables; a table must not bring the model along."""
    with MemoryStore(path, embedder=HashingEmbedder(64)) as store:
        store.remember("Deploys are slow")
    packages, _ = loaded("list", "-f", "rich")
    assert packages & HEAVY == {"rich"}
