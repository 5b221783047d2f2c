from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Callable

import pytest
from providers import KEY, Failure, Provider, hang, hang_up, status, trickle

from houkai.embed import remote, transport
from houkai.embed.remote import OllamaEmbedder, OpenAICompatibleEmbedder, RemoteEmbedder
from houkai.errors import InputError, ModelMissing, NotReady

SECRET = "the launch code is tulip"

Make = Callable[..., RemoteEmbedder]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the first wait between two tries a short one."""
    monkeypatch.setattr(transport, "FIRST_WAIT_S", 0.002)


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_a_passing_failure_is_tried_again(make: Make, provider: Provider, code: int) -> None:
    """One hiccup in a thousand requests would end a re-embedding of hours."""
    provider.failures.extend([status(code), status(code)])
    assert make().passages(["a"])[0].shape == (1, 64)
    assert len(provider.asked) == 3


def test_a_lost_connection_is_tried_again(make: Make, provider: Provider) -> None:
    """A server closes idle connections whenever it likes."""
    embedder = make()
    embedder.query("a")
    provider.failures.append(hang_up)
    assert embedder.query("a").shape == (64,)


@pytest.mark.parametrize(("answer", "tries"), [(status(429), 5), (status(503), 5)])
def test_tries_end(make: Make, provider: Provider, answer: Failure, tries: int) -> None:
    """A provider that stays down must not hold a caller for ever."""
    provider.failures.extend([answer] * 20)
    with pytest.raises(NotReady):
        make().passages(["a"])
    assert len(provider.asked) == tries
    with pytest.raises(NotReady):
        make().query("a")
    assert len(provider.asked) == tries + 2


@pytest.mark.parametrize("header", ["7", "date"])
def test_retry_after_is_honoured(
    make: Make, provider: Provider, monkeypatch: pytest.MonkeyPatch, header: str
) -> None:
    """Coming back earlier than asked makes a provider lock the key out."""
    slept: list[float] = []
    monkeypatch.setattr(transport.time, "sleep", slept.append)
    if header == "date":
        monkeypatch.setattr(transport.time, "time", lambda: 1_800_000_000.0)
        header = "Fri, 15 Jan 2027 08:00:07 GMT"
    provider.failures.append(status(429, Retry_After=header))
    make().passages(["a"])
    assert len(slept) == 1
    assert 7.0 <= slept[0] <= 8.0


def test_a_longer_wait_than_the_caller_has_is_told_at_once(
    make: Make, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recall must not sleep a minute, nor a re-embedding an hour, without a word."""
    monkeypatch.setattr(transport.time, "sleep", lambda _: pytest.fail("slept"))
    provider.failures.extend([status(429, Retry_After="3"), status(429, Retry_After="3600")])
    with pytest.raises(NotReady) as error:
        make().query("a")
    assert error.value.hint == "Try again in 3 s."
    with pytest.raises(NotReady) as error:
        make().passages(["a"])
    assert error.value.hint == "Try again in 3600 s."
    assert len(provider.asked) == 2


def test_waits_are_spread_and_grow(
    make: Make, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes that were turned away together would come back together."""
    slept: list[float] = []
    monkeypatch.setattr(transport.time, "sleep", slept.append)
    monkeypatch.setattr(transport, "FIRST_WAIT_S", 0.5)
    provider.failures.extend([status(503)] * 20)
    for _ in range(2):
        with pytest.raises(NotReady):
            make().passages(["a"])
    first, second = slept[:4], slept[4:]
    assert first != second
    assert all(0.5 * 2**n <= wait <= 0.5 * 2**n + 0.5 for n, wait in enumerate(first))


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (status(401), NotReady, "refused the key (HTTP 401)"),
        (status(403), NotReady, "refused the key (HTTP 403)"),
        (status(404), ModelMissing, "has no model 'm' (HTTP 404)"),
        (status(400), NotReady, "refused the request (HTTP 400)"),
        (status(307, Location="http://127.0.0.1:9/"), NotReady, "redirection (HTTP 307)"),
        (status(200, b"<html>login</html>"), NotReady, "not JSON"),
        (status(200, b"[" * 100_000), NotReady, "not JSON"),
        (status(200, b"\xff\xfe"), NotReady, "not JSON"),
        (status(200, b"[]"), NotReady, "no embeddings"),
        (status(200, {"data": 3, "embeddings": 3}), NotReady, "no embeddings"),
        (status(200, {"data": None, "embeddings": None}), NotReady, "no embeddings"),
    ],
)
def test_an_answer_that_stays_wrong_is_told_at_once(
    make: Make, provider: Provider, answer: Failure, kind: type[NotReady], words: str
) -> None:
    """A wrong key or address would be tried again for a minute, or end in a traceback."""
    provider.failures.append(answer)
    with pytest.raises(kind) as error:
        make().passages([SECRET])
    assert words in str(error.value)
    assert error.value.hint
    assert "127.0.0.1" in str(error.value)
    assert len(provider.asked) == 1


@pytest.mark.parametrize("answer", [hang, trickle])
def test_silence_and_trickling_end_in_time(make: Make, provider: Provider, answer: Failure) -> None:
    """An agent would wait for ever on a server that accepts and never ends its answer."""
    provider.failures.extend([answer, answer])
    with pytest.raises(NotReady, match=r"did not answer within 0\.15 s"):
        make(timeout=0.15).query("a")


def test_nobody_there_is_told_with_what_to_do(provider: Provider, unused_port: int) -> None:
    """A forgotten `ollama serve` is the most common of all failures."""
    with pytest.raises(NotReady) as error:
        OllamaEmbedder("m", f"http://127.0.0.1:{unused_port}").query(SECRET)
    assert "ollama serve" in error.value.hint
    assert SECRET not in error.value.line()


@pytest.fixture
def unused_port(provider: Provider) -> int:
    """Return a port of this machine at which nobody answers."""
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_an_answer_too_large_is_refused(
    make: Make, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken server could fill the memory of the agent's process."""
    monkeypatch.setattr(transport, "ANSWER_BYTES", 10_000)
    provider.failures.append(status(200, b"[" + b" " * 50_000 + b"]"))
    with pytest.raises(NotReady, match="more than 10,000 bytes"):
        make().query("a")


@pytest.mark.parametrize("code", [400, 401, 404, 429, 500, 503])
def test_neither_key_nor_text_shows_anywhere(
    make: Make, provider: Provider, caplog: pytest.LogCaptureFixture, code: int
) -> None:
    """Errors end up in agents' transcripts and logs; providers repeat keys and texts in theirs."""
    echo = {"error": {"message": f"Incorrect API key {KEY} for input {SECRET}", "code": KEY}}
    provider.failures.extend([status(code, echo)] * 5)
    embedder = make()
    with caplog.at_level(logging.DEBUG), pytest.raises(NotReady) as error:
        embedder.passages([SECRET])
    shown = "".join(traceback.format_exception(error.value)) + error.value.line()
    shown += repr(embedder) + repr(error.value) + caplog.text
    shown += repr(pickle.loads(pickle.dumps(error.value)).__dict__)
    assert KEY not in shown
    assert SECRET not in shown
    assert "launch" not in shown


def test_a_key_that_cannot_be_a_header_is_refused_unseen() -> None:
    """Python's own error would quote the key."""
    key = f"{KEY}\N{LATIN SMALL LETTER E WITH ACUTE}"
    with pytest.raises(InputError) as error:
        OpenAICompatibleEmbedder(key, "m")
    assert KEY not in "".join(traceback.format_exception(error.value))
    assert remote._authorization(f" {KEY}\n") == {"Authorization": f"Bearer {KEY}"}
