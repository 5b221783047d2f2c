"""Undo and redo by operation, memory, actor, session and time; and what an undo would do."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import apsw

from houkai import clock, params
from houkai.errors import Diverged, InputError, NotFound
from houkai.handle import Store
from houkai.model import Difference, JournalEntry, UndoPreview
from houkai.ops.history import resolve_operation
from houkai.ops.reversal import Plan, carry_out, is_undo, plan
from houkai.rules import clean
from houkai.storage import history as log
from houkai.storage.journal import Tx, recorded_series
from houkai.storage.rows import Image


class Done(NamedTuple):
    """An operation that was undone, and the undo; both by their numbers."""

    seq: int
    by: int


Choose = Callable[[apsw.Connection, Sequence[Done]], int | None]
"""Names the next operation to undo, after those that are done; None at the end."""
_STANDING: Final = "o.undone_by is null and o.op not in ('undo', 'redo')"
_WITHIN: Final = """o.undone_by is null and o.at >= :since and (:below is null or o.seq < :below)
  and not exists (select 1 from operation u where u.seq = o.undoes and u.at >= :since
    and (:actor is null or u.actor = :actor) and (:session is null or u.session = :session))"""
"""Standing since a moment, but for undos of something that is itself to be undone."""


def undo(store: Store, operation: JournalEntry | str | int) -> JournalEntry:
    """Undo one operation as a whole and return the entry of the undo.

    Takes an entry, an operation's number or its id. Raises NotFound, and Diverged when a row
    has changed since; then nothing is changed.
    """

    def work(tx: Tx) -> int:
        seq = resolve_operation(store, tx.connection, operation)
        return carry_out(tx, plan(tx.connection, seq))

    return _entry(store, store.write("undo", work))


def undo_last(
    store: Store,
    memory_id: params.MemoryId | None = None,
    actor: params.Actor = None,
    session: params.Session = None,
) -> JournalEntry | None:
    """Undo the newest operation that still stands, of a memory, an actor or a session if given.

    Repeated calls step further back. Return the entry of the undo, None when nothing is left.
    """
    given = {"memory_id": memory_id, "actor": actor, "session": session}
    values = clean(undo_last, given)

    def work(tx: Tx) -> int | None:
        seq = _newest(store, tx.connection, _STANDING, **values)
        return None if seq is None else carry_out(tx, plan(tx.connection, seq))

    seq = store.write("undo", work)
    return None if seq is None else _entry(store, seq)


def undo_since(
    store: Store,
    since: params.DoneSince,
    memory_id: params.MemoryId | None = None,
    actor: params.Actor = None,
    session: params.Session = None,
) -> list[JournalEntry]:
    """Undo all done at or after a moment, of a memory, an actor or a session when given.

    Newest first, in one transaction: where one operation cannot be undone, as after a purge, none
    is, and the error names it and the moment from which all can be. Undos made since that moment
    are taken back too. A redo of any brings all back.
    Return the entries of the undos. Raises InputError, Diverged.
    """
    given = {"since": since, "memory_id": memory_id, "actor": actor, "session": session}
    choose = _since(store, **clean(undo_since, given, at=store.now()))

    def work(tx: Tx, done: Sequence[Done]) -> Done | None:
        seq = choose(tx.connection, done)
        return None if seq is None else Done(seq, _carry_out(tx, plan(tx.connection, seq), done))

    act = store.act("undo", batch=str(uuid.uuid4()))
    done = store.db.write(recorded_series(act, store.settings.clock, work))
    return [_entry(store, one.by) for one in done]


def preview_undo(
    store: Store,
    operation: JournalEntry | str | int | None = None,
    *,
    memory_id: params.MemoryId | None = None,
    actor: params.Actor = None,
    session: params.Session = None,
    since: params.DoneSince | None = None,
) -> UndoPreview:
    """Return what an undo would change, and why it would be refused, without changing anything.

    Name an operation, or choose the newest as `undo_last` does, or with `since` all that
    `undo_since` would undo. Raises NotFound, InputError.
    """
    given = {"memory_id": memory_id, "actor": actor, "session": session, "since": since}
    values = clean(preview_undo, given, at=store.now())
    if operation is not None and any(value is not None for value in values.values()):
        raise InputError("Give operation alone, or choose by the others without it.")
    choose = _since(store, **values) if since is not None else _one(store, operation, values)
    rehearsal = _Rehearsal(choose)
    job = recorded_series(store.act("undo"), store.settings.clock, rehearsal.step)
    try:
        store.db.rehearse(job)
    except Diverged as refused:
        return rehearsal.preview(store, refused)
    return rehearsal.preview(store)


def redo(store: Store, operation: JournalEntry | str | int | None = None) -> JournalEntry | None:
    """Undo an undo, the newest that still stands unless another is named.

    Return the entry of the redo, None when nothing was undone. Raises NotFound, Diverged.
    """

    def work(tx: Tx) -> int | None:
        if operation is None:
            seq = _newest(store, tx.connection, "o.undone_by is null and o.op = 'undo'")
        else:
            seq = resolve_operation(store, tx.connection, operation)
            if not is_undo(tx.connection, seq):
                raise NotFound(f"Operation {seq} is no undo, so there is nothing to redo.")
        return None if seq is None else carry_out(tx, plan(tx.connection, seq))

    seq = store.write("redo", work)
    return None if seq is None else _entry(store, seq)


def _carry_out(tx: Tx, planned: Plan, done: Sequence[Done]) -> int:
    """Undo one operation more; a refusal that stands for ever names the moment after it."""
    try:
        return carry_out(tx, planned)
    except Diverged as refused:
        if not refused.rows and (since := _moment_after(tx.connection, planned.seq, done)):
            refused.hint += f" All after it can be: since {since!r} ({clock.iso(since)})."
        raise


def _moment_after(connection: apsw.Connection, seq: int, done: Sequence[Done]) -> float | None:
    """Return when the first of those that are done was done, where that was later."""
    moment: float | None = connection.execute(
        """select min(at) from operation where seq in (select value from json_each(?))
           and at > (select at from operation where seq = ?)""",
        (json.dumps([one.seq for one in done]), seq),
    ).get
    return moment


class _Rehearsal:
    """What the steps of an undo that is not meant would make of each row."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._plans: list[Plan] = []
        self._now: dict[tuple[str, str], Image | None] = {}
        self._then: dict[tuple[str, str], Image | None] = {}

    def step(self, tx: Tx, done: Sequence[Done]) -> Done | None:
        """Undo one operation more; what it is about is kept even when it is refused."""
        if not done:
            for kept in (self._plans, self._now, self._then):
                kept.clear()
        seq = self._choose(tx.connection, done)
        if seq is None:
            return None
        planned = plan(tx.connection, seq)
        self._plans.append(planned)
        for kind, key, before, _ in planned.pairs:
            self._now.setdefault((kind, key), tx.get(kind, key))
            self._then[kind, key] = before
        return Done(seq, _carry_out(tx, planned, done))

    def preview(self, store: Store, refused: Diverged | None = None) -> UndoPreview:
        """Return what was found."""
        seqs = [seq for planned in self._plans for seq in planned.seqs]
        sql = "o.seq in (select value from json_each(:seqs)) order by o.seq desc"
        with store.read() as connection:
            found = list(log.operations(connection, sql, {"seqs": json.dumps(seqs)}))
        changes = [
            Difference(*row, self._now[row], then)
            for row, then in self._then.items()
            if self._now[row] != then
        ]
        if refused is None:
            return UndoPreview(found, changes)
        return UndoPreview(found, changes, refused.message, refused.rows, refused.hint)


def _since(store: Store, **values: Any) -> Choose:
    """Choose all operations since a moment, newest first."""
    return lambda connection, done: _newest(
        store, connection, _WITHIN, below=done[-1].seq if done else None, **values
    )


def _one(
    store: Store, operation: JournalEntry | str | int | None, values: dict[str, Any]
) -> Choose:
    """Choose one operation: that named, or the newest."""

    def choose(connection: apsw.Connection, done: Sequence[Done]) -> int | None:
        if done:
            return None
        if operation is not None:
            return resolve_operation(store, connection, operation)
        return _newest(store, connection, _STANDING, **values)

    return choose


def _entry(store: Store, seq: int) -> JournalEntry:
    with store.read() as connection:
        return next(log.operations(connection, "o.seq = :seq", {"seq": seq}))


def _newest(
    store: Store,
    connection: apsw.Connection,
    which: str,
    memory_id: str | None = None,
    actor: str | None = None,
    session: str | None = None,
    **window: float | None,
) -> int | None:
    """Return the newest operation that meets a condition, of a memory, actor, session if given."""
    parts = [which, "(o.collection is null or o.collection = :collection)"]
    parts += ["o.actor = :actor"] if actor is not None else []
    parts += ["o.session = :session"] if session is not None else []
    parts += [f"o.seq in ({log.OPERATIONS_ABOUT})"] if memory_id is not None else []
    bound = {"collection": store.collection, "actor": actor, "session": session, "id": memory_id}
    seq: int | None = connection.execute(
        f"""select o.seq from operation o where {" and ".join(parts)}
            and exists (select 1 from change c where c.operation = o.seq)
            order by o.seq desc limit 1""",
        {**bound, **window},
    ).get
    return seq
