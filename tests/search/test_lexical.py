"""The lexical channel: BM25 as defined, and every kind of word that people look for."""

from __future__ import annotations

import math
import re
from collections import Counter

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from houkai import MemoryStore
from houkai.search.in_file import InFile
from houkai.search.lexical import Lexicon
from houkai.search.query import Query, understand
from houkai.storage.eligible import Filter
from houkai.testing import HashingEmbedder
from tests.support import texts

EMBEDDER = HashingEmbedder(8)
K1, B = 1.2, 0.75
DATES = ["14", "novemb", "2023", "tuesdai"]
"""What the index holds of every memory's day, stemmed; the clock stands still."""


def search(connection: apsw.Connection, query: Query, where: Filter) -> dict[int, float]:
    """Return what the channel finds."""
    return Lexicon(InFile().at(connection), query, where).search()


def reference(documents: list[list[str]], query: list[str]) -> list[float]:
    """Return the BM25 of tokenised documents [Robertson & Walker, as in SQLite's fts5.html]."""
    whole = [[*tokens, *DATES] for tokens in documents]
    lengths = [len(tokens) + 1 for tokens in whole]  # the collection's mark is a token, too
    average = sum(lengths) / len(lengths)
    scores = []
    for tokens, length in zip(whole, lengths, strict=True):
        counts, total = Counter(tokens), 0.0
        for term in query:
            holding = sum(term in other for other in whole)
            idf = max(1e-6, math.log((len(whole) - holding + 0.5) / (holding + 0.5)))
            frequency = counts[term]
            norm = K1 * (1 - B + B * length / average)
            total += idf * frequency * (K1 + 1) / (frequency + norm)
        scores.append(total)
    return scores


CORPORA: dict[str, tuple[list[tuple[str, list[str]]], str, list[str]]] = {
    "plain": (
        [
            ("zebra crossing ahead", ["zebra", "cross", "ahead"]),
            ("zebra zebra zebra", ["zebra", "zebra", "zebra"]),
            ("a quick fox", ["a", "quick", "fox"]),
            ("lion and lamb", ["lion", "and", "lamb"]),
            ("nothing", ["noth"]),
            ("Zebra FOX", ["zebra", "fox"]),
        ],
        "zebra fox",
        ["zebra", "fox"],
    ),
    "stems": (
        [
            ("running runs run", ["run", "run", "run"]),
            ("connection connected", ["connect", "connect"]),
            ("walks", ["walk"]),
            ("sky", ["sky"]),
            ("sea", ["sea"]),
        ],
        "runs connecting",
        ["run", "connect"],
    ),
    "diacritics": (
        [
            ("café crème", ["cafe", "creme"]),
            ("cafe noir", ["cafe", "noir"]),
            ("Ångström", ["angstrom"]),
            ("tea", ["tea"]),
            ("milk", ["milk"]),
        ],
        "CAFÉ angstrom",
        ["cafe", "angstrom"],
    ),
    "pairs": (
        [
            ("記憶の保存", ["記憶の保存", "記憶", "憶の", "の保", "保存", "存"]),
            ("保存", ["保存", "保存", "存"]),
            ("天気", ["天気", "天気", "気"]),
            ("空", ["空", "空"]),
            ("海", ["海", "海"]),
        ],
        "記憶保存",
        ["記憶", "憶保", "保存"],
    ),
}


@pytest.mark.parametrize("name", list(CORPORA))
def test_scores_are_bm25(name: str, store: MemoryStore) -> None:
    """A wrong length or frequency would order the answers wrongly, and nobody would see why."""
    documents, query, terms = CORPORA[name]
    given, tokens = zip(*documents, strict=True)
    store.remember_many(given)
    wanted = dict(zip(given, reference(list(tokens), terms), strict=True))
    with store.read() as connection:
        found = search(connection, understand(query), store.where())
        by_pk: dict[int, str] = dict(
            connection.execute("select pk, text from memory").fetchall()  # type: ignore[arg-type]
        )
    scored = {by_pk[pk]: score for pk, score in found.items()}
    assert scored == pytest.approx({text: s for text, s in wanted.items() if s > 0}, rel=1e-6)
    assert list(found.values()) == sorted(found.values(), reverse=True)


FINDS: list[tuple[str, list[str], list[str]]] = [
    ("The Quetzalcoatlus deployment", ["quetzalcoatlus", "QUETZALCOATLUS", "deployments"],
     ["quetzal"]),
    ("parseHTTPResponse fails", ["http", "response", "parse", "parseHTTPResponse"], ["pars e"]),
    ("the max_batch_size setting", ["max_batch_size", "batch", "maxbatchsize", "max-batch-size"],
     ["maxbatch"]),
    ("see src/houkai/store.py", ["store.py", "houkai", "src/houkai/store.py"], ["storepy x"]),
    ("upgrade to v1.22.3 today", ["1.22.3", "v1.22.3", "1.22"], ["9.9.9"]),
    ("commit deadbeef42 broke it", ["deadbeef42", "DEADBEEF42"], ["c0ffee"]),
    ("mail ada@example.org", ["ada@example.org", "example.org"], ["nobody@nowhere.net"]),
    ("ｆｕｌｌｗｉｄｔｈ letters", ["fullwidth", "ｆｕｌｌｗｉｄｔｈ"], ["width"]),
    ("the ﬁle system", ["file"], ["le"]),
    ("naïve Zürich résumé", ["naive", "zurich", "resume", "RÉSUMÉ"], ["zur"]),
    ("日本語の記憶", ["日本語", "記憶", "日", "憶"], ["本記", "海"]),
    ("한국어 기억", ["한국", "기억"], ["영어"]),
    ("東京タワーで会った", ["東京", "タワー"], ["京都"]),
    ("don't panic", ["don't", "dont panic", "panic"], ["xyz"]),
    ("C++ and F# and .NET", ["c++", "net"], ["java"]),
    ("he said \"quoted words\"", ['"quoted words"', "said"], ["unquoted"]),
    ("ΑΛΦΑ βήτα Σίσυφος", ["αλφα", "βήτα", "ΣΊΣΥΦΟΣ"], ["γάμμα"]),
    ("Straße der Fußgänger", ["straße", "STRASSE", "strasse", "Fussgänger"], ["gasse"]),
    ("İstanbul ve ılık", ["istanbul", "İSTANBUL", "ılık"], ["ankara"]),
    ("Привет, мир", ["привет", "МИР"], ["пока"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "finding", "missing"), FINDS, ids=[row[0] for row in FINDS])
def test_words_of_every_kind_are_found(
    text: str, finding: list[str], missing: list[str], store: MemoryStore
) -> None:
    """Half of what people look up is no plain English word."""
    store.remember_many(["something else entirely", "and another thing"])
    store.remember(text)
    with store.read() as connection:
        for query, wanted in [*((q, True) for q in finding), *((q, False) for q in missing)]:
            found = search(connection, understand(query), store.where())
            held = [
                connection.execute("select text from memory where pk = ?", (pk,)).get
                for pk in found
            ]
            assert (text in held) is wanted, query


ALPHABETS = [
    (0x20, 0x7E), (0xC0, 0x24F), (0x388, 0x3FF), (0x400, 0x45F), (0x5D0, 0x5EA), (0x620, 0x64A),
    (0x3041, 0x30FE), (0x4E00, 0x4E40), (0xAC00, 0xAC40), (0xFB00, 0xFB06), (0xFF10, 0xFF5A),
]  # fmt: skip
letters = st.one_of(*[st.characters(min_codepoint=a, max_codepoint=b) for a, b in ALPHABETS])


@settings(max_examples=150)
@given(many=st.lists(st.text(letters, min_size=1, max_size=24), min_size=1, max_size=4))
def test_a_text_is_found_by_each_of_its_words(many: list[str]) -> None:
    """Whatever letters a word is made of, whoever types it again must find it."""
    with MemoryStore(":memory:", embedder=EMBEDDER) as store:
        ids = {m.id: m.text for m in store.remember_many([t for t in many if t.strip()])}
        with store.read() as connection:
            for id, text in ids.items():
                pk = connection.execute("select pk from memory where id = ?", (id,)).get
                for word in re.findall(r"[^\W_]+", text):
                    found = search(connection, understand(word), store.where())
                    assert pk in found, (text, word)


def test_tags_names_authors_and_dates_are_words_too(store: MemoryStore) -> None:
    """People remember who said it, what it was about, or when, and not its words."""
    store.remember("first", tags=["release-notes"], created_at="2021-05-17")
    store.remember("second", entities=["Grace Hopper"], created_at="2021-06-17")
    store.remember("third", author="linus", created_at="2021-07-17")
    for query, text in [("release notes", "first"), ("hopper", "second"), ("linus", "third"),
                        ("may 2021", "first"), ("june", "second")]:  # fmt: skip
        assert store.recall(query, 1, mode="hybrid", weights=None)[0].memory.text == text


def test_function_words_do_not_drown_the_rest(store: MemoryStore) -> None:
    """ "what is the" occurs everywhere and means nothing; alone, it is all there is."""
    store.remember("the capital of the country of the king")
    store.remember("zebra")
    assert understand("what is the zebra").match(None) == understand("zebra").match(None)
    assert texts(h.memory for h in store.recall("what is the zebra", 1)) == ["zebra"]
    assert understand("the of").terms


def test_the_words_of_a_collection_stay_its_own(store: MemoryStore) -> None:
    """The index is shared; what it finds must not be."""
    other = store.as_actor("lib")
    other.collection = "other"
    other.remember_many([f"zebra {n}" for n in range(30)])
    mine = store.remember("zebra of mine")
    with store.read() as connection:
        found = search(connection, understand("zebra scope1 scope2"), store.where())
        assert len(found) == 1
        everywhere = store.where(collection="*")
        assert len(search(connection, understand("zebra"), everywhere)) == 31
    assert [hit.memory.id for hit in store.recall("zebra")] == [mine.id]
