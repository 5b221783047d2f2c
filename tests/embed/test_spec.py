from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from providers import Provider

from houkai import InputError, MemoryStore, settings
from houkai.embed import MiniLM, default
from houkai.embed.remote import OllamaEmbedder, OpenAICompatibleEmbedder
from houkai.embed.spec import as_embedder, build_embedder, ollama_host
from houkai.testing import HashingEmbedder

VARIABLES = (
    "HOUKAI_EMBEDDER",
    "HOUKAI_EMBED_BASE_URL",
    "HOUKAI_EMBED_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_API_KEY",
    "OLLAMA_BASE_URL",
    "OLLAMA_HOST",
)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide what the machine has set."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOUKAI_CONFIG", str(tmp_path / "config.toml"))
    monkeypatch.setenv("HOUKAI_DB", str(tmp_path / "memory.db"))


@pytest.mark.parametrize("spec", [None, "minilm", " minilm ", "local", "default"])
def test_the_bundled_model_is_the_default(spec: str | None) -> None:
    """A process with several stores would load the model once for each."""
    assert isinstance(build_embedder(spec), MiniLM)
    assert build_embedder(spec) is default()


@pytest.mark.parametrize(
    "spec",
    ["openai", "openai:", "openai: ", "ollama:", "minilm:x", "gpt", "digitalocean:m", ":m", "a b"],
)
def test_a_bad_spec_is_refused_at_once_with_what_is_known(
    spec: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A typing error would show only in the first recall, and leave an empty file behind."""
    for refused in (
        lambda: build_embedder(spec),
        lambda: MemoryStore(embedder=spec),
    ):
        with pytest.raises(InputError) as error:
            refused()
        assert "minilm, openai:MODEL, ollama:MODEL" in str(error.value)
        assert "HOUKAI_EMBEDDER" in error.value.hint
    monkeypatch.setenv("HOUKAI_EMBEDDER", spec)
    with pytest.raises(InputError):
        MemoryStore()
    assert not (tmp_path / "memory.db").exists()


def test_a_callable_or_an_embedder_passes_through() -> None:
    """Callers' own embedders would be refused as unknown specs."""
    mine = HashingEmbedder()
    assert as_embedder(mine) is mine
    assert as_embedder(lambda texts: [[1.0, 2.0]] * len(texts)).query("a").shape == (2,)
    with pytest.raises(InputError):
        as_embedder(3)


def test_a_key_goes_only_to_the_address_it_belongs_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI's key must not be sent to another server, nor be missing at OpenAI's own."""

    def asked() -> tuple[str, str | None]:
        made = build_embedder("openai:text-embedding-3-small")
        assert isinstance(made, OpenAICompatibleEmbedder)
        return made._provider.address, made._client._headers.get("Authorization")

    assert asked() == ("https://api.openai.com/v1", None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    assert asked() == ("https://api.openai.com/v1", "Bearer sk-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://eu.api.openai.com/v1/")
    assert asked() == ("https://eu.api.openai.com/v1", "Bearer sk-openai")
    monkeypatch.setenv("HOUKAI_EMBED_BASE_URL", "http://localhost:8080/v1")
    assert asked() == ("http://localhost:8080/v1", None)
    monkeypatch.setenv("HOUKAI_EMBED_API_KEY", "sk-own")
    assert asked() == ("http://localhost:8080/v1", "Bearer sk-own")
    monkeypatch.delenv("HOUKAI_EMBED_BASE_URL")
    assert asked() == ("https://eu.api.openai.com/v1", "Bearer sk-own")


@pytest.mark.parametrize(
    ("variable", "spec"),
    [
        ("HOUKAI_EMBED_BASE_URL", "openai:m"),
        ("OPENAI_BASE_URL", "openai:m"),
        ("OLLAMA_BASE_URL", "ollama:m"),
        ("OLLAMA_HOST", "ollama:m"),
    ],
)
@pytest.mark.parametrize(
    "address",
    [
        "ftp://host/v1",
        "http://",
        "http://host:notaport/v1",
        "http://host:99999/v1",
        "http://user:hunter2@host/v1",
        "http://host/v1?key=hunter2",
        "http://host/v1#hunter2",
        "http://[::1/v1",
    ],
)
def test_a_bad_address_is_refused_with_its_variable_and_no_password(
    monkeypatch: pytest.MonkeyPatch, variable: str, spec: str, address: str
) -> None:
    """A password in an address would show in every error about the server."""
    monkeypatch.setenv(variable, address)
    with pytest.raises(InputError) as error:
        build_embedder(spec)
    assert variable in str(error.value)
    assert "hunter2" not in error.value.line()
    with pytest.raises(InputError, match="base_url"):
        OllamaEmbedder("m", address)


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:8000", "http://127.0.0.1:8000"),
        (":8000", "http://127.0.0.1:8000"),
        ("gpu.lan", "http://gpu.lan:11434"),
        ("gpu.lan:8000/ollama", "http://gpu.lan:8000/ollama"),
        ("gpu.lan/ollama", "http://gpu.lan:11434/ollama"),
        ("[::]", "http://[::1]:11434"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("https://gpu.lan", "https://gpu.lan"),
        ("http://0.0.0.0:8000", "http://127.0.0.1:8000"),
        (' "gpu.lan" ', "http://gpu.lan:11434"),
    ],
)
def test_ollama_host_means_what_it_means_to_ollama(value: str, address: str) -> None:
    """Ollama binds to this variable; who calls 0.0.0.0 or forgets the port reaches nobody."""
    assert ollama_host(value) == address


def test_ollama_is_found_by_either_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """An address given for chat ends in /v1, where Ollama answers no /api/embed."""
    monkeypatch.setenv("OLLAMA_HOST", "gpu.lan")
    made = build_embedder("ollama:nomic-embed-text:v1.5")
    assert isinstance(made, OllamaEmbedder)
    assert made._provider.address == "http://gpu.lan:11434"
    assert made.name == "nomic-embed-text:v1.5"
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:11434/v1/")
    made = build_embedder("ollama:m")
    assert isinstance(made, OllamaEmbedder)
    assert made._provider.address == "http://127.0.0.1:11434"


def test_environment_wins_over_the_config_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A user could not try another model without editing a file."""
    assert settings.load().embedder == settings.Place("minilm", "default")
    config = tmp_path / "config.toml"
    config.write_text('embedder = "ollama:from-file"\n')
    assert settings.load().embedder == settings.Place("ollama:from-file", str(config))
    monkeypatch.setenv("HOUKAI_EMBEDDER", "ollama:from-environment")
    assert settings.load().embedder == settings.Place("ollama:from-environment", "HOUKAI_EMBEDDER")
    assert settings.load(embedder="minilm").embedder == settings.Place("minilm", "flag")
    with MemoryStore() as store:
        assert store.embedder.name == "from-environment"
    with MemoryStore(embedder=HashingEmbedder()) as store:
        assert store.embedder.name == "hashing-384"
    config.write_text("embedder = 3\n")
    monkeypatch.delenv("HOUKAI_EMBEDDER")
    with pytest.raises(InputError, match="embedder must be text"):
        settings.load()


def test_a_store_remembers_and_recalls_through_a_provider(
    monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    """The spec would be accepted and the provider never asked, or asked once too often."""
    monkeypatch.setenv("OLLAMA_BASE_URL", provider.url)
    with MemoryStore(embedder="ollama:m") as store:
        kept = store.remember("the tide turns at noon")
        store.remember_many(["bread needs salt", "glass is made of sand"])
    provider.asked.clear()
    with MemoryStore(embedder="ollama:m") as store:
        assert store.list_recent(1)
        assert provider.asked == []
        (hit, *_) = store.recall("when does the tide turn", mode="semantic")
        assert hit.memory.id == kept.id
        # The file knows the dimension, so that one request answers one recall.
        assert len(provider.asked) == 1
        assert store.stats()["model"] == "m"


SCRIPT = """
import sys
import houkai
with houkai.MemoryStore(embedder="ollama:m") as store:
    store.list_recent()
    store.stats()
unwanted = {"numpy", "urllib.request", "ssl", "huggingface_hub", "httpx2", "onnxruntime"}
print(*sorted(unwanted & set(sys.modules)))
"""


@pytest.mark.parametrize("spec", ["minilm", "ollama:m"])
def test_opening_and_listing_load_no_client_and_no_model(spec: str) -> None:
    """Every command of the CLI would start a third of a second later."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("ollama:m", spec)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == []
