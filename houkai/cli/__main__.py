"""Run the command line as `python -m houkai.cli`."""

from houkai.cli import main

main()
