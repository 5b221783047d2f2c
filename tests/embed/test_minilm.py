from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

from houkai.embed import MiniLM
from houkai.embed.pieces import FIRST_PIECES
from houkai.errors import InputError

TEXTS = [
    "The staging database moved to port 5433.",
    "",
    " \n\t ",
    "def add(a, b):\n    return a + b",
    "nul\x00inside",
    "😀🎉👩‍👩‍👧‍👦",
    "会議は木曜日の午後三時に変更されました。",
    "خلاصة الاجتماع: تم تأجيل الإصدار",
    "[SEP] [MASK] literal tokens",
    "x" * 300,
    "word " * 100,
]
SAME = 1e-5


def test_vectors_are_unit_float32_rows(minilm: MiniLM) -> None:
    """Stores rely on cosine being a dot product, whatever the text."""
    for rows in minilm.passages(TEXTS):
        assert rows.shape == (1, 384)
        assert rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=SAME)
    assert minilm.passages([]) == []


def test_a_text_has_one_vector_in_any_company(minilm: MiniLM) -> None:
    """Importing or re-embedding in batches must not move a memory."""
    alone = [minilm.passages([text])[0] for text in TEXTS]
    forward = minilm.passages(TEXTS)
    backward = minilm.passages(TEXTS[::-1])[::-1]
    for one, two, three in zip(alone, forward, backward, strict=True):
        assert np.abs(one - two).max() < SAME
        assert np.abs(one - three).max() < SAME


def test_both_sessions_give_the_same_vectors(minilm: MiniLM) -> None:
    """A command and a server reading one file must agree on what is near."""
    quick = MiniLM(threads=1)
    for text in TEXTS[:6]:
        assert np.abs(quick.query(text) - minilm.query(text)).max() < SAME
    assert quick._loaded is not None
    assert not quick._loaded[1].optimised
    quick.passages(TEXTS)
    assert quick._loaded[1].optimised
    assert np.abs(quick.query(TEXTS[0]) - minilm.query(TEXTS[0])).max() < SAME


def test_meaning_decides_what_is_near(minilm: MiniLM) -> None:
    """A graph wired wrongly still returns unit vectors."""
    asked = minilm.query("How do I reset my password?")
    near, far = minilm.passages(["Steps to recover a forgotten login", "The cake needs two eggs"])
    assert asked @ near[0] > 0.45
    assert asked @ far[0] < 0.2


def test_long_text_keeps_its_end(minilm: MiniLM) -> None:
    """Whatever stands after the first 254 pieces would be lost to recall."""
    text = "The weather report was read out again. " * 60 + "The vault code is under the red mat."
    rows = minilm.passages([text])[0]
    assert len(rows) == 3
    scores = rows @ minilm.query("Where is the vault code?")
    assert scores.argmax() == 2
    assert scores[2] > scores[0] + 0.1


def test_windows_are_vectors_of_their_pieces(minilm: MiniLM) -> None:
    """A shifted window would overlap by less than promised."""
    words = ["river", "apple", "stone", "cloud", "music"] * 100
    rows = minilm.passages([" ".join(words)])[0]
    parts = [" ".join(words[start : start + 254]) for start in (0, 190, 380)]
    expected = np.concatenate(minilm.passages(parts))
    assert np.abs(rows - expected).max() < SAME


def test_long_query_is_the_normalised_mean_of_its_windows(minilm: MiniLM) -> None:
    """A pasted page as a query must not be answered from its beginning alone."""
    text = "alpha beta gamma " * 150 + "the tide tables of the harbour " * 60
    mean = minilm.passages([text])[0].mean(axis=0)
    assert np.abs(minilm.query(text) - mean / np.linalg.norm(mean)).max() < SAME


def test_a_text_of_a_mebibyte_is_embedded_whole(minilm: MiniLM) -> None:
    """The largest text a store accepts must neither fail nor be cut."""
    text = f"{'n' * 400} " * 2_600 + " " * 3_000 + "The vault code is under the red mat."
    assert len(text) > 1_000_000
    rows = minilm.passages([text])[0]
    assert len(rows) == 14
    assert (rows @ minilm.query("Where is the vault code?")).argmax() == 13


@pytest.mark.parametrize("text", ["a\ud800b", "\udfff"])
def test_lone_surrogate_is_refused(minilm: MiniLM, text: str) -> None:
    """The tokenizer's own TypeError would say that a string is no string."""
    with pytest.raises(InputError, match=r"texts\[1\] holds a lone surrogate"):
        minilm.passages(["fine", text])
    with pytest.raises(InputError, match="text holds a lone surrogate"):
        minilm.query(text)


def test_what_is_no_string_is_refused(minilm: MiniLM) -> None:
    """Bytes or None must be named, not passed to the tokenizer."""
    with pytest.raises(InputError, match=r"texts\[0\] must be a string, not bytes"):
        minilm.passages([b"bytes"])  # type: ignore[list-item]


def test_tokens_come_with_the_windows_of_the_same_pass(minilm: MiniLM) -> None:
    """A write embeds once, so what it stores must be what a plain embedding gives."""
    texts = ["Naïve plans, again!", "", "word " * 600, "What is it?"]
    first, empty, long, idle = minilm.tokens(texts)
    assert [found.tokens.shape for found in (first, empty, long, idle)] == [
        *((2, 64), (0, 64), (FIRST_PIECES, 64), (0, 64))
    ]
    for found, rows in zip((first, empty, long, idle), minilm.passages(texts), strict=True):
        assert np.abs(found.windows - rows).max() < SAME
        assert found.tokens.dtype == np.int8
    alone = minilm.tokens(texts[:1])[0].tokens.astype(int)
    assert np.abs(alone - first.tokens).max() <= 1


@pytest.mark.parametrize("text", ["Who feeds Anna's cat, naïvely?", "word " * 600, "", "who"])
def test_a_question_is_read_as_a_text_is(minilm: MiniLM, text: str) -> None:
    """Words of a question find only words that were made the same way."""
    asked, (stored,) = minilm.query_tokens(text), minilm.tokens([text])
    assert asked.tokens is not None
    assert np.abs(asked.tokens.astype(int) - stored.tokens).max(initial=0) <= 1
    assert np.abs(asked.vector - minilm.query(text)).max() < SAME


def test_each_token_is_its_own_words(minilm: MiniLM) -> None:
    """A token at another word's place would find what nobody asked for."""
    cat, anna = (minilm.tokens([word])[0].tokens[0].astype(int) for word in ("cat", "Anna"))
    found = minilm.tokens(["Who, then, feeds the cat of Anna?"])[0].tokens.astype(int)
    assert [int((found @ word).argmax()) for word in (cat, anna)] == [1, 2]


def test_tokens_of_one_word_are_alike_and_of_another_not(minilm: MiniLM) -> None:
    """A projection that does not fit the model would make every word like every other."""
    tea, coffee, harbour = (
        found.tokens[0].astype(float) / 127 for found in minilm.tokens(["tea", "coffee", "harbour"])
    )
    assert tea @ tea == pytest.approx(1, abs=0.03)
    assert tea @ coffee > 0.25 + tea @ harbour


def test_many_threads_share_one_model() -> None:
    """Agents' threads call one embedder at once, also while it loads and changes sessions."""
    shared = MiniLM(threads=2)
    expected = MiniLM(threads=1).passages(TEXTS)
    wrong: list[object] = []

    def work(offset: int) -> None:
        try:
            for n in range(len(TEXTS)):
                at = (n + offset) % len(TEXTS)
                if np.abs(shared.query(TEXTS[at]) - expected[at][0]).max() > SAME:
                    wrong.append(at)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert wrong == []


FORK = """
import os, signal, sys
from houkai.embed import MiniLM
model = MiniLM(threads=2)
first = model.query("before the fork")
model.passages(["text"] * 20)
runtime = model._loaded[1]
model._lock.acquire(), runtime._lock.acquire()
while runtime._turn.acquire(blocking=False):
    pass
child = os.fork()
if child == 0:
    signal.alarm(30)
    assert runtime._session is None
    same = abs(model.query("before the fork") - first).max() < 1e-5
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="there is no fork on Windows")
def test_a_forked_child_can_embed() -> None:
    """A child of multiprocessing would wait for ever for locks its parent's threads held."""
    subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK], check=True, timeout=60
    )
