"""Run the command line: `python -m houkai`."""

from houkai.cli import main

if __name__ == "__main__":
    main()
