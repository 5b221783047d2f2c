"""Compare with sentence-transformers on the original weights; run with `pytest -m parity`.

Needs the extra `parity`: torch, sentence-transformers and the package models.lock names as the
weights' source.
"""

from __future__ import annotations

import hashlib
import importlib.util
import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from houkai.embed import MiniLM
from houkai.embed.lockfile import lock_path

pytestmark = pytest.mark.parity
CLOSE = 0.9999

_SUBJECTS = ["the build", "Maria", "our billing service", "the Postgres replica", "agent 7"]
_VERBS = ["moved to", "failed because of", "depends on", "was replaced by", "prefers", "broke"]
_OBJECTS = ["port 5433", "a flaky test", "the old invoice API", "dark roast coffee", "v2.3.1-rc4"]
_TAILS = ["since Tuesday", "(see #4312)", "— ask Ravi", "at 14:05 UTC", "until Q3", "again!"]
_CJK = "会議木曜日午後三時変更東京仕様書確認데이터베이스이전완료数据库迁移已完成用户喜欢简洁"
_SCRIPTS = [
    "Привет, как дела?",
    "مرحبا بالعالم",
    "שלום עולם",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "Καλημέρα κόσμε",
]
_EMOJI = ["😀", "🎉", "👩‍👩‍👧‍👦", "🇯🇵", "✅", "🚀", "❤️", "👍🏽"]
_EDGE = [
    "", " ", "\n\t", ".", "a", "!?!?!?", "\x00", "nul\x00inside", "[SEP] [MASK] [CLS] [PAD] [UNK]",
    "x" * 99, "x" * 100, "x" * 101, "x" * 5000, "é" * 60, "e\u0301" * 60, "\u200b\ufeff", "\ufffd",
    "İSTANBUL ıŞĞ", "ﬁne ﬂow ﬀ", "Ａｂｃ１２３", "ß ẞ straße", "1e-12 0xDEADBEEF 3.14159", "http://a.b/c?d=e&f=%20#g",
    "A\u0300\u0301\u0302 zalgo", "\u202eright to left\u202c", "tab\tseparated\tvalues",
    "ＮＦＫＣ ① ½ ㎏",
    "don't can't it's", "C:\\Users\\me\\file.txt", "\U000e0001 tags",
]  # fmt: skip


def _note(rng: random.Random) -> str:
    parts = [rng.choice(group) for group in (_SUBJECTS, _VERBS, _OBJECTS, _TAILS)]
    return " ".join(parts)


def _code(rng: random.Random) -> str:
    name, arg = rng.choice(["load", "parse", "retry", "hash"]), rng.choice(["path", "rows", "n"])
    body = rng.choice(["return None", "raise ValueError(arg)", "yield from rows[::-1]"])
    call = f"assert {name}_{arg}({rng.randrange(99)}) == {{'a': [1, 2.{rng.randrange(9)}e-3]}}"
    return f"def {name}_{arg}({arg}: int = {rng.randrange(9)}):\n    {body}  # TODO\n\n{call}\n"


def _foreign(rng: random.Random) -> str:
    if rng.random() < 0.4:
        return " ".join(rng.choices(_SCRIPTS, k=rng.randint(1, 6)))
    return "".join(rng.choices(_CJK, k=rng.randint(2, 120))) + rng.choice(["", "。", " (2024)"])


def _emoji(rng: random.Random) -> str:
    return " ".join([*rng.choices(_EMOJI, k=rng.randint(1, 5)), _note(rng)][:: rng.choice([1, -1])])


def _noise(rng: random.Random) -> str:
    planes = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x5FF), (0x2000, 0x2BFF), (0x1F300, 0x1FAFF)]
    chosen = [rng.randint(*rng.choice(planes)) for _ in range(rng.randint(1, 200))]
    return "".join(map(chr, chosen))


def _paragraph(rng: random.Random) -> str:
    return ". ".join(_note(rng).capitalize() for _ in range(rng.randint(5, 15))) + "."


def _long(rng: random.Random) -> str:
    return " ".join(_paragraph(rng) for _ in range(rng.randint(4, 12)))


def texts() -> list[str]:
    """Return 400 texts made by rule, so that every run compares the same ones."""
    rng = random.Random(20240607)
    kinds: list[tuple[Callable[[random.Random], str], int]] = [
        (_note, 120), (_code, 60), (_foreign, 60), (_emoji, 30), (_noise, 30), (_paragraph, 40),
        (_long, 30),
    ]  # fmt: skip
    return _EDGE + [make(rng) for make, count in kinds for _ in range(count)]


def _original() -> Path:
    """Return the folder of the original model, its weights checked against models.lock."""
    lock = tomllib.loads(lock_path().read_text(encoding="utf-8"))
    entry = lock["models"]["all-MiniLM-L6-v2"]
    package, _, inner = str(entry["source"]["folder"]).partition("/")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / inner
    for name in ("model.safetensors", "tokenizer.json"):
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert found == entry["hub"]["files"][name]["sha256"]
    return folder


@pytest.fixture(scope="module")
def reference() -> Any:
    """Return what sentence-transformers makes of every text, one at a time."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(_original()), device="cpu")
    assert model.max_seq_length == 256
    return np.stack([model.encode(text, normalize_embeddings=True) for text in texts()])


def _report(kind: str, cosines: Any) -> None:
    print(f"{kind}: {len(cosines)} texts, min {cosines.min():.7f}, mean {cosines.mean():.7f}")


def test_every_text_alone_is_the_reference_vector(reference: Any) -> None:
    """An export that drifts from the model everybody knows would make its figures worthless."""
    model = MiniLM()
    first = np.stack([model.passages([text])[0][0] for text in texts()])
    cosines = (first * reference).sum(axis=1)
    _report("alone", cosines)
    assert cosines.min() >= CLOSE


def test_every_text_in_a_batch_is_the_reference_vector(reference: Any) -> None:
    """Padding that leaks into a vector shows only in company."""
    first = np.stack([rows[0] for rows in MiniLM().passages(texts())])
    cosines = (first * reference).sum(axis=1)
    _report("batch", cosines)
    assert cosines.min() >= CLOSE


def test_first_texts_of_a_process_are_the_reference_vectors(reference: Any) -> None:
    """The session a command starts with is another than a server's."""
    found = []
    for at in range(0, 400, 20):
        model = MiniLM()
        found += [(at + n, model.query(texts()[at + n])) for n in (0, 7)]
    cosines = np.array([row @ reference[at] for at, row in found if len(texts()[at]) < 900])
    _report("quick", cosines)
    assert cosines.min() >= CLOSE


def test_there_are_400_texts() -> None:
    """Losing a kind of text would weaken the comparison unseen."""
    assert len(texts()) == 400
    assert len(set(texts())) > 330
