"""Promises, measured: whether attacks break them, what they cost in scores, and how tight bounds are."""

import argparse
from importlib import import_module

__all__ = ["add_command"]

NAME = "guarantees"
SUBCOMMANDS = {
    "attacks": "benchmarks.guarantees.attacks",
    "scores": "benchmarks.guarantees.scores",
    "forms": "benchmarks.guarantees.forms",
    "quantiles": "benchmarks.guarantees.quantiles",
    "ranges": "benchmarks.guarantees.ranges",
    "tightness": "benchmarks.guarantees.tightness",
}


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its subcommands to a command line."""
    parser = commands.add_parser(NAME, help=__doc__, description=__doc__)
    subcommands = parser.add_subparsers(required=True)
    for module in SUBCOMMANDS.values():
        import_module(module).add_command(subcommands)
