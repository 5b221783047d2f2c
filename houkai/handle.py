"""The handle that operations work on: an open file, its models, its clock, and an actor."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import apsw

from houkai import clock as clocks
from houkai.clock import Clock
from houkai.conflict_rules import DUPLICATE_SIMILARITY, ConflictFn
from houkai.embed.port import Embedder
from houkai.model import HybridWeights, Memory
from houkai.storage.database import Database
from houkai.storage.eligible import Filter
from houkai.storage.journal import Act, Tx, recorded
from houkai.storage.touches import Touches
from houkai.vocabulary import ConflictPolicy

if TYPE_CHECKING:
    from houkai.search.centre import Centres
    from houkai.search.sketches import Sketches

T = TypeVar("T")
Reranker = Callable[[str, list[Memory]], Sequence[float]]
ImportanceFn = Callable[[str, str, list[str]], float]


@dataclass
class Settings:
    """What a store was opened with and every view of it shares."""

    hybrid_weights: HybridWeights = field(default_factory=HybridWeights)
    reranker: Reranker | None = None
    importance_fn: ImportanceFn | None = None
    contradiction_fn: ConflictFn | None = None
    conflict_policy: ConflictPolicy = "ignore"
    conflict_threshold: float = DUPLICATE_SIMILARITY
    journal_enabled: bool = True
    clock: Clock = clocks.now


class Lately:
    """What was met when texts were embedded last: a hint that saves looking in the file."""

    LIMIT: Final = 4_096

    def __init__(self) -> None:
        self.model_fits = False
        """Whether the file's vectors were of the store's model."""
        self._texts: dict[bytes, None] = {}

    def met(self, hash: bytes) -> bool:
        """Say whether a text was met before; from now on it was."""
        if hash in self._texts:
            return True
        if len(self._texts) >= self.LIMIT:
            self._texts.clear()
        self._texts[hash] = None
        return False


class Store:
    """One open file seen by one actor in one collection."""

    def __init__(
        self,
        db: Database,
        embedder: Embedder,
        collection: str,
        actor: str,
        settings: Settings,
        touches: Touches,
        session: str | None = None,
    ) -> None:
        self._derived: dict[str, Any] = {}
        self.lately = Lately()
        self.db = db
        self.embedder = embedder
        self.collection = collection
        self.actor = actor
        self.settings = settings
        self.touches = touches
        self.session = session

    def as_actor(self, name: str, session: str | None = None) -> Self:
        """Return a view of this store whose changes are recorded under another actor."""
        view = copy.copy(self)
        view.actor = name
        view.session = session or self.session
        return view

    def now(self) -> float:
        """Return the present moment by the store's clock."""
        return self.settings.clock()

    def read(self) -> AbstractContextManager[apsw.Connection]:
        """Yield a connection that sees one unchanging snapshot."""
        return self.db.read()

    def write(
        self,
        op: str,
        work: Callable[[Tx], T],
        *,
        meta: Mapping[str, Any] | None = None,
        batch: str | None = None,
    ) -> T:
        """Run `work` as one journaled operation in one transaction, and return its result.

        The work may run twice, so it depends on nothing but its transaction.
        """
        act = self.act(op, meta=meta, batch=batch)
        return self.db.write(recorded(act, self.settings.clock, work))

    def act(
        self, op: str, *, meta: Mapping[str, Any] | None = None, batch: str | None = None
    ) -> Act:
        """Return what an operation of this store says of itself."""
        return Act(
            op,
            self.actor,
            collection=self.collection,
            session=self.session,
            batch=batch,
            meta=meta or {},
            images=self.settings.journal_enabled,
        )

    def sketches(self) -> Sketches:
        """Return the memories to search: the file's at first, a copy in RAM from then on."""
        from houkai.search.warming import Warming  # numpy, which a listing never needs

        kept = self._derived.get("sketches")
        found: Sketches = kept or self._derived.setdefault("sketches", Warming())
        return found

    def centres(self) -> Centres:
        """Return the collections' mean vectors that every view of this store shares."""
        from houkai.search.centre import Centres

        found: Centres = self._derived.setdefault("centres", Centres())
        return found

    def where(self, *, collection: str | None = None, **given: Any) -> Filter:
        """Return a filter for this store's collection at the present moment."""
        return Filter(collection=collection or self.collection, now=self.now(), **given)
