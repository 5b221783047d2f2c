"""Ask an embedding provider over HTTP: JSON in, JSON out, bounded in time, size and tries.

No sentence made here holds the key, the texts, or what the provider wrote, which may repeat both.
"""

from __future__ import annotations

import email.utils
import json
import os
import random
import re
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from houkai.errors import InputError, ModelMissing, NotReady

if TYPE_CHECKING:
    import httpx2

CONNECT_S: Final = 5.0
ANSWER_BYTES: Final = 64 * 1024 * 1024
FIRST_WAIT_S: Final = 0.5
PASSING: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 529})

_TOO_LONG: Final = re.compile(
    rb"context.{0,8}(length|size|window)|too (long|large|many tokens)|(input|token).{0,12}limit"
    rb"|maximum.{0,20}tokens|max(imum)? .{0,20}tokens|tokens.{0,12}max",
    re.IGNORECASE,
)
_LOOPBACK: Final = re.compile(r"https?://(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?(/|$)")


class TooLong(NotReady):
    """Report that a provider takes less text at once than it was given."""


@dataclass(frozen=True)
class Provider:
    """Who is asked, and what people should do when it does not answer."""

    label: str
    address: str
    model: str
    timeout_s: float
    key_hint: str
    model_hint: str
    down_hint: str

    def __str__(self) -> str:
        """Name the provider and where it is."""
        return f"{self.label} at {self.address}"


@dataclass(frozen=True)
class Effort:
    """How often to try, and the longest wait between two tries."""

    tries: int
    patience_s: float


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Client:
    """A provider's connections, shared by threads, opened by the first request."""

    def __init__(self, provider: Provider, headers: Mapping[str, str]) -> None:
        self.provider = provider
        self._headers = dict(headers)
        self._lock = threading.Lock()
        self._http: httpx2.Client | None = None
        self._pid = 0

    def post(self, path: str, body: Mapping[str, Any], effort: Effort) -> Any:
        """Return the JSON that answers `body`, trying again after a passing failure.

        A provider that asks for a longer wait than the effort allows is not asked again.
        Raises NotReady, TooLong, ModelMissing.
        """
        content = json.dumps(body).encode()
        number = 0
        while True:
            number += 1
            found, wait = self._try(path, content)
            if isinstance(found, _Answer):
                return self._parsed(found.body)
            pause = wait if wait is not None else FIRST_WAIT_S * 2 ** (number - 1)
            if number >= effort.tries or pause > effort.patience_s:
                raise found
            # Many processes that were turned away together must not come back together.
            time.sleep(pause + random.uniform(0, min(pause, 1.0) / 2))

    def _try(self, path: str, content: bytes) -> tuple[_Answer | NotReady, float | None]:
        """Return the answer, or a passing failure and the wait it asks for. Raises the others."""
        import httpx2

        try:
            answer = self._send(path, content)
        except httpx2.TimeoutException:
            return self._failure(f"did not answer within {self.provider.timeout_s:g} s"), None
        except httpx2.RequestError as error:
            reason = f"cannot be reached ({type(error).__name__})"
            return self._failure(reason, self.provider.down_hint), None
        if 200 <= answer.status < 300:
            return answer, None
        failure = self._refusal(answer)
        if isinstance(failure, TooLong) or answer.status not in PASSING:
            raise failure
        return failure, _wait_asked(answer.headers)

    def _send(self, path: str, content: bytes) -> _Answer:
        """Return an answer that arrived whole within the time and is no larger than allowed."""
        import httpx2

        deadline = time.monotonic() + self.provider.timeout_s
        with self._client().stream(
            "POST", f"{self.provider.address}{path}", content=content
        ) as response:
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > ANSWER_BYTES:
                    raise self._failure(f"sent more than {ANSWER_BYTES:,} bytes")
                if time.monotonic() > deadline:
                    raise httpx2.ReadTimeout("the answer trickles")
            return _Answer(response.status_code, response.headers, bytes(body))

    def _client(self) -> httpx2.Client:
        """Return the connections of this process; a forked child makes its own."""
        import httpx2

        with self._lock:
            if self._http is None or self._pid != os.getpid():
                self._http = httpx2.Client(
                    headers={"Content-Type": "application/json", **self._headers},
                    timeout=httpx2.Timeout(self.provider.timeout_s, connect=CONNECT_S),
                    # Certificates take 0.1 s to load, and a plain address never needs them.
                    verify=self.provider.address.startswith("https:"),
                    # A proxy cannot reach this machine's own ports, and need not see the texts.
                    trust_env=not _LOOPBACK.match(self.provider.address),
                )
                self._pid = os.getpid()
                weakref.finalize(self, self._http.close)
            return self._http

    def _failure(self, what: str, hint: str = "Try again later.") -> NotReady:
        return NotReady(f"{self.provider} {what}.", hint=hint)

    def _refusal(self, answer: _Answer) -> NotReady:
        """Return the error that a status stands for."""
        status, provider = answer.status, self.provider
        if status in (401, 403):
            return self._failure(f"refused the key (HTTP {status})", provider.key_hint)
        if status == 413 or (status in (400, 422, 500) and _TOO_LONG.search(answer.body)):
            return TooLong(f"{provider} finds the text too long for {provider.model!r}.")
        if status == 404:
            return ModelMissing(
                f"{provider} has no model {provider.model!r} (HTTP 404).", hint=provider.model_hint
            )
        if status == 429:
            wait = _wait_asked(answer.headers)
            hint = f"Try again in {wait:.0f} s." if wait else "Try again later."
            return self._failure("allows no more requests for now (HTTP 429)", hint)
        if 300 <= status < 400:
            return self._failure(
                f"answered with a redirection (HTTP {status})",
                "Set the base URL to the address it leads to.",
            )
        if status in PASSING:
            return self._failure(f"failed (HTTP {status})")
        return self._failure(
            f"refused the request (HTTP {status})", "Check the base URL and the model's name."
        )

    def _parsed(self, body: bytes) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            failure = self._failure(
                "answered with something that is not JSON", "Check the base URL."
            )
            raise failure from None


def _wait_asked(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that Retry-After asks for, as a number or a date."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", value):
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def address(value: str, name: str) -> str:
    """Return an address without its last slash. Raises InputError, which shows no password."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value.strip())
        fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fits = False
    if not fits:
        raise InputError(f"{name} must be an address such as http://127.0.0.1:8080/v1.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InputError(
            f"{name} must hold no user name, password, query or fragment.",
            hint="A key belongs in HOUKAI_EMBED_API_KEY.",
        )
    return value.strip().rstrip("/")
