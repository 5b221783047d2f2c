"""The machine doors: one table of operations, seen by agents and programs."""
