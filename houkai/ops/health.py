"""Tell how the store is doing: what it holds, and whether all of it agrees."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import apsw

import houkai
from houkai.embed import lockfile, minilm
from houkai.embed.spec import build_embedder
from houkai.errors import Busy, Corrupt, HoukaiError
from houkai.handle import Store
from houkai.ops import meaning
from houkai.settings import UserSettings
from houkai.storage import files, migrate, reembedding, vectors
from houkai.storage.database import MEMORY, Database


def stats(store: Store) -> dict[str, Any]:
    """Return counts, the file's path and size, and the model of its vectors."""
    with store.read() as connection:
        scope = "(select pk from collection where name = ?)"
        name = (store.collection,)
        rows: list[tuple[Any, ...]] = connection.execute(
            f"select type, count(*) from memory where collection = {scope} group by type", name
        ).fetchall()
        by_type = dict(rows)
        model = vectors.current_model(connection)
        coming = reembedding.coming(connection)
        links, operations, collections = connection.execute(
            """select (select count(*) from link), (select count(*) from operation),
                      (select count(*) from collection)"""
        ).get
        pages, size = connection.pragma("page_count"), connection.pragma("page_size")
        unembedded = _unembedded(connection)
    return {
        "count": sum(by_type.values()),
        "path": store.db.name,
        "collection": store.collection,
        "by_type": by_type,
        "links": links,
        "operations": operations,
        "collections": collections,
        "bytes": pages * size,
        "model": model.name if model else None,
        "unembedded": unembedded,
        "reembedding": coming,
    }


def _unembedded(connection: apsw.Connection) -> int:
    number: int = connection.execute(
        """select count(*) from memory m where not exists (select 1 from embedding e
           where e.text_hash = m.text_hash
             and e.model = (select value from meta where key = 'model'))"""
    ).get
    return number


def versions() -> dict[str, str]:
    """Return the versions of houkai and of what it stands on."""
    return {
        "houkai": houkai.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "schema": str(migrate.head()),
    }


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: whether it is well, what was found, and what to do if not."""

    name: str
    ok: bool
    found: str
    hint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the check as plain JSON types."""
        return asdict(self)


def doctor(place: UserSettings) -> list[Check]:
    """Check the file that the settings name, and the model, without changing either.

    A file that is not there is not made. It never raises for what it finds: that is a check.
    """
    checks = [_settings(place)]
    path = None if place.db.value == MEMORY else Path(place.db.value).expanduser()
    if path is not None:
        checks.append(_beside(path))
        checks.extend(_file(path, place.embedder.value))
    checks.append(_model_files())
    return checks


def _settings(place: UserSettings) -> Check:
    config = "no config file" if not place.config else str(place.config_path)
    return Check(
        "settings",
        True,
        f"{place.db.value} (from {place.db.origin}), collection {place.collection.value}"
        f" (from {place.collection.origin}), embedder {place.embedder.value}"
        f" (from {place.embedder.origin}); {config}",
    )


def _beside(path: Path) -> Check:
    found = [other for other in files.siblings(path) if other.exists()]
    if not found:
        return Check("copy", True, "nothing lies beside the file: a plain copy of it is whole")
    names = ", ".join(f"{other.name} ({other.stat().st_size:,} bytes)" for other in found)
    return Check(
        "copy",
        True,
        f"in use, or left by a crash: {names}; a plain copy of the file alone may lack changes",
        "Close every program that uses it before you copy it.",
    )


def _file(path: Path, spec: str) -> Iterator[Check]:
    try:
        if files.inspect(path) is files.Found.NOTHING:
            yield Check("file", True, "not made yet; the first `houkai remember` makes it")
            return
        database = Database(path)
    except HoukaiError as error:
        yield _failed("file", error)
        return
    try:
        yield _opened(database, path)
        yield from _inside(database, spec)
    finally:
        database.close()


def _opened(database: Database, path: Path) -> Check:
    size = f"{path.stat().st_size:,} bytes"
    if database.read_only:
        return Check(
            "file", True, f"{size}, read-only", "Nothing can be remembered until it is writable."
        )
    return Check("file", True, f"{size}, can be written")


def _inside(database: Database, spec: str) -> Iterator[Check]:
    """Yield what is found in an open file; each look fails for itself."""
    looks: dict[str, Callable[[str, apsw.Connection], Check]] = {
        "schema": _schema,
        "integrity": _integrity,
        "vectors": _vectors,
        "sketches": _sketches,
        "model": partial(_model, spec=spec),
    }
    for name, look in looks.items():
        try:
            with database.read() as connection:
                yield look(name, connection)
        except HoukaiError as error:
            yield _failed(name, error)
    yield _words(database)


def _failed(name: str, error: HoukaiError) -> Check:
    return Check(name, False, error.message, error.hint)


def _schema(name: str, connection: apsw.Connection) -> Check:
    number = int(connection.pragma("user_version"))
    library = apsw.sqlite_lib_version()
    return Check(name, number == migrate.head(), f"schema {number}, read by SQLite {library}")


def _integrity(name: str, connection: apsw.Connection) -> Check:
    found = [row[0] for row in connection.execute("pragma quick_check(3)")]
    foreign = connection.execute("select count(*) from pragma_foreign_key_check").get
    if found != ["ok"]:
        return Check(name, False, f"quick_check: {'; '.join(found)}", "Restore a backup.")
    if foreign:
        return Check(name, False, f"{foreign} rows point at rows that are gone", Corrupt.hint)
    return Check(name, True, "quick_check finds nothing wrong")


def _vectors(name: str, connection: apsw.Connection) -> Check:
    total = connection.execute("select count(*) from memory").get
    lacking = _unembedded(connection)
    if lacking:
        return Check(
            name,
            False,
            f"{lacking} of {total} memories have no vector, so only their words are found",
            "Run: houkai reembed",
        )
    return Check(name, True, f"each of {total} memories has its vectors")


def _sketches(name: str, connection: apsw.Connection) -> Check:
    if not vectors.is_filled(connection):
        return Check(
            name,
            False,
            "the search table is only partly filled, so a single recall reads every vector",
            "Run: houkai reembed",
        )
    missing, extra = connection.execute(
        """with wanted(id) as (
             select m.pk * 8192 + e.window from memory m
             join embedding e on e.text_hash = m.text_hash
             where e.model = (select value from meta where key = 'model')),
           there(id) as (select rowid from memory_vec)
           select (select count(*) from (select id from wanted except select id from there)),
                  (select count(*) from (select id from there except select id from wanted))"""
    ).get
    if missing or extra:
        return Check(
            name,
            False,
            f"the search table lacks {missing} sketches and has {extra} too many",
            "Only recall in large stores suffers; no memory is lost.",
        )
    return Check(name, True, "the search table agrees with the vectors")


def _model(name: str, connection: apsw.Connection, spec: str) -> Check:
    model = vectors.current_model(connection)
    if model is None:
        return Check(name, True, "none chosen yet; the first memory chooses")
    found = f"vectors of {model.name}, {model.dim} dimensions"
    coming = reembedding.coming(connection)
    if coming is not None:
        found += f"; being changed over to {coming}"
    if meaning.fingerprint_of(build_embedder(spec), model.dim) == model.fingerprint:
        return Check(name, True, found, "" if coming is None else "Run: houkai reembed")
    return Check(
        name,
        False,
        f"{found}; {spec} is chosen, so recall goes by words only",
        "Choose the file's model with HOUKAI_EMBEDDER, or run: houkai reembed",
    )


def _words(database: Database) -> Check:
    """Let FTS5 compare its index with the texts; that needs the write connection."""
    name = "words"
    if database.read_only:
        return Check(name, True, "not checked, because the file is read-only")
    try:
        database.write(_compare_words)
    except Busy:
        return Check(name, True, "not checked, because another process was writing")
    except HoukaiError as error:
        return Check(name, False, f"the word index disagrees with the texts ({error.message})")
    return Check(name, True, "the word index agrees with the texts")


def _compare_words(connection: apsw.Connection) -> None:
    connection.execute("insert into memory_fts(memory_fts, rank) values ('integrity-check', 1)")


def _model_files() -> Check:
    name = "model files"
    try:
        model = lockfile.locked(minilm.MODEL)
        lockfile.verify(model, model.folder, again=True)
    except HoukaiError as error:
        return _failed(name, error)
    size = sum(file.bytes for file in model.files)
    return Check(name, True, f"{model.name}: {len(model.files)} files, {size:,} bytes, as pinned")
