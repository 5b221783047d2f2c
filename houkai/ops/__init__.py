"""The operations, one module per noun; each takes a store first."""

from houkai.ops import health, history, links, listing, memories, recall, removal, undoing

__all__ = ["health", "history", "links", "listing", "memories", "recall", "removal", "undoing"]
