"""What pip installs: the wheel alone, without this checkout, opens a store."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support import ROOT

SMOKE = """
import houkai, sys
from houkai.testing import HashingEmbedder
assert houkai.__file__.startswith(sys.prefix), houkai.__file__
with houkai.MemoryStore(sys.argv[1], embedder=HashingEmbedder(64)) as store:
    store.remember("the wheel carries its schema", tags=["wheel"])
    assert store.recall("schema")[0].memory.tags == ["wheel"]
print("well")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("*.whl"))


def test_wheel_holds_what_it_needs(wheel: Path) -> None:
    """A schema or a model left out of the wheel is missed only by those who pip install."""
    names = set(zipfile.ZipFile(wheel).namelist())
    schema = {f"houkai/schema/{file.name}" for file in (ROOT / "schema").glob("*.sql")}
    code = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "houkai").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert schema | code | {"houkai/models.lock"} <= names
    assert not [name for name in names if name.startswith("tests/")]


def test_wheel_opens_a_store_in_a_bare_environment(wheel: Path, tmp_path: Path) -> None:
    """An import that only this checkout can satisfy breaks the first run of every user."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    site = subprocess.check_output(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        env=environment,
        text=True,
    ).strip()
    zipfile.ZipFile(wheel).extractall(site)
    # The dependencies are this environment's, behind the wheel in the search order.
    Path(site, "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    said = subprocess.run(
        [python, "-c", SMOKE, str(tmp_path / "memory.db")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout.strip() == "well", said.stderr
