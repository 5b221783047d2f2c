"""The operations, one module per noun; each takes a store first."""

from houkai.ops import health, history, listing, memories, recall, removal, undoing

__all__ = ["health", "history", "listing", "memories", "recall", "removal", "undoing"]
