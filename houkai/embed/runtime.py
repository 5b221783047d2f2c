"""Run an ONNX graph: a session that starts fast first, one that runs fast once it pays."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

QUICK_WINDOWS: Final = 6
"""Windows the quick session serves. Optimising costs the CPU it saves on 3 to 14 windows, fewer
the longer they are (benchmarks/embedding.py)."""


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


class Renewable(Protocol):
    """Something that holds locks or threads, neither of which survives a fork."""

    def renew(self) -> None:
        """Replace them."""


_RENEWABLE: weakref.WeakSet[Renewable] = weakref.WeakSet()
_ABANDONED: list[Any] = []


def renew_after_fork(owner: Renewable) -> None:
    """Have `owner.renew()` called in each forked child.

    A lock that another thread held at the fork is never released in the child.
    """
    _RENEWABLE.add(owner)


def _renew_all() -> None:
    for owner in list(_RENEWABLE):
        owner.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


class Runtime:
    """One model's sessions, shared by threads, made when first needed."""

    def __init__(self, graph: Path, threads: int | None = None) -> None:
        self.graph = graph
        self.threads = threads or min(2, processors())
        self._session: Any = None
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Start anew in a forked child, which has inherited sessions but not their threads."""
        if self._session is not None:
            # Never freed: a session's destructor would wait for threads that do not exist here.
            _ABANDONED.append(self._session)
        self._session = None
        self._served = 0
        self.optimised = False
        self._lock = threading.Lock()
        # Each run holds tens of megabytes, so a hundred threads must not all run at once.
        self._turn = threading.BoundedSemaphore(max(2, processors()))

    def run(self, session: Any, outputs: Sequence[str], ids: Any) -> list[NDArray[np.float32]]:
        """Compute outputs for lists of token ids, padded to the longest and masked."""
        import numpy as np

        shape = (len(ids), max(map(len, ids)))
        padded, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, one in enumerate(ids):
            padded[row, : len(one)] = one
            mask[row, : len(one)] = 1
        with self._turn:
            found: list[NDArray[np.float32]] = session.run(
                list(outputs), {"input_ids": padded, "attention_mask": mask}
            )
        return found

    def session(self, windows: int) -> Any:
        """Return the session to embed this many more windows with."""
        with self._lock:
            self._served += windows
            if self._session is None or (not self.optimised and self._served > QUICK_WINDOWS):
                self.optimised = self._served > QUICK_WINDOWS
                self._session = self._start(self.optimised)
            return self._session

    def _start(self, optimised: bool) -> Any:
        # onnxruntime reports its use to Microsoft, and keeps a device id in the user's cache,
        # unless told not to before it is first imported. Nothing here may leave the machine.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime as ort

        ort.disable_telemetry_events()  # for a process that had imported it already
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # a library's warnings must not reach a tool's stderr
        # Spinning threads burn the processor that the agent beside us is waiting for.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        if not optimised:
            # The weights stay mapped and shared between processes; they widen as they are used,
            # and the priority order lets each widened matrix reuse the memory of the last.
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
            options.add_session_config_entry("session.disable_prepacking", "1")
        # Resolved, because the graph may be a link into an installer's cache while onnxruntime
        # wants the data file beside the real graph.
        graph = str(self.graph.resolve())
        return ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
