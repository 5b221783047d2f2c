from __future__ import annotations

import logging
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import huggingface_hub.file_download
import huggingface_hub.utils
import pytest
from hubs import Hub, cut, stall, status, whole
from providers import running

from houkai import ModelMissing, NotFound, NotReady
from houkai.embed import hub
from houkai.embed.lockfile import LockedFile

BODY = random.Random(7).randbytes(300_000)
FILES = {"onnx/model.onnx": BODY, "vocab.txt": b"[PAD]\n[UNK]\n"}
NAME = "all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Hub]:
    """Serve the pinned files on loopback, and make waits short and chunks small."""
    served = Hub(REVISION, dict(FILES))
    pinned = tuple(LockedFile(name, served.etags[name], len(body)) for name, body in FILES.items())
    model = hub.HubModel(
        NAME, hub.hub_models()[NAME].repository, REVISION, "Apache-2.0", 384, pinned
    )
    monkeypatch.setattr(hub, "hub_models", lambda: {NAME: model})
    monkeypatch.setenv("HF_ENDPOINT", served.url)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 10_000)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
    monkeypatch.setattr(hub, "HEAD_S", 0.3)
    monkeypatch.setattr(huggingface_hub.file_download.time, "sleep", lambda _: None)
    with running(served):
        yield served
    huggingface_hub.utils.close_session()


def path_of(name: str) -> Path:
    """Return where a pulled file is."""
    return hub.hub_model(NAME).folder / name


def state_of(name: str) -> str:
    """Return what is there of a file."""
    return hub.state(path_of(name), hub.hub_model(NAME).chosen([name])[0])


def leftovers() -> list[str]:
    """Return what lies beside the pulled files, locks aside."""
    folder = hub.hub_model(NAME).folder
    found = {path.name for path in folder.rglob("*") if path.is_file()}
    return sorted(found - {"model.onnx", "vocab.txt"} - {f for f in found if f.endswith(".lock")})


def test_the_lock_file_pins_what_the_hub_has() -> None:
    """A typing error in models.lock would refuse the right file for ever."""
    model = hub.hub_model(NAME)
    assert model.repository == "sentence-transformers/all-MiniLM-L6-v2"
    assert model.revision == REVISION
    by_name = {file.name: file for file in model.files}
    assert by_name["onnx/model.onnx"].bytes == 90_405_214
    assert all(len(file.sha256) == 64 for file in model.files)
    with pytest.raises(NotFound, match=r"it has: all-MiniLM-L6-v2"):
        hub.hub_model("another")
    with pytest.raises(NotFound, match=r"it has: .*vocab.txt"):
        model.chosen(["another.bin"])


def test_files_are_pulled_at_the_pinned_revision(server: Hub) -> None:
    """Whatever is newest on the hub would become the model."""
    assert {state_of(name) for name in FILES} == {"missing"}
    told: list[tuple[str, int, int]] = []
    paths = hub.pull(NAME, progress=lambda *now: told.append(now))
    assert paths == [path_of(name) for name in FILES]
    assert [path.read_bytes() for path in paths] == list(FILES.values())
    assert {state_of(name) for name in FILES} == {"verified"}
    assert hub.state(paths[0], hub.hub_model(NAME).files[0], hashed=False) == "present"
    assert all(REVISION in one.path for one in server.seen if "/resolve/" in one.path)
    sizes = [done for name, done, _ in told if name == "onnx/model.onnx"]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1], len(sizes) > 20) == (0, 300_000, True)
    assert leftovers() == []
    assert all(one.authorization is None for one in server.seen)


def test_what_is_there_is_not_pulled_again(server: Hub) -> None:
    """Ninety megabytes would come every time."""
    hub.pull(NAME, ["vocab.txt"])
    server.seen.clear()
    hub.pull(NAME, ["vocab.txt"])
    assert server.seen == []


def test_a_damaged_file_is_told_and_pulled_anew(server: Hub) -> None:
    """A bad disk would give other vectors without a word."""
    hub.pull(NAME, ["vocab.txt"])
    path_of("vocab.txt").write_bytes(b"[PAD]\n[XXX]\n")
    assert state_of("vocab.txt") == "damaged"
    hub.pull(NAME, ["vocab.txt"])
    assert path_of("vocab.txt").read_bytes() == FILES["vocab.txt"]


def test_a_dropped_connection_goes_on_by_itself(server: Hub) -> None:
    """On a bad line no large file would ever arrive."""
    server.failures.extend([cut(100_000), stall(50_000), cut(0)])
    hub.pull(NAME, ["onnx/model.onnx"])
    assert path_of("onnx/model.onnx").read_bytes() == BODY
    first, *later = server.asked()
    assert first is None
    assert len(later) == 3
    assert all(one is not None and one != "bytes=0-" for one in later)


def test_what_came_before_the_end_of_the_process_is_kept(
    server: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A closed laptop would cost all that had come."""

    def closed(name: str, done: int, total: int) -> None:
        if done >= 120_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hub.pull(NAME, ["onnx/model.onnx"], progress=closed)
    assert state_of("onnx/model.onnx") == "partial"
    server.seen.clear()
    told: list[int] = []
    hub.pull(NAME, ["onnx/model.onnx"], progress=lambda name, done, total: told.append(done))
    assert server.asked() == ["bytes=120000-"]
    assert told[0] == 120_000
    assert state_of("onnx/model.onnx") == "verified"


def test_a_server_that_ignores_ranges_begins_anew(server: Hub) -> None:
    """The second half would be followed by a whole file."""
    server.failures.extend([cut(100_000), whole])
    hub.pull(NAME, ["onnx/model.onnx"])
    assert path_of("onnx/model.onnx").read_bytes() == BODY


def test_other_bytes_are_refused_and_removed(server: Hub) -> None:
    """A forged model would choose what an agent remembers."""
    server.files["onnx/model.onnx"] = BODY[:-1] + b"!"
    with pytest.raises(ModelMissing, match=r"other bytes than models.lock pins, so it was removed"):
        hub.pull(NAME, ["onnx/model.onnx"])
    assert state_of("onnx/model.onnx") == "missing"
    assert leftovers() == []


@pytest.mark.parametrize("what", ["revision", "size", "hash"])
def test_another_offer_is_refused_before_it_is_downloaded(
    server: Hub, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Ninety megabytes would come only to be thrown away."""
    if what == "revision":
        respond = server.RequestHandlerClass.send  # type: ignore[attr-defined]

        def other(self: Any, code: int, *rest: Any, **headers: str) -> None:
            respond(self, code, *rest, **{**headers, "X_Repo_Commit": "0" * 40})

        monkeypatch.setattr(server.RequestHandlerClass, "send", other)
    elif what == "size":
        server.files["onnx/model.onnx"] = BODY + b"more"
    else:
        server.etags["onnx/model.onnx"] = "0" * 64
    with pytest.raises(ModelMissing, match=r"offers another onnx/model.onnx"):
        hub.pull(NAME, ["onnx/model.onnx"])
    assert server.asked() == []


def test_a_file_that_is_not_there(server: Hub) -> None:
    """A traceback of the hub's client would be all that a user sees."""
    del server.files["vocab.txt"]
    with pytest.raises(ModelMissing, match=r"does not have vocab.txt"):
        hub.pull(NAME, ["vocab.txt"])
    server.revision = "0" * 40
    with pytest.raises(ModelMissing, match=r"does not have onnx/model.onnx"):
        hub.pull(NAME, ["onnx/model.onnx"])


@pytest.mark.parametrize(
    ("heads", "failures", "words"),
    [
        ([status(500)], [], "HTTP 500"),
        ([status(401)], [], "HTTP 401"),
        ([], [status(503)], "HTTP 503"),
        ([], [cut(20_000), *[cut(0)] * 10], "RemoteProtocolError"),
        ([], [stall(20_000), *[stall(0)] * 10], "ReadTimeout"),
    ],
)
def test_a_failing_hub_is_one_sentence_and_what_came_stays(
    server: Hub,
    heads: list[Callable[..., None]],
    failures: list[Callable[..., None]],
    words: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A user would not learn that the same command goes on."""
    server.heads.extend(heads)
    server.failures.extend(failures)
    with pytest.raises(NotReady) as error:
        hub.pull(NAME, ["onnx/model.onnx"])
    assert words in str(error.value)
    assert "goes on" in error.value.hint
    assert state_of("onnx/model.onnx") in ("missing", "partial")
    assert capfd.readouterr().err == ""
    server.failures.clear()
    hub.pull(NAME, ["onnx/model.onnx"])
    assert state_of("onnx/model.onnx") == "verified"
    assert huggingface_hub.utils.logging.get_verbosity() == logging.WARNING
    assert not huggingface_hub.utils.are_progress_bars_disabled("huggingface_hub.http_get")


def test_nobody_there_and_offline(server: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network the sentence must say so, and the wish to stay offline must hold."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(NotReady, match=r"ConnectError"):
        hub.pull(NAME, ["vocab.txt"])
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(NotReady, match=r"HF_HUB_OFFLINE"):
        hub.pull(NAME, ["vocab.txt"])


def test_a_key_goes_to_the_hub_only_from_the_environment(
    server: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that some other tool has stored would be sent to whatever HF_ENDPOINT names."""
    stored = Path(huggingface_hub.constants.HF_TOKEN_PATH)
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(stored))
    monkeypatch.setattr(huggingface_hub.utils._auth, "_get_token_from_file", lambda: "hf_stored")
    hub.pull(NAME, ["vocab.txt"])
    assert {one.authorization for one in server.seen} == {None}
    path_of("vocab.txt").unlink()
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    hub.pull(NAME, ["vocab.txt"])
    by_place = {one.path.split("/")[1]: one.authorization for one in server.seen[2:]}
    assert by_place == {"sentence-transformers": "Bearer hf_mine", "blob": None}


def test_two_pulls_of_one_file_do_not_mix(server: Hub) -> None:
    """Both would append to one file."""
    refused: list[NotReady] = []

    def second(name: str, done: int, total: int) -> None:
        if done and not refused:
            with pytest.raises(NotReady, match=r"Another process is pulling") as error:
                hub.pull(NAME, ["onnx/model.onnx"])
            refused.append(error.value)

    hub.pull(NAME, ["onnx/model.onnx"], progress=second)
    assert refused
    assert path_of("onnx/model.onnx").read_bytes() == BODY


def test_a_place_that_cannot_be_written_is_told(
    server: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A read-only home would end in a traceback."""
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(hub, "cache_folder", lambda: tmp_path / "file")
    with pytest.raises(NotReady, match=r"cannot be made"):
        hub.pull(NAME, ["vocab.txt"])
    monkeypatch.setattr(hub, "cache_folder", lambda: None)
    with pytest.raises(NotReady, match=r"No home folder"):
        hub.pull(NAME, ["vocab.txt"])


def test_looking_loads_no_client(server: Hub) -> None:
    """Listing models would take a third of a second longer, and could reach the network."""
    script = """
import sys
from houkai.embed import hub
for model in hub.hub_models().values():
    for file in model.files:
        hub.state(model.folder / file.name, file)
print(*sorted({"huggingface_hub", "httpx2", "filelock", "numpy"} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []
    assert server.seen == []
