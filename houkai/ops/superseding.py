"""Let one memory replace another, and show the replaced one again.

What is hidden always has a way back: its superseder is stored, superseders never form a circle,
and `restore` takes the mark off.
"""

from __future__ import annotations

from typing import Final

import apsw

from houkai import params
from houkai.errors import InputError
from houkai.handle import Store
from houkai.ops.listing import present
from houkai.rules import clean
from houkai.storage.journal import Tx
from houkai.storage.rows import Image, link_key

PIN_CARRIED: Final = 2
"""Value of `pinned` where a memory carries the pin of what it replaced, to give back later."""


def supersede(store: Store, old_id: params.MemoryId, new_id: params.MemoryId) -> None:
    """Replace a memory by a newer one: the old one is hidden but kept, and linked to.

    Use it when a fact has changed. A pin moves to the newer memory; restore takes all of it back.
    Raises NotFound, and InputError where superseders would form a circle.
    """
    values = clean(supersede, {"old_id": old_id, "new_id": new_id})
    old, new = values["old_id"], values["new_id"]

    def work(tx: Tx) -> None:
        for id in (old, new):
            present(store, tx, id)
        hide(tx, old, new)

    store.write("supersede", work)


def restore(store: Store, memory_id: params.MemoryId) -> bool:
    """Show a superseded memory again; say whether it was one.

    The supersedes link goes, and a pin that had moved comes back.
    """
    id = clean(restore, {"memory_id": memory_id})["memory_id"]

    def work(tx: Tx) -> bool:
        image = tx.get("memory", id)
        if image is None or image["collection"] != store.collection:
            return False
        return show(tx, id)

    return store.write("restore", work)


def hide(tx: Tx, old: str, new: str) -> None:
    """Let a memory supersede another inside an operation. Raises InputError."""
    if old == new:
        raise InputError("A memory cannot supersede itself.")
    above = superseders(tx.connection, new)
    if old in above:
        raise InputError(
            f"{new[:8]} cannot supersede {old[:8]}, which supersedes it already"
            + (f" by way of {above[0][:8]}." if above[0] != old else "."),
            hint=f"Restore {new[:8]} first.",
        )
    if _image(tx, old).get("superseded_by") != new:
        show(tx, old)
        mark(tx, old, new, tx.at)


def show(tx: Tx, id: str) -> bool:
    """Take the mark off a superseded memory inside an operation; say whether there was one."""
    image = _image(tx, id)
    superseder = image.pop("superseded_by", None)
    if superseder is None:
        return False
    image.pop("superseded_at", None)
    tx.put("memory", id, image)
    tx.put("link", link_key(superseder, "supersedes", id), None)
    if image.get("pinned"):
        settle_pin(tx, superseder)
    return True


def mark(tx: Tx, old: str, new: str, at: float) -> None:
    """Mark a memory as superseded where both are there, it is not yet, and no circle results."""
    image, successor = tx.get("memory", old), tx.get("memory", new)
    if image is None or successor is None or "superseded_by" in image:
        return
    if old in superseders(tx.connection, new):
        return
    tx.put("memory", old, {**image, "superseded_by": new, "superseded_at": at})
    tx.put("link", link_key(new, "supersedes", old), {"created_at": at})
    if image.get("pinned") and not successor.get("pinned"):
        tx.put("memory", new, {**successor, "pinned": PIN_CARRIED})


def settle_pin(tx: Tx, id: str) -> None:
    """Unpin a memory that carries a pin, once it replaces no pinned one any more."""
    image = _image(tx, id)
    still: bool = tx.connection.execute(
        "select exists (select 1 from memory where superseded_by = ? and pinned > 0)", (id,)
    ).get
    if image.get("pinned") == PIN_CARRIED and not still:
        image.pop("pinned")
        tx.put("memory", id, image)


def superseders(connection: apsw.Connection, id: str) -> list[str]:
    """Return what supersedes a memory, what supersedes that, and so on."""
    above: dict[str, None] = {}
    step: str | None = id
    while step is not None:
        step = connection.execute("select superseded_by from memory where id = ?", (step,)).get
        if step is None or step in above:
            break
        above[step] = None
    return list(above)


def _image(tx: Tx, id: str) -> Image:
    return dict(tx.get("memory", id) or {})
