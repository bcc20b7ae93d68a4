"""The counts of all fuzzing runs: a JSON file, and a page that is generated from it."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from benchmarks.fuzz.targets import TARGETS
from benchmarks.fuzz.worker import Found
from nae import __version__

__all__ = ["Record", "Run"]


@dataclass(frozen=True)
class Run:
    """One target in one run."""

    target: str
    seed: int
    first: int
    tries: int
    processor_seconds: float
    wall_seconds: float
    outcomes: dict[str, int]
    found: tuple[Found, ...] = ()
    is_guided: bool = False

    @property
    def sentence(self) -> str:
        """The line that is printed at the end."""
        rate = self.tries / max(self.processor_seconds, 1e-9)
        outcomes = ", ".join(f"{n:,} {word}" for word, n in sorted(self.outcomes.items(), key=lambda one: -one[1]))
        return (
            f"{self.target}: {self.tries:,} tries, {len(self.found)} violations, {self.wall_seconds:.0f} s "
            f"({rate:,.0f} tries per second of a processor); {outcomes or 'outcomes are not counted'}."
        )


@dataclass(frozen=True)
class Entry:
    """A run in the record."""

    target: str
    seed: int
    first: int
    tries: int
    processor_seconds: float
    outcomes: dict[str, int]
    violations: list[str]
    is_guided: bool = False
    version: str = field(default=__version__)

    @property
    def key(self) -> tuple[str, int, int, bool]:
        """Runs with the same key try the same inputs, so a later run replaces an earlier one."""
        return self.target, self.seed, self.first, self.is_guided


@dataclass(frozen=True)
class Record:
    """All runs of a file."""

    entries: tuple[Entry, ...] = ()

    @staticmethod
    def read(path: Path | None) -> "Record":
        """Return the record in a file; empty if there is none."""
        if path is None or not path.exists():
            return Record()
        return Record(tuple(Entry(**row) for row in json.loads(path.read_text(encoding="utf-8"))["runs"]))

    def with_run(self, run: Run) -> "Record":
        """Return the record with one more run."""
        new = Entry(
            run.target,
            run.seed,
            run.first,
            run.tries,
            round(run.processor_seconds, 1),
            dict(sorted(run.outcomes.items())),
            [f"{one.sentence} ({one.command})" for one in run.found],
            run.is_guided,
        )
        kept = [entry for entry in self.entries if entry.key != new.key]
        order = list(TARGETS)
        entries = sorted([*kept, new], key=lambda one: (order.index(one.target), one.is_guided, one.seed, one.first))
        return replace(self, entries=tuple(entries))

    def write(self, path: Path | None) -> None:
        """Write the file, and the page beside it."""
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"runs": [asdict(entry) for entry in self.entries]}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        path.with_suffix(".md").write_text(self.page(), encoding="utf-8")

    def page(self) -> str:
        """Return the page."""
        rows = [row for name in TARGETS for row in self._rows(name)]
        header = "| target | tries | violations | processor seconds | tries per second | what became of them | seeds |"
        properties = [f"- **{target.name}**: {target.holds}" for target in TARGETS.values()]
        seen = [f"- {entry.target}: {text}" for entry in self.entries for text in entry.violations]
        return "\n".join(
            [
                "# Fuzzing\n",
                "Random and damaged inputs, and what must hold of each:\n",
                *properties,
                "",
                header,
                "|---|--:|--:|--:|--:|---|---|",
                *(f"| {' | '.join(row)} |" for row in rows),
                "",
                *(["Violations that were seen:\n", *seen, ""] if seen else []),
                "A guided run is one that atheris steers towards code no input has reached before.",
                "Made by `python -m benchmarks fuzz --record benchmarks/results/fuzz.json`.",
                "",
            ]
        )

    def _rows(self, name: str) -> list[list[str]]:
        rows = []
        for is_guided in (False, True):
            entries = [one for one in self.entries if one.target == name and one.is_guided == is_guided]
            if not entries:
                continue
            tries, seconds = sum(one.tries for one in entries), sum(one.processor_seconds for one in entries)
            outcomes: Counter[str] = Counter()
            for one in entries:
                outcomes.update(one.outcomes)
            shown = ", ".join(f"{n:,} {word}" for word, n in outcomes.most_common())
            rows.append(
                [
                    f"{name}, guided" if is_guided else name,
                    f"{tries:,}",
                    str(sum(len(one.violations) for one in entries)),
                    f"{seconds:,.0f}",
                    f"{tries / max(seconds, 1e-9):,.0f}",
                    shown,
                    ", ".join(dict.fromkeys(str(one.seed) for one in entries)),
                ]
            )
        return rows
