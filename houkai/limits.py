"""Every limit in one table; each refusal names the one it met."""

from __future__ import annotations

from typing import Final

MIB: Final = 1024 * 1024

TEXT_BYTES: Final = MIB
QUERY_BYTES: Final = 16 * 1024
TAGS: Final = 64
TAG_CHARS: Final = 128
ENTITIES: Final = 64
ENTITY_CHARS: Final = 128
NAME_CHARS: Final = 256
K_ON_WIRES: Final = 1_000
GRAPH_DEPTH: Final = 6
GRAPH_NODES: Final = 10_000
CONFLICTS: Final = 20_000
"""Pairs of similar memories that one scan judges; the most similar are kept."""
IMPORT_BYTES: Final = 256 * MIB
IMPORT_LINE_BYTES: Final = 4 * MIB
JSON_DEPTH: Final = 64
HTTP_BODY_BYTES: Final = 4 * MIB
QUERY_TERMS: Final = 256
"""Distinct query words looked up; the rarest are kept, since a pasted page asks for one thing."""
