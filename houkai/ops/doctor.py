"""Examine a file for every damage that can be told, and rebuild what is derived.

A repair never touches a memory, a link or the journal: it makes anew what follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw

from houkai.embed import default
from houkai.embed.spec import BUNDLED, build_embedder
from houkai.errors import Busy, Corrupt, HoukaiError
from houkai.ops import meaning
from houkai.ops.looks import LOOKS, SALVAGE, Check
from houkai.storage import derived_vectors, files, migrate, reembedding, vectors
from houkai.storage.database import Database


def examine(path: Path, spec: str = BUNDLED, *, deep: bool = False) -> list[Check]:
    """Look at everything in a file and change nothing; what is found is never raised.

    With `deep` also compute anew what every text was turned into, which takes as long as it did.
    """
    checks: list[Check] = []
    try:
        if files.inspect(path) is files.Found.NOTHING:
            return [Check("file", True, "not made yet; the first `houkai remember` makes it")]
        database = Database(path)
    except HoukaiError as error:
        return [failed("file", error)]
    try:
        checks.append(_opened(database, path))
        checks.append(_schema(database))
        checks.extend(_looked_at(database, deep=deep))
        checks.append(_model(database, spec))
        if deep:
            checks.append(_meaning(database, spec))
    except HoukaiError as error:
        checks.append(failed("file", error))
    finally:
        database.close()
    return checks


def repair(path: Path, spec: str = BUNDLED, *, deep: bool = False) -> list[Check]:
    """Make anew every derived thing that is not well; return what is found afterwards.

    Nothing is changed in a file whose pages are damaged. Raises HoukaiError.
    """
    database = Database(path)
    try:
        with database.read(fresh=True) as connection:
            sound = LOOKS[0].check(connection).ok
        if sound:
            database.write(partial(_mend_all, deep=deep))
            wrong = _unlike_model(database, spec) if deep else None
            if wrong:
                database.write(partial(derived_vectors.drop_vectors, hashes=wrong))
    finally:
        database.close()
    return examine(path, spec, deep=deep)


def _mend_all(connection: apsw.Connection, *, deep: bool) -> None:
    for look in LOOKS:
        if look.mend is None or (look.deep and not deep):
            continue
        if not look.check(connection).ok:
            look.mend(connection)


def failed(name: str, error: HoukaiError) -> Check:
    """Return the check that an error stands for."""
    hint = SALVAGE if isinstance(error, Corrupt) else error.hint
    return Check(name, False, error.message, hint)


def _opened(database: Database, path: Path) -> Check:
    size = f"{path.stat().st_size:,} bytes"
    if database.read_only:
        return Check(
            "file", True, f"{size}, read-only", "Nothing can be remembered until it is writable."
        )
    return Check("file", True, f"{size}, can be written")


def _schema(database: Database) -> Check:
    with database.read() as connection:
        number = int(connection.pragma("user_version"))
    library = apsw.sqlite_lib_version()
    return Check("schema", number == migrate.head(), f"schema {number}, read by SQLite {library}")


def _model(database: Database, spec: str) -> Check:
    with database.read() as connection:
        model = vectors.current_model(connection)
        coming = reembedding.coming(connection)
    if model is None:
        return Check("model", True, "none chosen yet; the first memory chooses")
    found = f"vectors of {model.name}, {model.dim} dimensions"
    if coming is not None:
        found += f"; being changed over to {coming}"
    if meaning.fingerprint_of(build_embedder(spec), model.dim) == model.fingerprint:
        return Check("model", True, found, "" if coming is None else "Run: houkai reembed")
    return Check(
        "model",
        False,
        f"{found}; {spec} is chosen, so recall goes by words only",
        "Choose the file's model with HOUKAI_EMBEDDER, or run: houkai reembed",
    )


def _meaning(database: Database, spec: str) -> Check:
    """Embed every text again and compare, which finds what no other check can: a changed digit."""
    name = "meaning"
    try:
        wrong = _unlike_model(database, spec)
    except HoukaiError as error:
        return failed(name, error)
    if wrong is None:
        return Check(name, True, "not checked: only the bundled model is asked again")
    if not wrong:
        return Check(name, True, "every vector is what the model makes of its text")
    found = f"{len(wrong)} texts have vectors that the model does not make of them"
    return Check(name, False, found, "Run `houkai doctor --repair --deep`, then `houkai reembed`.")


def _unlike_model(database: Database, spec: str) -> list[bytes] | None:
    """Return the hashes of texts with wrong vectors; None when the file's model is not bundled."""
    embedder = default()
    with database.read() as connection:
        model = vectors.current_model(connection)
        if spec != BUNDLED or model is None or model.fingerprint != embedder.fingerprint:
            return None
        return derived_vectors.unlike_model(connection, model.pk, embedder.tokens)


def _looked_at(database: Database, *, deep: bool) -> Iterator[Check]:
    """Yield what each look finds; each fails for itself."""
    for look in LOOKS:
        if look.deep and not deep:
            continue
        writes = look.name in ("words", "past words")
        if writes and database.read_only:
            yield Check(look.name, True, "not checked, because the file is read-only")
            continue
        try:
            if writes:
                yield database.write(look.check)
            else:
                with database.read(fresh=True) as connection:
                    yield look.check(connection)
        except Busy:
            yield Check(look.name, True, "not checked, because another process was writing")
        except HoukaiError as error:
            yield failed(look.name, error)
        except Exception as error:  # noqa: BLE001 - what damage does to its reader is anybody's guess
            found = f"what is stored cannot be read ({type(error).__name__}: {error})"
            yield Check(look.name, False, found, SALVAGE)
