"""The command line: `houkai`. A module per noun; `app` names them all."""

from __future__ import annotations


def main() -> None:
    """Run the command line and end the process with its code."""
    from houkai.cli.app import main as run

    run()
