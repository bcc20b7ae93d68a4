"""The section on the time of certificates."""

from pathlib import Path

from benchmarks.certify_speed import OTHERS, STATEMENTS
from benchmarks.guarantees.record import Record
from benchmarks.tables import markdown_table

__all__ = ["render_certify"]

_HOW = (
    "Made by `python -m benchmarks.certify_speed`. Seconds of a statement about one feature that keeps it, and of one "
    "that breaks it, which includes the search for two inputs; the last columns are a certificate of two versions of a "
    "model, and an edit with its record. Models have 8 experts and 8 members, and their tables are random numbers."
)


def render_certify(folder: Path) -> str:
    """Return the section; empty if there are no results."""
    results = Record(folder / "certify.json").read()
    if not results:
        return ""
    found = {one["work"] for one in results.values()}
    works = [work for work in (*STATEMENTS, *OTHERS) if work in found]
    models = sorted({one["model"] for one in results.values()}, key=lambda name: (int(name.split()[0]), name))
    rows = [[model, *(_cell(results[f"{model}/{work}"]["seconds"]) for work in works)] for model in models]
    version = max(one["version"] for one in results.values())
    return "\n\n".join(["## Seconds of certificates", _HOW, markdown_table(["", *works], rows), f"nae {version}."])


def _cell(seconds: list[float]) -> str:
    return " / ".join(f"{each:.2f}" for each in seconds)
