"""Everything a file stores twice, compared: what must agree after any history of writes.

The journal is replayed in plain Python from its images and held against the tables; the derived
indexes are held against what they were derived from.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import apsw

from houkai import MemoryStore
from houkai.storage import indexing
from houkai.storage.chain import first_break
from houkai.storage.rows import KINDS

FOREVER = 2**63 - 1
Rows = list[tuple[Any, ...]]


def disagreements(store: MemoryStore) -> list[str]:
    """Return a sentence for each thing in an open store's file that does not fit another."""
    # FTS5's own check cries wolf on a connection that has read an earlier state of a file.
    with store.db.read(fresh=store.db.path is not None) as connection:
        found = [*_of_the_file(connection), *_of_the_journal(connection), *_of_tables(connection)]
        found += [*_of_past(connection), *_of_vectors(connection)]
    if not store.db.read_only:
        found += store.db.write(lambda writer: list(_of_words(writer)))
    return found


def rows(connection: apsw.Connection, sql: str) -> Rows:
    """Return all rows of a query."""
    found: Rows = connection.execute(sql).fetchall()
    return found


def _of_the_file(connection: apsw.Connection) -> Iterator[str]:
    verdict = connection.execute("pragma integrity_check").get
    if verdict != "ok":
        yield f"integrity_check says {verdict}"
    for row in rows(connection, "pragma foreign_key_check"):
        yield f"a foreign key points nowhere: {row}"


def _of_the_journal(connection: apsw.Connection) -> Iterator[str]:
    broken = first_break(connection)
    if broken is not None:
        yield f"the hash chain breaks at operation {broken}"
    times = rows(connection, "select seq, at from operation order by seq")
    for (seq, at), (following, later) in pairwise(times):
        if later <= at:
            yield f"operation {following} is not later than {seq}"
    empty = """select seq from operation o where undoes is null and op not in ('undo', 'redo')
      and coalesce(meta ->> '$.images', 1) <> 0 and op <> 'prune'
      and o.seq > coalesce((select value from meta where key = 'pruned_seq'), 0)
      and not exists (select 1 from change c where c.operation = o.seq)"""
    for (seq,) in rows(connection, empty):
        yield f"operation {seq} changed nothing"
    by_key: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for kind, key, operation, until in rows(
        connection, "select kind, key, operation, until from change order by operation"
    ):
        by_key.setdefault((kind, key), []).append((operation, until))
    for (kind, key), spans in by_key.items():
        starts = [operation for operation, _ in spans[1:]] + [FOREVER]
        if starts != [until for _, until in spans]:
            yield f"the versions of {kind} {key} leave gaps or overlap: {spans}"


def _of_tables(connection: apsw.Connection) -> Iterator[str]:
    """Replay the journal and compare each row it leaves with the row that is there."""
    replayed: dict[tuple[str, str], Any] = {}
    latest: dict[str, int] = {}
    for kind, key, operation, after in rows(
        connection, "select kind, key, operation, after from change order by operation, pk"
    ):
        replayed[kind, key] = None if after is None else apsw.jsonb_decode(after)
        if kind == "memory":
            latest[key] = operation
    present = {("memory", id) for (id,) in rows(connection, "select id from memory")}
    present |= {
        ("link", f"{src}|{rel}|{dst}")
        for src, rel, dst in rows(
            connection,
            """select s.id, l.rel, d.id from link l join memory s on s.pk = l.src
               join memory d on d.pk = l.dst""",
        )
    }
    for kind, key in present | replayed.keys():
        stored = KINDS[kind].load(connection, key)
        if stored != replayed.get((kind, key)):
            told = replayed.get((kind, key), "nothing")
            yield f"{kind} {key} is {stored}, but the journal says {told}"
    for id, operation in rows(connection, "select id, operation from memory"):
        if latest.get(id) != operation:
            yield f"memory {id} says operation {operation}, the journal {latest.get(id)}"


def _of_past(connection: apsw.Connection) -> Iterator[str]:
    """Compare the searchable past versions with the images that operations replaced."""
    kept = {
        (id, operation, until): (text, importance, tags)
        for id, operation, until, text, importance, tags in rows(
            connection,
            "select id, operation, until, text, importance, tags from past",
        )
    }
    told = {
        (key, operation, until): (image["text"], image["importance"], image.get("tags", []))
        for key, operation, until, after in rows(
            connection,
            f"""select key, operation, until, after from change
                where kind = 'memory' and after is not null and until < {FOREVER}""",
        )
        for image in [apsw.jsonb_decode(after)]
    }
    for version in kept.keys() ^ told.keys():
        yield f"version {version} is only in {'past' if version in kept else 'the journal'}"
    for version in kept.keys() & told.keys():
        text, importance, tags = kept[version]
        wanted = told[version]
        if (text, importance) != wanted[:2] or sorted(json.loads(tags)) != sorted(wanted[2]):
            yield f"version {version} is kept as {kept[version]}, not {wanted}"


def _of_vectors(connection: apsw.Connection) -> Iterator[str]:
    model = connection.execute("select value from meta where key = 'model'").get
    wanted = rows(
        connection,
        """select m.pk * 8192 + e.window, m.collection, e.sketch from memory m
           join embedding e on e.text_hash = m.text_hash
           where e.model = (select value from meta where key = 'model') order by 1""",
    )
    indexed = rows(connection, "select rowid, collection, sketch from memory_vec order by 1")
    later = indexing.deferred(connection)
    wanted = [row for row in wanted if later is None or row[0] < later * 8192 or row in indexed]
    if wanted != indexed:
        yield f"{len(indexed)} sketches are indexed where {len(wanted)} vectors are live"
    loose = """select t.embedding from token t join embedding e on e.pk = t.embedding
      where e.window <> 0 or t.count < 0 or length(t.vectors) <> t.count * coalesce(
        (select length(vectors) / count from token where count > 0), 0)"""
    for (pk,) in rows(connection, loose):
        yield f"the tokens of vector {pk} are no vectors of a first window"
    halves = """select e.pk from embedding e where e.window = 0
      and e.model in (select model from embedding where pk in (select embedding from token))
      and not exists (select 1 from token where embedding = e.pk)"""
    for (pk,) in rows(connection, halves):
        yield f"vector {pk} has no tokens, though its model gives them"
    bare = """select id from memory m where not exists (select 1 from embedding e
      where e.text_hash = m.text_hash)"""
    for (id,) in rows(connection, bare) if model else []:
        yield f"memory {id} has no vector"


def _of_words(connection: apsw.Connection) -> Iterator[str]:
    for index in ("memory_fts", "past_fts"):
        try:
            connection.execute(f"insert into {index}({index}, rank) values ('integrity-check', 1)")
        except apsw.CorruptError:
            yield f"{index} does not hold the words of its table"
