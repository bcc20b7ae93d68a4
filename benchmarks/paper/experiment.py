"""The interface of an experiment: the runs it needs, and the section it makes of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.paper.claims import Claim
from benchmarks.paper.described import read_global, read_interaction
from benchmarks.paper.runs import Run
from benchmarks.paper.store import Report
from benchmarks.paper.verdicts import Line, Measured
from nae.explanation import GlobalExplanation, InteractionExplanation

__all__ = ["Experiment", "Picture", "Results", "Section"]


@dataclass(frozen=True)
class Picture:
    """A drawn figure."""

    name: str
    caption: str
    figure: Any


@dataclass(frozen=True)
class Section:
    """The section of an experiment: paragraphs and tables in Markdown, pictures, and the data of the verdicts."""

    texts: Sequence[str]
    lines: Sequence[Line] = ()
    pictures: Sequence[Picture] = ()
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Results:
    """All finished runs."""

    reports: Mapping[str, Report]
    explanations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    is_smoke: bool = False

    def path(self, run: Run) -> str:
        """Return the path of a run; in a smoke test, that of its small version."""
        return (run.smoke() if self.is_smoke else run).path

    def report(self, run: Run) -> Report | None:
        """Return the report of a run, if it succeeded."""
        found = self.reports.get(self.path(run))
        return found if found is not None and found.is_done else None

    def failure(self, run: Run) -> str:
        """Return why a run failed; empty if it succeeded or was never started."""
        found = self.reports.get(self.path(run))
        return "" if found is None or found.is_done else found.reason

    def measured(self, runs: Iterable[Run], name: str) -> Measured:
        """Return one number of several runs, as far as they have it."""
        found = [report.score(name) for run in runs if (report := self.report(run)) is not None]
        return Measured(tuple(value for value in found if value is not None))

    def shapes(self, run: Run) -> GlobalExplanation | None:
        """Return the curves of a run, if it has been drawn."""
        found = self.explanations.get(self.path(run))
        return read_global(dict(found)) if found and "global" in found else None

    def interaction(self, run: Run, which: str) -> InteractionExplanation | None:
        """Return the map ('pair') or the panels ('three') of a run."""
        found = self.explanations.get(self.path(run))
        return read_interaction(dict(found), which) if found and which in found else None


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    title: str
    source: str
    """The place in the paper."""
    runs: Callable[[], Sequence[Run]]
    show: Callable[[Results], Section]
    drawn: Callable[[], Sequence[Run]] = tuple
    """The runs whose explanations are needed for the figures."""
    features: tuple[str, ...] = ()
    """The features that are drawn. If None, all."""
    has_maps: bool = False
    """Whether maps of pairs and panels of three are drawn."""
