"""Examine a file for every damage that can be told, and rebuild what is derived.

A repair never touches a memory, a link or the journal: it makes anew what follows from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import apsw

from houkai.embed.spec import BUNDLED, build_embedder
from houkai.errors import Busy, Corrupt, HoukaiError
from houkai.ops import meaning
from houkai.storage import audit, derived, files, marks, migrate, reembedding, shape, vectors
from houkai.storage.database import Database

SALVAGE: Final = "Restore a backup, or copy what can be read: houkai salvage FILE NEW."
REPAIR: Final = "Run `houkai doctor --repair`; no memory is touched."
EXAMPLES: Final = 3


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


@dataclass(frozen=True)
class Look:
    """How one thing is looked at: what names its faults, what to say of none and of some.

    `mend` makes it anew where it is derived.
    """

    name: str
    faults: Callable[[apsw.Connection], list[str]]
    well: str
    ill: str
    hint: str = SALVAGE
    mend: Callable[[apsw.Connection], None] | None = None

    def check(self, connection: apsw.Connection) -> Check:
        """Look and say what was found. Raises apsw.Error."""
        faults = self.faults(connection)
        if not faults:
            return Check(self.name, True, self.well)
        more = f" and {len(faults) - EXAMPLES} more" if len(faults) > EXAMPLES else ""
        named = ", ".join(faults[:EXAMPLES])
        return Check(
            self.name,
            False,
            f"{self.ill}: {named}{more}",
            REPAIR if self.mend is not None else self.hint,
        )


LOOKS: Final = (
    Look("integrity", audit.broken_pages, "SQLite finds nothing wrong", "SQLite finds damage"),
    Look(
        "indexes",
        audit.broken_indexes,
        "every index has its rows",
        "indexes disagree with their tables",
        mend=audit.mend_indexes,
    ),
    Look(
        "tables",
        shape.missing,
        "every table, index and trigger of the schema is there",
        "missing or changed",
        mend=shape.mend,
    ),
    Look(
        "foreign objects",
        shape.foreign,
        "nothing is in the file that houkai did not make",
        "not made by houkai, and it could change what is written",
        "If you did not add it, export the memories into a new file.",
    ),
    Look(
        "references",
        audit.dangling,
        "every row points at rows that are there",
        "rows point at rows that are gone",
    ),
    Look(
        "journal",
        audit.broken_chain,
        "the hash chain is whole",
        "the hash chain breaks: recorded history was changed",
        "Compare with a backup to see what was changed.",
    ),
    Look(
        "memories",
        audit.unlike_journal,
        "every memory and link is as the journal last recorded it",
        "not as the journal last recorded",
        "`houkai history ID` shows what was recorded; `houkai edit` puts it right.",
    ),
    Look(
        "ends",
        marks.wrong_ends,
        "every recorded image knows its end",
        "images with a wrong end",
        mend=marks.mend_ends,
    ),
    Look(
        "undo marks",
        marks.wrong_undos,
        "what was undone is marked so",
        "wrongly marked as undone or standing",
        mend=marks.mend_undos,
    ),
    Look(
        "origins",
        marks.wrong_origins,
        "every memory knows the operation that changed it last",
        "memories with a wrong last operation",
        mend=marks.mend_origins,
    ),
    Look(
        "columns",
        derived.wrong_columns,
        "hashes and index words are those of the texts",
        "hashes or index words are not those of the text",
        mend=derived.mend_columns,
    ),
    Look(
        "versions",
        derived.wrong_versions,
        "replaced versions are as the journal has them",
        "replaced versions that recall as of a moment would get wrong",
        mend=derived.mend_versions,
    ),
    Look(
        "words",
        partial(derived.wrong_index, index="memory_fts"),
        "the word index agrees with the texts",
        "the word index disagrees with the texts",
        mend=partial(derived.mend_index, index="memory_fts"),
    ),
    Look(
        "past words",
        partial(derived.wrong_index, index="past_fts"),
        "the word index of replaced versions agrees with their texts",
        "the word index of replaced versions disagrees with their texts",
        mend=partial(derived.mend_index, index="past_fts"),
    ),
    Look(
        "vector values",
        derived.wrong_vectors,
        "every vector is a unit vector of its model's width",
        "vectors that are none",
        mend=derived.mend_vectors,
    ),
    Look(
        "signs",
        derived.wrong_signs,
        "every sketch is made of its vector's signs",
        "sketches that are not those of their vectors",
        mend=derived.mend_signs,
    ),
    Look(
        "sketches",
        derived.wrong_sketches,
        "the search table agrees with the vectors",
        "the search table disagrees with the vectors",
        mend=derived.mend_sketches,
    ),
    Look(
        "vectors",
        audit.unembedded,
        "every memory has its vectors",
        "without a vector, so that only their words are found",
        "Run `houkai reembed`.",
    ),
)
"""In the order in which they are mended: each relies on those before it."""


def examine(path: Path, spec: str = BUNDLED) -> list[Check]:
    """Look at everything in a file and change nothing. What is found is never raised."""
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
        checks.extend(_looked_at(database))
        checks.append(_model(database, spec))
    except HoukaiError as error:
        checks.append(failed("file", error))
    finally:
        database.close()
    return checks


def repair(path: Path) -> list[Check]:
    """Make anew every derived thing that is not well; return what is found afterwards.

    Nothing is changed in a file whose pages are damaged. Raises HoukaiError.
    """
    database = Database(path)
    try:
        with database.read(fresh=True) as connection:
            sound = LOOKS[0].check(connection).ok
        if sound:
            database.write(_mend_all)
    finally:
        database.close()
    return examine(path)


def _mend_all(connection: apsw.Connection) -> None:
    for look in LOOKS:
        if look.mend is not None and not look.check(connection).ok:
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


def _looked_at(database: Database) -> Iterator[Check]:
    """Yield what each look finds; each fails for itself."""
    for look in LOOKS:
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
