"""Benchmarks as commands: ``python -m benchmarks suite``, ``small``, ``speed``, ``paper``, ``fuzz`` and others."""

import argparse
import sys
from importlib import import_module

from nae.errors import NAEError

__all__ = ["main"]

COMMANDS = {
    "suite": "benchmarks.suite",
    "small": "benchmarks.small.command",
    "speed": "benchmarks.speed",
    "native": "benchmarks.native",
    "cost": "benchmarks.cost",
    "defaults": "benchmarks.defaults",
    "paper": "benchmarks.paper.command",
    "faults": "benchmarks.faults.command",
    "fuzz": "benchmarks.fuzz.command",
    "guarantees": "benchmarks.guarantees.command",
    "effects": "benchmarks.effects.command",
    "decisions": "benchmarks.decisions",
    "intervals": "benchmarks.intervals.command",
}


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line and run the command."""
    words = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(required=True)
    # Only the requested command is imported, because each command needs different packages.
    for name in words[:1] if words[:1] and words[0] in COMMANDS else COMMANDS:
        import_module(COMMANDS[name]).add_command(commands)
    given = parser.parse_args(words)
    try:
        given.run(given)
    except NAEError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
