"""What was known then, by meaning, against a comparison with every vector."""

from __future__ import annotations

import numpy as np

from houkai.search import past, sketches
from houkai.search.in_file import InFile
from tests.conftest import Opener
from tests.search.test_dense import EMBEDDER, fill


def test_one_long_text_does_not_hide_the_others_of_its_time(open_store: Opener) -> None:
    """Its windows alone would fill the circle around a question that is about it."""
    store = open_store(embedder=EMBEDDER)
    store.remember("\n".join(f"topic1 long {part}" for part in range(1_500)))
    fill(store, 700)
    known_by = store.journal(1)[0].operation
    store.nuke()
    vector = EMBEDDER.query("topic1 long")
    with store.read() as connection:
        view = InFile().at(connection)
        found = past.search(view, sketches.Probe(vector), store.where(known_by=known_by))
        assert len(found.pk) == 400
        texts = connection.execute("select pk, text from past").fetchall()
    near = {
        -pk: max(
            float(EMBEDDER.query(part).astype("<f2").astype("f4") @ vector)
            for part in text.split("\n")
        )
        for pk, text in texts
    }
    best = sorted(near, key=lambda pk: -near[pk])[:20]
    assert len(set(best) & set(found.pk[:20].tolist())) >= 19
    assert np.allclose(found.cosine, [near[pk] for pk in found.pk.tolist()], atol=1e-5)
