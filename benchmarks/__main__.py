"""Benchmarks as commands: ``python -m benchmarks suite``, ``small``, ``speed``, ``cost``, ``defaults`` or ``paper``."""

import argparse

from benchmarks import cost, defaults, speed, suite
from benchmarks.paper import command as paper
from benchmarks.small import command as small
from nae.errors import UserError

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)
    for module in (suite, small, speed, cost, defaults, paper):
        module.add_command(commands)
    given = parser.parse_args(arguments)
    try:
        given.run(given)
    except UserError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
