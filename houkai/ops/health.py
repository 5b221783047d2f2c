"""Tell how the store is doing: what it holds, and whether all of it agrees."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import apsw

import houkai
from houkai.embed import lockfile, minilm
from houkai.errors import HoukaiError
from houkai.handle import Store
from houkai.ops.doctor import examine, failed
from houkai.ops.listing import NAMED, tell_of_collections
from houkai.ops.looks import Check
from houkai.settings import KEYS, UserSettings
from houkai.storage import audit, files, migrate, reembedding, vectors
from houkai.storage.database import MEMORY
from houkai.storage.rows import collection_names


def stats(store: Store) -> dict[str, Any]:
    """Return counts of the collection (`count`, `by_type`) and of the whole file (all others).

    `collection_names` are those of the first twenty collections.
    """
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
        unembedded = audit.count_unembedded(connection)
        names = collection_names(connection, NAMED)
    if not by_type:
        tell_of_collections(store, store.collection)
    return {
        "count": sum(by_type.values()),
        "path": store.db.name,
        "collection": store.collection,
        "by_type": by_type,
        "links": links,
        "operations": operations,
        "collections": collections,
        "collection_names": names,
        "bytes": pages * size,
        "model": model.name if model else None,
        "unembedded": unembedded,
        "reembedding": coming,
    }


def versions() -> dict[str, str]:
    """Return the versions of houkai and of what it stands on."""
    return {
        "houkai": houkai.__version__,
        "python": ".".join(map(str, sys.version_info[:3])),
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "schema": str(migrate.head()),
    }


def doctor(place: UserSettings, *, deep: bool = False) -> list[Check]:
    """Check the file that the settings name, and the model, without changing either.

    A file that is not there is not made. It never raises for what it finds: that is a check.
    With `deep` every text is embedded again and compared.
    """
    checks = [_settings(place)]
    path = None if place.db.value == MEMORY else Path(place.db.value).expanduser()
    if path is not None:
        checks.extend([_beside(path)] if path.is_file() else [])
        checks.extend(examine(path, place.embedder.value, deep=deep))
    checks.append(_model_files())
    return checks


def _settings(place: UserSettings) -> Check:
    if place.unknown:
        return Check(
            "settings",
            False,
            f"{place.config_path} sets what nothing reads: {', '.join(place.unknown)}",
            f"It may set: {', '.join(KEYS)}.",
        )
    config = "no config file" if not place.config else str(place.config_path)
    return Check(
        "settings",
        True,
        f"{place.db.value} (from {place.db.origin}), collection {place.collection.value}"
        f" (from {place.collection.origin}); {config}",
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


def _model_files() -> Check:
    name = "model files"
    try:
        model = lockfile.locked(minilm.MODEL)
        lockfile.verify(model, model.folder, again=True)
    except HoukaiError as error:
        return failed(name, error)
    size = sum(file.bytes for file in model.files)
    return Check(name, True, f"{model.name}: {len(model.files)} files, {size:,} bytes, as pinned")
