"""The entry point of ``nae``. It imports nothing optional, so that a missing package gives a one-line error."""

import sys

from nae._optional import require
from nae.errors import MissingDependencyError

__all__ = ["main"]


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        for package in ("typer", "rich", "pyarrow"):
            require(package, extra="cli")
    except MissingDependencyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    from nae.cli.app import run

    return run(sys.argv[1:])
