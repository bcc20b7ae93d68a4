"""Ranges of the score and of the prediction that are proven from the tables, when some features are unknown."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nae._typing import Array
from nae._words import counted
from nae.certificates import Tables, tables_of
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns
from nae.errors import ConfigError
from nae.explanation.odds import LogOdds, log_odds, outward
from nae.explanation.printed import digest
from nae.explanation.serial import Serial, make_frame
from nae.explanation.within import read_domains, without
from nae.ranges import Boxes, Domain, Problem
from nae.tables.model import TableModel

__all__ = ["BUDGET", "OpenRows", "PredictionRange", "check_budget", "predict_range"]

BUDGET = 32  # boxes per row and end of the range
_MOST_CLASSES = 6  # up to so many, the log-odds of every pair are bounded on their own
_PLACES = 2**22  # numbers that are kept for the rows of one search


@dataclass(frozen=True, eq=False)
class PredictionRange(Serial):
    """The least and the largest score and prediction of every row, whatever the unknown features are."""

    type_name: ClassVar[str] = "prediction range"

    lower: Array  # (row,) or (row, output), of the score
    upper: Array
    lower_prediction: Array  # (row,) or (row, output); for a classifier, probabilities (row, class)
    upper_prediction: Array
    certain: tuple[str | None, ...]  # the class that is chosen in any case, or None, per row; empty for regression
    features: tuple[str, ...]  # those that are unknown, or known within limits
    outputs: tuple[str, ...]
    classes: tuple[str, ...]
    rounding: float  # by how much the range was widened, because a model rounds its scores

    def __len__(self) -> int:
        return len(self.lower)

    def __repr__(self) -> str:
        title = f"PredictionRange({counted(len(self), 'row')}, unknown: {', '.join(self.features)})"
        shown = {name: column.tolist() for name, column in self.columns.items()}
        decided = {"certain": [name or "" for name in self.certain]} if self.classes else {}
        return digest(title, {"row": [str(row) for row in range(len(self))]} | shown | decided, "to_frame()")

    @property
    def width(self) -> Array:
        """The distance of the ends, (row,) or (row, output)."""
        return self.upper - self.lower

    @property
    def columns(self) -> dict[str, Array]:
        """The ends of score and prediction by name, (row,) each."""
        found: dict[str, Array] = {}
        for names, word, ends in (
            (self.outputs, "score", (self.lower, self.upper)),
            (self.classes or self.outputs, "probability" if self.classes else "prediction", self._predictions),
        ):
            for at, name in enumerate(names):
                label = word if len(names) == 1 else f"{word} of {name}"
                for end, values in zip(("lower", "upper"), ends, strict=True):
                    found[f"{end} {label}"] = values.reshape(len(self), -1)[:, at]
        return found

    @property
    def _predictions(self) -> tuple[Array, Array]:
        return self.lower_prediction, self.upper_prediction

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per row of the table."""
        return make_frame(self.columns | ({"certain": list(self.certain)} if self.classes else {}), backend)


def predict_range(
    model: TableModel,
    read: Callable[[Any], Columns],
    X: Any,
    *,
    unknown: Any = (),
    within: Any = None,
    budget: int = BUDGET,
    offset: Any = None,
) -> PredictionRange:
    """Return the ranges of a table's rows; see :meth:`nae.tables.answers.proves.Proves.predict_range`."""
    domains = read_domains(model, unknown, within)
    if not domains:
        raise ConfigError(
            "predict_range needs a feature that is unknown or within limits; none is given. "
            f"Pass one, such as unknown=[{model.feature_names[0]!r}]."
        )
    cells = model.schema.locate(read(without(X, model, domains)), dtype=model.experts.dtype)
    moved = np.zeros((len(cells), 1)) if offset is None else model.read_offset(offset, len(cells))
    moved = np.broadcast_to(moved, (len(cells), model.n_outputs))
    return _ranges(OpenRows(model, cells, domains, check_budget(budget), moved))


def check_budget(budget: Any) -> int:
    """Return the budget, a number of at least 1."""
    if not isinstance(budget, (int, np.integer)) or isinstance(budget, bool) or budget < 1:
        raise ConfigError(f"budget must be an integer of at least 1, the number of boxes per row; got {budget!r}.")
    return int(budget)


@dataclass(frozen=True, eq=False)
class OpenRows:
    """Rows of which some features have a domain."""

    model: TableModel
    cells: Cells
    domains: tuple[Domain, ...]
    budget: int
    offset: Array  # (row, output)

    def ends(self, tables: Tables) -> tuple[Array, Array]:
        """Return the proven bounds of the rows' scores, (row,) each, widened by what rounding may change."""
        model, margin = self.model, 2 * tables.rounding  # that of the model, and that of the bounds
        kept = model.n_experts * model.n_features * model.n_members + self.budget * (len(self.domains) + 1)
        step = max(1, _PLACES // kept)
        found = np.empty((2, len(self.cells)))
        for end, sign in zip(found, (-1, 1), strict=True):
            for start in range(0, len(self.cells), step):
                rows = slice(start, start + step)
                problem = Problem.of(tables, self.cells.take(rows), self.domains, sign=sign)
                end[rows] = sign * (Boxes.of(problem, self.budget).halve().highest + margin)
        moved = self.offset @ tables.direction
        return found[0] + moved, found[1] + moved

    def log_odds(self, lower: Array, upper: Array) -> LogOdds:
        """Return the log-odds of every pair of classes, given bounds of the scores (row, output)."""
        odds = log_odds(self.model, lower, upper)
        if 2 < len(self.model.classes) <= _MOST_CLASSES:
            return odds.narrowed(lambda direction: self.ends(tables_of(self.model, direction)))
        return odds


def _ranges(rows: OpenRows) -> PredictionRange:
    model = rows.model
    tables = [tables_of(model, direction) for direction in np.eye(model.n_outputs)]
    lower, upper = (np.stack(end, axis=1) for end in zip(*map(rows.ends, tables), strict=True))
    certain: tuple[str | None, ...] = ()
    if model.classes:
        odds = rows.log_odds(lower, upper)
        (low, high), certain = odds.probabilities, odds.certain(model)
    else:
        low, high = (_squeezed(outward(model.link.inverse(end), sign)) for end, sign in ((lower, -1), (upper, 1)))
    return PredictionRange(
        lower=_squeezed(lower),
        upper=_squeezed(upper),
        lower_prediction=low,
        upper_prediction=high,
        certain=certain,
        features=tuple(model.feature_names[domain.feature] for domain in rows.domains),
        outputs=model.outputs,
        classes=model.classes,
        rounding=max(2 * one.rounding for one in tables),
    )


def _squeezed(values: Array) -> Array:
    return values[:, 0] if values.shape[1] == 1 else values
