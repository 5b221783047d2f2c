"""The things that are looked at in a file: what names their faults, and what makes them anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

import apsw

from houkai.storage import audit, derived, derived_vectors, marks, shape

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

    `mend` makes it anew where it is derived. One that is `deep` computes anew from every text.
    """

    name: str
    faults: Callable[[apsw.Connection], list[str]]
    well: str
    ill: str
    hint: str = SALVAGE
    mend: Callable[[apsw.Connection], None] | None = None
    deep: bool = False

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
        "If you did not add it, copy the memories into a new file: houkai salvage FILE NEW.",
    ),
    Look(
        "meta",
        audit.missing_keys,
        "the file says all of itself that it should",
        "the file does not say its",
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
        "counterparts",
        marks.wrong_counterparts,
        "every change of a link knows both its ends",
        "changes of links with a wrong other end",
        mend=marks.mend_counterparts,
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
        "version words",
        derived.wrong_version_words,
        "hashes and index words of replaced versions are those of their texts",
        "hashes or index words of a replaced version are not those of its text",
        mend=derived.mend_version_words,
        deep=True,
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
        derived_vectors.wrong_vectors,
        "every vector is a unit vector of its model's width",
        "vectors that are none",
        mend=derived_vectors.mend_vectors,
    ),
    Look(
        "signs",
        derived_vectors.wrong_signs,
        "every sketch is made of its vector's signs",
        "sketches that are not those of their vectors",
        mend=derived_vectors.mend_signs,
    ),
    Look(
        "sketches",
        derived_vectors.wrong_sketches,
        "the search table agrees with the vectors",
        "the search table disagrees with the vectors",
        mend=derived_vectors.mend_sketches,
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
