"""Counts that say how a checkout is built: ``python -m tests.architecture.counts [COMMIT ...]``, the newest last."""

import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.layers import BASE, GRAPH, When, cycles, imports

ROOT = Path(__file__).parents[2]
# The names of encoders, gates, routings and schedules.
MODES = {"mlp", "piecewise", "additive", "low-rank", "deep", "diagonal", "softmax", "equal", "gumbel", "cosine"}
FILES = ("training/loop.py", "estimators/learning.py")


def counts(package: Path) -> dict[str, int]:
    """Return what is counted of a package, by what it is."""
    trees = {path: ast.parse(path.read_text()) for path in sorted(package.rglob("*.py"))}
    asked = {path: n for path, tree in trees.items() if (n := sum(map(_asks_for_a_mode, ast.walk(tree))))}
    lines = [line for path in trees for line in path.read_text().splitlines()]
    read = re.compile(r"""(training|facts)(\.get\(|\[)["']""")
    return {
        "comparisons with the name of a mode": sum(asked.values()),
        "files with such a comparison": len(asked),
        "entries of the training summary read by a string": sum(bool(read.search(line)) for line in lines),
        "lines with dict[str, Any]": sum("dict[str, Any]" in line for line in lines),
        "files with an import upwards": len(_upward(package)),
        "groups of files of the command line that import each other": len(cycles(_command_line(package))),
        **{f"lines of {file}": len((package / file).read_text().splitlines()) for file in FILES},
    }


def _asks_for_a_mode(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and any(
        isinstance(part, ast.Constant) and part.value in MODES for part in ast.walk(node)
    )


def _upward(package: Path) -> set[str]:
    """Return the files that import a part which stands after their own in the order of today's graph."""
    order = [*BASE, *GRAPH]
    return {
        one.file
        for one in imports(package)
        if one.when is not When.never
        and one.part in order
        and one.target in order
        and order.index(one.target) > order.index(one.part)
    }


def _command_line(package: Path) -> dict[str, tuple[str, ...]]:
    """Return which file of the command line imports which."""
    prefix = "nae.cli."
    found = {path.stem: set[str]() for path in (package / "cli").glob("*.py")}
    for one in imports(package):
        if one.part == "cli" and one.when is not When.never and one.module.startswith(prefix):
            found[Path(one.file).stem].add(one.module.removeprefix(prefix))
    return {name: tuple(sorted(targets & found.keys() - {name})) for name, targets in found.items()}


def _packages(commits: list[str]) -> Iterator[tuple[str, Path]]:
    for commit in commits:
        with tempfile.TemporaryDirectory() as place:
            packed = subprocess.run(["git", "archive", commit, "src/nae"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
            subprocess.run(["tar", "-x", "-C", place], input=packed.stdout, check=True)
            yield commit, Path(place) / "src" / "nae"


if __name__ == "__main__":
    table = {commit: counts(package) for commit, package in _packages(sys.argv[1:] or ["HEAD"])}
    rows = [["", *table], ["---", *("--:" for _ in table)]]
    rows += [[name, *(f"{found[name]:,}" for found in table.values())] for name in next(iter(table.values()))]
    sys.stdout.writelines(f"| {' | '.join(row)} |\n" for row in rows)
