"""The page of results: a section per subcommand, from the files of results that there are."""

from collections.abc import Callable
from pathlib import Path

from benchmarks.guarantees.attacks_page import render_attacks
from benchmarks.guarantees.certify_page import render_certify
from benchmarks.guarantees.ranges_page import render_ranges
from benchmarks.guarantees.scores_page import render_scores
from benchmarks.guarantees.tightness_page import render_tightness
from benchmarks.machine import describe

__all__ = ["SECTIONS", "write_page"]

SECTIONS: tuple[Callable[[Path], str], ...] = (
    render_attacks,
    render_scores,
    render_tightness,
    render_ranges,
    render_certify,
)
"""What writes the section of a subcommand, given the folder of results; empty if there are none."""

_HEAD = f"""# Guarantees

Made by `python -m benchmarks guarantees`, one fit after another, each with one thread, on {describe()}.
Boosted trees have the settings of the suite (`docs/benchmarks.md`) and EBM its defaults. Only constraints, losses and
weights are added."""


def write_page(folder: Path) -> None:
    """Write the page beside the folder of results."""
    parts = [_HEAD, *(render(folder) for render in SECTIONS)]
    page = folder.with_suffix(".md")
    page.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")
    print(f"wrote {page}")
