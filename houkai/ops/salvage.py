"""Copy what can be read of a damaged file into a new one, and tell what could not be read."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw

from houkai import clock as clocks
from houkai import ids
from houkai.errors import HoukaiError, InputError, StorageError
from houkai.storage import connection as sqlite
from houkai.storage import rows, shape, vectors
from houkai.storage.database import Database
from houkai.storage.journal import Act, Tx, recorded
from houkai.storage.pages import Pages
from houkai.storage.remains import Remains, ends_of, is_memory
from houkai.storage.rows import Image
from houkai.storage.vectors import Encoded

T = TypeVar("T")
BATCH: Final = 256


@dataclass
class Salvaged:
    """What was copied out of a damaged file, and what is known to be lost."""

    source: str
    target: str
    memories: int = 0
    from_journal: int = 0
    """Memories whose own row could not be read, so that the journal stood in."""
    untagged: list[str] = field(default_factory=list)
    """Ids of memories whose tags and entities could not be told, or are told in two ways."""
    links: int = 0
    trashed: int = 0
    vectors: int = 0
    doubtful: list[str] = field(default_factory=list)
    """Ids of memories that come as they once were, edited later or forgotten, or that none had."""
    lost: list[str] = field(default_factory=list)
    """Ids of memories of which nothing but the id could be read."""
    complaint: str = ""
    """What SQLite could not read; "" when it could read everything that was asked for."""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON types."""
        return asdict(self)


@dataclass
class _Found:
    """What a file held, sorted out and ready to be written."""

    memories: dict[str, Image] = field(default_factory=dict)
    links: dict[str, Image] = field(default_factory=dict)
    trash: dict[str, Image] = field(default_factory=dict)


def salvage(source: Path, target: Path) -> Salvaged:
    """Copy what can be read of a file, damaged or not, into a new file; the source is only read.

    Memories, links, the trash and vectors are copied by a journaled operation; the history before
    it is not. Raises InputError when the target is there or the source is not, StorageError when
    nothing can be read.
    """
    if not source.is_file():
        raise InputError(f"{source} is no file to salvage.")
    if target.exists():
        raise InputError(f"{target} is there already; salvage writes a new file only.")
    report = Salvaged(str(source), str(target))
    read = Remains()
    read.take(shape.columns("memory"), Pages(source).rows())
    found = _sorted_out(read, report, source, target)
    if not found.memories and not found.trash:
        raise StorageError(
            f"Nothing that looks like a memory can be read in {source}.", hint="Restore a backup."
        )
    database = Database(target)
    try:
        _write(database, found, read, report)
    except BaseException:
        database.close()
        target.unlink()
        raise
    database.close()
    return report


def _sorted_out(read: Remains, report: Salvaged, source: Path, target: Path) -> _Found:
    found = _Found()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="salvage-") as folder:
        copy = Path(folder) / "copy.db"
        for suffix in ("", "-wal"):
            if (part := Path(f"{source}{suffix}")).exists():
                shutil.copyfile(part, f"{copy}{suffix}")
        asked = _Asked(copy)
        known = asked.ids()
        for id, memory in read.memories().items():
            if not memory.stands and not asked.complaint and id not in known:
                continue  # its last change cannot be read, and was that it was forgotten
            named = asked.names(read.rows[id][1]) if id in read.rows else _named(memory.image)
            if memory.from_row:
                memory.image.update(named or {})
            found.memories[id] = memory.image
            report.from_journal += id not in read.rows
            # Nothing tells which of two readable accounts is the damaged one.
            told = named == _named(memory.image) or not (named or memory.from_row)
            report.untagged += [] if told else [id]
            there = id in read.rows or id in known or asked.complaint
            report.doubtful += [] if memory.stands and there else [id]
        found.trash = _whole({**read.others("trash"), **asked.trash()})
        links = {**asked.links(), **read.others("link")}
        report.complaint = asked.complaint
        asked.close()
    _let_show(found.memories)
    report.lost = sorted(known - found.memories.keys() - found.trash.keys())
    found.links = {
        key: image
        for key, image in links.items()
        if (ends := ends_of(key)) and found.memories.keys() >= set(ends)
    }
    return found


def _named(image: Image) -> Image:
    """Return the tags and entities that an image holds."""
    return {field: image[field] for _, field in rows.NAMES if field in image}


def _let_show(memories: dict[str, Image]) -> None:
    """Bring back into view what was hidden by a memory that is lost."""
    for image in memories.values():
        if image.get("superseded_by") not in (None, *memories):
            image.pop("superseded_by")
            image.pop("superseded_at", None)


def _whole(trash: dict[str, Image]) -> dict[str, Image]:
    return {
        id: image
        for id, image in trash.items()
        if isinstance(image.get("memory"), dict)
        and is_memory(image["memory"])
        and {"collection", "deleted_at", "actor"} <= image.keys()
    }


class _Asked:
    """A copy of the file as SQLite reads it, for what a row alone does not tell."""

    def __init__(self, copy: Path) -> None:
        self.complaint = ""
        self._connection: apsw.Connection | None = None
        try:
            self._connection = sqlite.connect(sqlite.uri(copy))
        except HoukaiError as error:
            self.complaint = error.message

    def _rows(self, sql: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield rows until SQLite meets damage, which is noted."""
        if self._connection is None:
            return
        try:
            yield from self._connection.execute(sql, values)
        except (apsw.Error, UnicodeDecodeError) as error:
            self.complaint = self.complaint or str(error)

    def names(self, pk: int) -> Image | None:
        """Return the tags and entities of a memory, None when they cannot be told."""
        before, self.complaint = self.complaint, ""
        try:
            named = {
                field: [
                    name
                    for (name,) in self._rows(
                        f"select name from {table} where memory = ? order by ordinal", (pk,)
                    )
                ]
                for table, field in rows.NAMES
            }
            return None if self.complaint or self._connection is None else rows.trim(named)
        finally:
            self.complaint = before or self.complaint

    def links(self) -> dict[str, Image]:
        """Return the links, of which some may never have been recorded."""
        return {
            rows.link_key(src, rel, dst): {"created_at": at}
            for src, rel, dst, at in self._rows(
                """select s.id, l.rel, d.id, l.created_at from link l
                   join memory s on s.pk = l.src join memory d on d.pk = l.dst"""
            )
        }

    def trash(self) -> dict[str, Image]:
        """Return what was put aside, of which the record may be lost."""
        found = {}
        for id, collection, deleted_at, actor, body in self._rows(
            "select id, collection, deleted_at, actor, body from trash"
        ):
            head = {"collection": collection, "deleted_at": deleted_at, "actor": actor}
            with contextlib.suppress(ValueError, TypeError):
                found[id] = {**head, **apsw.jsonb_decode(body)}
        return found

    def ids(self) -> set[str]:
        """Return the ids of all memories that the file had, as far as its index tells."""
        return {id for (id,) in self._rows("select id from memory order by id")}

    def close(self) -> None:
        """Let go of the copy."""
        if self._connection is not None:
            sqlite.shut(self._connection)


def _write(database: Database, found: _Found, read: Remains, report: Salvaged) -> None:
    act = Act("salvage", "salvage", batch=ids.new(), meta={"source": Path(report.source).name})

    def enter(tx: Tx, kind: str, part: Sequence[tuple[str, Image]]) -> int:
        kept = _keep_vectors(tx.connection, read, part) if kind == "memory" else 0
        for key, image in part:
            tx.put(kind, key, image)
        return kept

    by_age = sorted(found.memories.items(), key=lambda pair: pair[1]["created_at"])
    for kind, images in (("memory", by_age), ("link", found.links.items()),
                         ("trash", found.trash.items())):  # fmt: skip
        for part in _parts(list(images)):
            work = partial(enter, kind=kind, part=part)
            report.vectors += database.write(recorded(act, clocks.now, work))
    report.memories, report.links = len(found.memories), len(found.links)
    report.trashed = len(found.trash)


def _parts(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def _keep_vectors(
    connection: apsw.Connection, read: Remains, part: Sequence[tuple[str, Image]]
) -> int:
    """Store the vectors that were read of these texts; return of how many texts."""
    model = read.model()
    if model is None:
        return 0
    name, dim, fingerprint = read.models[model]
    present = vectors.current_model(connection)
    pk = (present or vectors.adopt_model(connection, name, dim, fingerprint)).pk
    kept = 0
    for _, image in part:
        hash = rows.derived_columns(image)["text_hash"]
        windows = read.vectors.get((model, hash), {})
        pairs = [windows[at] for at in sorted(windows)]
        whole = sorted(windows) == list(range(len(windows)))
        if pairs and whole and all(len(vector) == 2 * dim for vector, _ in pairs):
            vectors.keep(connection, [Encoded(hash, pairs, read.tokens.get((model, hash)))], pk)
            kept += 1
    return kept
