"""The machine doors: wires, MCP in one process and over pipes, async."""
