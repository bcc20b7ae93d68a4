"""The answer of a drift check: a verdict for every feature, for the score and for all, in numbers and in words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from nae._printed import digest
from nae._serial import Column, Serial, make_frame
from nae._typing import Array
from nae._words import counted
from nae.errors import UserError, did_you_mean
from nae.monitoring.checks import DRIFTED, MOVED, Check, worst
from nae.monitoring.sentences import clause, names_of

__all__ = ["Drift", "FeatureDrift"]


@dataclass(frozen=True, eq=False)
class FeatureDrift:
    """How the values of one feature, and what they contribute, moved."""

    name: str
    kind: str  # 'number', 'boolean' or 'category'
    verdict: str  # 'drifted', 'moved' or 'within chance': the worst of the checks
    checks: tuple[Check, ...]
    distance: float  # the total variation of the values' distributions: 0 is equal, 1 has nothing in common
    label: str  # the level of a category, or the value of a boolean, whose share moved most; empty for a number
    label_then: float
    label_now: float
    from_values: Array  # (output,), by how much the mean contribution moved because of the feature's own values
    from_context: Array  # (output,), by how much because of the values of other features

    def __getitem__(self, what: str) -> Check:
        for check in self.checks:
            if check.what == what:
                return check
        raise UserError(
            f"{self.name!r} has no check called {what!r}.{did_you_mean(what, [c.what for c in self.checks])}"
        )

    @property
    def new_share(self) -> float:
        """The share of the rows whose value no training row could have: a new level, or a number out of range."""
        return sum(check.now for check in self.checks if check.what in ("unseen", "beyond"))

    @property
    def contributions(self) -> tuple[Check, ...]:
        """The checks of the mean contribution, one per output."""
        return tuple(check for check in self.checks if check.what == "contribution")

    @property
    def contribution(self) -> Check:
        """The check of the mean contribution; with several outputs, the one that moved most."""
        return max(self.contributions, key=lambda check: check.size)


@dataclass(frozen=True, eq=False)
class Drift(Serial):
    """Whether new rows still look like the training rows.

    Attributes
    ----------
    n_rows, n_training_rows
        The number of new rows, and of training rows.
    limit, level
        The size from which a difference is drift if chance does not explain it, and the probability that anything is
        called drift if nothing changed.
    least
        The population stability index of ten bins that can just be told from chance.
    features
        One entry per feature, in the order of the model.
    score
        One check of the mean score per output.
    spread_then, spread_now
        The standard deviation of the score, (output,).
    """

    type_name: ClassVar[str] = "drift"

    n_rows: int
    n_training_rows: int
    limit: float
    level: float
    n_checks: int
    least: float
    features: tuple[FeatureDrift, ...]
    score: tuple[Check, ...]
    spread_then: Array
    spread_now: Array

    def __len__(self) -> int:
        return len(self.features)

    def __iter__(self) -> Iterator[FeatureDrift]:
        return iter(self.features)

    def __getitem__(self, name: str) -> FeatureDrift:
        found = {one.name: one for one in self.features}
        if name not in found:
            raise UserError(f"No feature is called {name!r}.{did_you_mean(name, found)}")
        return found[name]

    def __repr__(self) -> str:
        ranked = self.ranked()
        columns: dict[str, list[str] | list[float]] = {
            "feature": [one.name for one in ranked],
            "verdict": [one.verdict for one in ranked],
            "PSI": [one["values"].size for one in ranked],
            "by chance": [one["values"].chance for one in ranked],
            "missing": [one["missing"].now for one in ranked],
            "new": [one.new_share for one in ranked],
            "contribution moved": [one.contribution.size for one in ranked],
        }
        title = f"Drift({self.verdict}, {counted(self.n_rows, 'row')} against {self.n_training_rows:,})"
        return digest(title, columns, "text, to_frame()")

    @property
    def each_level(self) -> float:
        """The level of one check: all of them together keep the level of the answer."""
        return self.level / self.n_checks

    @property
    def score_verdict(self) -> str:
        """'drifted', 'moved' or 'within chance' for the mean score."""
        return worst([check.verdict(self.limit, self.each_level) for check in self.score])

    @property
    def verdict(self) -> str:
        """The worst verdict on a feature or on the score."""
        return worst([self.score_verdict, *(one.verdict for one in self.features)])

    @property
    def has_drifted(self) -> bool:
        """Whether a feature or the score drifted."""
        return self.verdict == DRIFTED

    @property
    def drifted(self) -> tuple[str, ...]:
        """The names of the features that drifted, the clearest first."""
        return tuple(one.name for one in self.ranked() if one.verdict == DRIFTED)

    def ranked(self) -> tuple[FeatureDrift, ...]:
        """Return the features, those that moved most first."""

        def size(one: FeatureDrift) -> tuple[float, ...]:
            clear = [check.size for check in one.checks if check.p_value <= self.each_level]
            return (max(clear, default=0.0), one["values"].size - one["values"].chance)

        return tuple(sorted(self.features, key=size, reverse=True))

    @property
    def sentence(self) -> str:
        """The answer in words."""
        rows = f"{counted(self.n_rows, 'row')}"
        if self.drifted:
            first = (
                f"{len(self.drifted)} of {counted(len(self), 'feature')} drifted in {rows}: {names_of(self.drifted)}."
            )
        else:
            first = f"No feature drifted in {rows}."
        return " ".join([first, *self._score_sentences, *self._remarks])

    @property
    def text(self) -> str:
        """The answer in words, and a sentence on every feature that drifted or moved."""
        moved = [one for one in self.ranked() if one.verdict in (DRIFTED, MOVED)]
        return "\n".join([self.sentence, *map(self.sentence_of, moved)])

    def sentence_of(self, feature: FeatureDrift) -> str:
        """Return the verdict on a feature in words."""
        told = [clause(feature, check) for check in feature.checks if self._verdict(check) == feature.verdict]
        if feature.verdict not in (DRIFTED, MOVED):
            return f"{feature.name}: what moved is within chance."
        below = "" if feature.verdict == DRIFTED else ", less than the limit"
        return f"{feature.name} {feature.verdict}{below}: {'; '.join(told)}."

    def _verdict(self, check: Check) -> str:
        return check.verdict(self.limit, self.each_level)

    @property
    def _score_sentences(self) -> list[str]:
        found = []
        for check in self.score:
            of = f" of {check.output}" if check.output else ""
            if self._verdict(check) == DRIFTED:
                moved = f"from {check.then:.4g} to {check.now:.4g}, by {check.size:.2g} of its standard deviations"
                found.append(f"The mean score{of} drifted {moved}.")
        return found or ["The mean score did not drift."]

    @property
    def _remarks(self) -> list[str]:
        if self.least <= self.limit:
            return []
        return [f"With so few rows, only a PSI of about {self.least:.2g} or more can be told from chance."]

    def to_frame(self, backend: str = "pandas", *, level: str = "features") -> Any:
        """Return a data frame: one row per feature (``level='features'``) or per check (``level='checks'``)."""
        if level not in ("features", "checks"):
            raise UserError(f"level must be 'features' or 'checks'; got {level!r}.")
        return make_frame(self._feature_columns() if level == "features" else self._check_columns(), backend)

    def _feature_columns(self) -> dict[str, Column]:
        columns: dict[str, Column] = {
            name: [getattr(one, name) for one in self.features] for name in ("name", "kind", "verdict")
        }
        values = [one["values"] for one in self.features]
        columns |= {"psi": [c.size for c in values], "chance": [c.chance for c in values]}
        columns |= {"p_value": [c.p_value for c in values], "distance": [one.distance for one in self.features]}
        columns |= {"mean_then": [c.then for c in values], "mean_now": [c.now for c in values]}
        missing = [one["missing"] for one in self.features]
        columns |= {"missing_then": [c.then for c in missing], "missing_now": [c.now for c in missing]}
        columns["new"] = [one.new_share for one in self.features]
        moved = [one.contribution for one in self.features]
        columns |= {"contribution_then": [c.then for c in moved], "contribution_now": [c.now for c in moved]}
        return columns | {"contribution_moved": [c.size for c in moved]}

    def _check_columns(self) -> dict[str, Column]:
        rows = [(one.name, check) for one in self.features for check in one.checks]
        rows += [("", check) for check in self.score]
        names = ("what", "output", "then", "now", "size", "chance", "p_value")
        columns: dict[str, Column] = {name: [getattr(check, name) for _, check in rows] for name in names}
        verdicts = [self._verdict(check) for _, check in rows]
        return {"feature": [name for name, _ in rows], **columns, "verdict": verdicts}
