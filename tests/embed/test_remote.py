from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from providers import KEY, Provider, status

from houkai.embed import remote
from houkai.embed.adapt import adapt
from houkai.embed.remote import OllamaEmbedder, OpenAICompatibleEmbedder, RemoteEmbedder
from houkai.errors import InputError, ModelMismatch, NotReady

SECRET = "the launch code is tulip"

Make = Callable[..., RemoteEmbedder]


def test_texts_become_unit_vectors_in_their_order(make: Make, provider: Provider) -> None:
    """Answers out of order, or of another length than 1, would give texts each other's cosines."""
    embedder = make()
    assert embedder.dim == 0
    texts = [f"text number {n}" for n in range(7)]
    rows = embedder.passages(texts)
    assert [row.shape for row in rows] == [(1, 64)] * 7
    assert all(row.dtype == np.float32 for row in rows)
    for text, row in zip(texts, rows, strict=True):
        assert np.allclose(row[0], provider.embedder.query(text), atol=1e-6)
    assert np.allclose(embedder.query("text number 3"), rows[3][0])
    assert embedder.dim == 64
    assert embedder.passages([]) == []
    for size in (1e300, 1e-300):
        provider.change = lambda rows, size=size: [[size] * 64] * len(rows)
        assert np.allclose(embedder.query("a"), 1 / 8)
    assert adapt(embedder) is embedder


def test_what_is_asked_is_what_the_protocols_say(provider: Provider) -> None:
    """A server refuses a body it does not know; Ollama left alone cuts long texts in silence."""
    OpenAICompatibleEmbedder(KEY, "text-embedding-3-small", f"{provider.url}/v1/").query("hello")
    path, headers, body = provider.asked[0]
    assert path == "/v1/embeddings"
    assert body == {"model": "text-embedding-3-small", "input": ["hello"]}
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert headers["Content-Type"] == "application/json"
    OllamaEmbedder("nomic-embed-text", provider.url).query("hello")
    path, headers, body = provider.asked[1]
    assert path == "/api/embed"
    assert body == {"model": "nomic-embed-text", "input": ["hello"], "truncate": False}
    assert "Authorization" not in headers


def test_batches_are_bounded_by_number_and_by_characters(make: Make, provider: Provider) -> None:
    """A provider refuses a request of more texts or tokens than it takes."""
    make(batch_size=4).passages([f"short {n}" for n in range(10)])
    assert [len(one.body["input"]) for one in provider.asked] == [4, 4, 2]
    provider.asked.clear()
    make(batch_size=1000).passages(["x" * 1000] * 250)
    sizes = [sum(map(len, one.body["input"])) for one in provider.asked]
    assert sum(sizes) == 250_000
    assert max(sizes) <= remote.CHARACTERS


def test_a_long_text_is_cut_into_windows_that_hold_all_of_it(
    make: Make, provider: Provider
) -> None:
    """What a provider cuts off would never be found again."""
    text = " ".join(f"word{n}" for n in range(1500))
    rows = make().passages([text, "short"])
    sent = [window for one in provider.asked for window in one.body["input"]][:-1]
    assert len(rows[0]) == len(sent) > 5
    assert rows[1].shape == (1, 64)
    assert max(map(len, sent)) <= remote.WINDOW
    rebuilt = sent[0] + "".join(window[remote.OVERLAP :] for window in sent[1:])
    assert rebuilt == text


def test_windows_of_every_length_cover_the_text() -> None:
    """A length that the arithmetic forgets would lose the end of a text."""
    for length in [0, 1, 199, 200, 201, 1199, 1200, 1201, 1400, 2199, 2200, 2201, 5000]:
        text = "".join(chr(97 + n % 26) for n in range(length))
        found = remote.windows(text)
        assert found[0] + "".join(one[remote.OVERLAP :] for one in found[1:]) == text
        assert all(found) or length == 0
    assert remote.windows("a" * 1200 + " " * 3000 + "b") == [
        one for one in remote.windows("a" * 1200 + " " * 3000 + "b") if one.strip()
    ]
    assert remote.windows(" " * 5000) == [" " * 1200]


def test_a_window_that_is_too_long_for_the_model_is_halved(make: Make, provider: Provider) -> None:
    """A model with a short context would refuse dense scripts, and the memory with them."""
    provider.longest = 500
    text = " ".join(f"word{n}" for n in range(300))
    rows = make().passages(["before", text, "after"])
    taken = [
        one.body["input"]
        for one in provider.asked
        if all(len(window) <= 500 for window in one.body["input"])
    ]
    windows = [window for batch in taken for window in batch]
    assert rows[0].shape == rows[2].shape == (1, 64)
    assert len(rows[1]) == len(windows) - 2
    assert all(any(word in window.split() for window in windows) for word in text.split())
    assert np.allclose(rows[2][0], provider.embedder.query("after"), atol=1e-6)


def test_a_model_that_takes_almost_nothing_ends_in_an_error(make: Make, provider: Provider) -> None:
    """Halving without a floor would ask for ever."""
    provider.longest = 3
    with pytest.raises(NotReady, match="too long"):
        make().passages(["a text of more than three letters" * 50])
    assert len(provider.asked) < 30


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:-1], "vectors for 3 texts"),
        (lambda rows: rows + rows[:1], "vectors for 3 texts"),
        (lambda rows: [], "vectors for 3 texts"),
        (lambda rows: [rows[0], rows[1], rows[2][:-1]], "unequal length"),
        (lambda rows: [[float("nan")] * 64] * 3, "NaN or infinity"),
        (lambda rows: [rows[0], rows[1], [float("inf")] * 64], "NaN or infinity"),
        (lambda rows: [rows[0], [0.0] * 64, rows[2]], "a vector of zeros"),
        (lambda rows: [[]] * 3, "not a list of numbers"),
        (lambda rows: [["1.0"] * 64] * 3, "not a list of numbers"),
        (lambda rows: [[None] * 64] * 3, "not a list of numbers"),
        (lambda rows: [[True] * 64] * 3, "not a list of numbers"),
        (lambda rows: [[[1.0]] * 64] * 3, "not a list of numbers"),
        (lambda rows: [10**40] * 3, "not a list of numbers"),
    ],
)
def test_vectors_that_cannot_be_stored_are_refused(
    make: Make, provider: Provider, change: Callable[[Any], Any], words: str
) -> None:
    """A file that took them in would rank by NaN, or give a text its neighbour's vector."""
    provider.change = change
    with pytest.raises(NotReady) as error:
        make().passages(["a", "b", SECRET])
    assert words in str(error.value)


@pytest.mark.parametrize(
    "index", [[0, 0, 1], [0, 1, 3], [1, 2, 3], ["a", "b", "c"], [None, None, None], [[], [], []]]
)
def test_indexes_that_name_no_text_are_refused(provider: Provider, index: list[Any]) -> None:
    """A vector counted twice would belong to another text."""
    data = [{"index": at, "embedding": [1.0, 2.0]} for at in index]
    provider.failures.append(status(200, {"data": data}))
    with pytest.raises(NotReady):
        OpenAICompatibleEmbedder(None, "m", f"{provider.url}/v1").passages(["a", "b", "c"])


def test_a_changed_dimension_is_refused(make: Make, provider: Provider) -> None:
    """A server that swaps its model must not mix two spaces in one file."""
    embedder = make()
    embedder.query("a")
    provider.change = lambda rows: [row[:32] for row in rows]
    with pytest.raises(ModelMismatch, match="32 dimensions"):
        embedder.passages(["a"])


def test_the_fingerprint_is_model_and_dimension_not_address(provider: Provider) -> None:
    """A server that moves, or Ollama behind OpenAI's protocol, would cost a re-embedding."""
    one = OllamaEmbedder("nomic-embed-text:latest", provider.url)
    two = OpenAICompatibleEmbedder(KEY, "nomic-embed-text", f"{provider.url}/v1")
    assert one.fingerprint == two.fingerprint
    assert one.name == two.name == "nomic-embed-text"
    assert one.fingerprint == one.fingerprint_at(64)
    other = OllamaEmbedder("mxbai-embed-large", provider.url)
    assert len({one.fingerprint, one.fingerprint_at(32), other.fingerprint}) == 3


def test_connections_are_kept_and_shared_by_threads(make: Make, provider: Provider) -> None:
    """Every recall would pay for a new connection; threads would take each other's answers."""
    embedder = make()
    connections: set[Any] = set()
    verify = provider.verify_request
    provider.verify_request = lambda request, address: (  # type: ignore[method-assign]
        connections.add(address) or verify(request, address)
    )
    for n in range(5):
        embedder.query(f"text {n}")
    assert len(connections) == 1
    wrong: list[str] = []

    def ask(number: int) -> None:
        for n in range(10):
            text = f"thread {number} text {n}"
            if not np.allclose(embedder.query(text), provider.embedder.query(text), atol=1e-6):
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_forgotten_embedder_closes_its_connections(make: Make, provider: Provider) -> None:
    """A server that opens stores for years would run out of file descriptors."""
    embedder = make()
    embedder.query("a")
    http = embedder._client._http
    assert http is not None
    assert not http.is_closed
    del embedder
    gc.collect()
    assert http.is_closed


def test_what_is_no_text_is_refused_before_it_is_sent(make: Make, provider: Provider) -> None:
    """Half a surrogate pair would reach the provider as a sign that nobody wrote."""
    with pytest.raises(InputError, match=r"texts\[1\]"):
        make().passages(["good", "half \ud800"])
    with pytest.raises(InputError, match=r"texts\[0\]"):
        make().passages([b"bytes"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="batch_size"):
        make(batch_size=0)
    assert provider.asked == []


def test_a_proxy_is_not_asked_for_this_machine(
    make: Make, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of the workplace would get every memory and could not reach Ollama anyway."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert make().query("a").shape == (64,)
