"""The local explanation: the contributions of a row, with bounds, own effects and the causes of their shifts."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae._words import counted
from nae.encoding.beside import read_offset
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns
from nae.encoding.schema import Category
from nae.errors import DataError, UserError, did_you_mean
from nae.explanation.context import context_parts, row_chunks
from nae.explanation.interpret import InterpretView
from nae.explanation.own import own_effects
from nae.explanation.printed import digest
from nae.explanation.reference import MeanGate, has_context, require_statistics
from nae.explanation.serial import Column, Serial, make_frame
from nae.explanation.units import Exchange, check_unit
from nae.quality import check_offset
from nae.tables.model import TableModel

__all__ = ["LocalExplanation", "as_given", "explain_local", "in_points", "shown"]

_PER_ROW = ("columns", "target", "values", "lower", "upper", "own", "causes", "parts", "rest", "prediction", "offset")


@dataclass(frozen=True, eq=False)
class LocalExplanation(InterpretView, Serial):
    """Contributions of rows, each split into the own effect of its value and the shift by the context.

    Up to rounding, ``values = own + shift`` and ``shift = parts.sum(axis=-1) + rest``. The score is
    ``values.sum(axis=1) + base``, where ``base`` is the intercept, plus the offset if there is one. Slicing returns the
    explanation of some rows: ``explanation[3]``, ``explanation[10:20]``.
    """

    type_name: ClassVar[str] = "local"
    explanation_type: ClassVar[str] = "local"

    name: str
    feature_names: tuple[str, ...]
    outputs: tuple[str, ...]  # targets or classes; for two classes, the one that the score speaks for
    classes: tuple[str, ...]
    link: str
    intercept: Array  # (output,)
    columns: tuple[AnyArray, ...]  # the rows as they were given, one array per feature
    target: AnyArray | None  # (row,) or (row, output): the actual target, if it was given
    values: Array  # (row, feature, output), the contributions
    lower: Array  # (row, feature, output), the smallest possible contribution of the feature at its value
    upper: Array  # (row, feature, output), the largest possible contribution
    own: Array  # (row, feature, output), the mean contribution at the value
    causes: IntArray  # (row, feature, output, cause), the features that caused the shift, the largest part first
    parts: Array  # (row, feature, output, cause), how much each cause changed the contribution
    rest: Array  # (row, feature, output), how much all other features changed it together
    prediction: Array  # (row, output), the inverse link of the score
    stability: Array | None  # (feature, output), agreement of the members; None for a single one
    offset: Array | None = None  # (row, output), added to the score and not explained
    unit: str = "score"  # in which contributions are; the intercept of others is the prediction of the average row

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        n_rows, n_features, n_outputs = self.values.shape
        sizes = f"{counted(n_rows, 'row')}, {counted(n_features, 'feature')}, {counted(n_outputs, 'output')}"
        if n_rows != 1:
            return f"LocalExplanation({sizes}; explanation[0] shows one row, to_frame() all of them)"
        output = int(self.prediction[0].argmax()) if len(self.classes) > 2 else 0
        name = f" of {self.outputs[output]}" if self.classes or n_outputs > 1 else ""
        prediction, score = self.prediction[0, output], self.score[0, output]
        base = f"{self.base_name} {self.intercept[output]:.4g}"
        facts = f"prediction{name} {prediction:.4g}, " + (
            f"score {score:.4g}, {base}" if self.unit == "score" else base
        )
        if self.offset is not None:
            facts += f", offset {self.offset[0, output]:.4g}"
        order = np.argsort(-np.abs(self.values[0, :, output]), kind="stable")
        numbers = {
            "contribution": self.values,
            "lower": self.lower,
            "upper": self.upper,
            "own": self.own,
            "shift": self.shift,
        }
        columns: dict[str, list[str] | list[float]] = {
            "feature": [self.feature_names[i] for i in order],
            "value": [shown(self.columns[i], digits=6)[0] or "missing" for i in order],
        }
        columns |= {key: part[0, order, output].tolist() for key, part in numbers.items()}
        return digest(f"LocalExplanation({sizes}; {facts})", columns, "to_frame()")

    def __getitem__(self, rows: int | slice | Sequence[int] | AnyArray) -> "LocalExplanation":
        picked = [rows] if isinstance(rows, (int, np.integer)) else rows
        if isinstance(rows, (int, np.integer)) and not -len(self) <= rows < len(self):
            raise UserError(f"A row must be in [0, {len(self) - 1}]; got {rows}.")
        content = {item.name: getattr(self, item.name) for item in fields(self)}
        for key in _PER_ROW:
            value = content[key]
            if isinstance(value, tuple):
                content[key] = tuple(column[picked] for column in value)
            elif value is not None:
                content[key] = value[picked]
        return LocalExplanation(**content)

    @property
    def shift(self) -> Array:
        """The change of each contribution by the context, (row, feature, output): ``values - own``."""
        return self.values - self.own

    @property
    def score(self) -> Array:
        """The sum of contributions and base, (row, output): the decision function, or the prediction in its unit."""
        return np.asarray(self.values.sum(axis=1) + self.base)

    @property
    def base(self) -> Array:
        """The number that contributions are added to, (row, output): the intercept, plus the offset if there is one."""
        shape = (len(self), len(self.intercept))
        return np.broadcast_to(self.intercept, shape) if self.offset is None else self.intercept + self.offset

    @property
    def base_name(self) -> str:
        """The name of what contributions are added to, apart from the offset: the intercept, or the average row."""
        return "intercept" if self.unit == "score" else "average row"

    def feature_index(self, name: str) -> int:
        """Return the position of a feature."""
        if name not in self.feature_names:
            raise UserError(f"No feature is called {name!r}.{did_you_mean(name, self.feature_names)}")
        return self.feature_names.index(name)

    def to_frame(self, backend: str = "pandas", *, level: str = "features") -> Any:
        """Return a data frame: one row per contribution (``level='features'``) or per part (``level='causes'``)."""
        if level not in ("features", "causes"):
            raise UserError(f"level must be 'features' or 'causes'; got {level!r}.")
        return make_frame(self._feature_columns() if level == "features" else self._cause_columns(), backend)

    def to_shap(self, output: str | int | None = None) -> Any:
        """Return a ``shap.Explanation`` with the model's own contributions in it; they are **not** Shapley values.

        Like Shapley values, they sum to the score, so shap's plots work. But they are not averages over coalitions: a
        contribution is the number that the fitted model itself adds for the feature. ``lower_bounds`` and
        ``upper_bounds`` hold the guaranteed bounds, and ``main_effects`` the own effects.

        Parameters
        ----------
        output
            An output by name or position. If None, all outputs.
        """
        from nae.explanation.shap import to_shap

        return to_shap(self, output)

    def _feature_columns(self) -> dict[str, Column]:
        n_rows, n_features, n_outputs = self.values.shape
        texts = [shown(column) for column in self.columns]
        pairs = [(row, feature) for row in range(n_rows) for feature in range(n_features)]
        flat = {key: getattr(self, key).ravel() for key in ("values", "lower", "upper", "own", "shift")}
        return {
            "row": np.repeat(np.arange(n_rows), n_features * n_outputs),
            "feature": [self.feature_names[feature] for _, feature in pairs for _ in range(n_outputs)],
            "value": [texts[feature][row] for row, feature in pairs for _ in range(n_outputs)],
            "output": list(self.outputs) * len(pairs),
            "contribution": flat["values"],
            "lower": flat["lower"],
            "upper": flat["upper"],
            "own": flat["own"],
            "shift": flat["shift"],
        }

    def _cause_columns(self) -> dict[str, Column]:
        n_rows, n_features, n_outputs, n_causes = self.parts.shape
        row, feature, output, _ = np.indices((n_rows, n_features, n_outputs, n_causes + 1)).reshape(4, -1)
        causes = np.concatenate([self.causes, np.full((*self.rest.shape, 1), -1)], axis=-1).ravel()
        return {
            "row": row,
            "feature": [self.feature_names[i] for i in feature],
            "output": [self.outputs[i] for i in output],
            "cause": ["rest" if i < 0 else self.feature_names[i] for i in causes],
            "part": np.concatenate([self.parts, self.rest[..., None]], axis=-1).ravel(),
        }


def explain_local(
    model: TableModel,
    columns: Columns,
    y: Any = None,
    *,
    offset: Any = None,
    n_causes: int = 10,
    name: str | None = None,
    unit: str = "score",
) -> LocalExplanation:
    """Return the explanation of rows whose columns are in the model's order."""
    statistics = require_statistics(model)
    unit = check_unit(model, unit)
    if n_causes < 1:
        raise UserError(f"n_causes must be at least 1; got {n_causes}.")
    cells = model.schema.locate(columns, dtype=model.experts.dtype)
    shape = (len(cells), model.n_features, model.n_outputs)
    found = model.contributions(cells)
    values, lower, upper = (part.reshape(shape) for part in (found.values, found.lower, found.upper))
    own = own_effects(model, cells, values, statistics.mean)
    n_kept = min(n_causes, model.n_features - 1)
    n_split = n_kept if unit == "score" or model.n_outputs == 1 else model.n_features - 1
    causes, parts, rest = _split(model, cells, values, own, n_split)
    target = None if y is None else np.asarray(y)
    if target is not None and len(target) != len(cells):
        raise DataError(f"y must have one value per row ({len(cells)}); got {len(target)}.")
    if target is not None:
        check_offset(model, offset)
    base = read_offset(offset, len(cells), model.n_outputs, is_per_class=len(model.classes) > 2)
    score = values.sum(axis=1) + model.intercept + (0.0 if base is None else base)
    explained = LocalExplanation(
        name=name or "Neural additive experts",
        feature_names=model.feature_names,
        outputs=model.outputs,
        classes=model.classes,
        link=model.link.name,
        intercept=model.intercept.astype(np.float64),
        columns=as_given(model, columns),
        target=target,
        values=values,
        lower=lower,
        upper=upper,
        own=own,
        causes=causes,
        parts=parts,
        rest=rest,
        prediction=model.link.inverse(score),
        stability=None if model.n_members == 1 else statistics.agreement,
        offset=base,
    )
    return explained if unit == "score" else _exchanged(explained, model, unit, n_kept)


def _exchanged(found: LocalExplanation, model: TableModel, unit: str, n_causes: int) -> LocalExplanation:
    """Return the explanation in the unit of the prediction, as changes from the average row."""
    exchange = Exchange.of(model, found.score, found.offset)
    lower, upper = exchange.bounds(found.lower, found.upper)
    values, own = exchange.contributions(found.values), exchange.contributions(found.own)
    causes, parts = found.causes, found.parts
    if model.n_outputs == 1:
        parts = parts * exchange.slopes[:, :, :, None]
    else:
        causes, parts = _largest(exchange.parts(causes, parts), n_causes)
    return replace(
        found,
        intercept=exchange.intercept,
        values=values,
        lower=np.minimum(lower, values),
        upper=np.maximum(upper, values),
        own=own,
        causes=causes,
        parts=parts,
        rest=(values - own) - parts.sum(axis=-1),
        offset=None if found.offset is None else exchange.base - exchange.intercept,
        unit=unit,
    )


def in_points(found: LocalExplanation) -> LocalExplanation:
    """Return probabilities in percentage points, to be shown; an explanation in another unit stays as it is."""
    if found.unit != "probability":
        return found
    names = ("intercept", "values", "lower", "upper", "own", "parts", "rest")
    hundred = {name: 100 * getattr(found, name) for name in names}
    return replace(found, offset=None if found.offset is None else 100 * found.offset, **hundred)


def _split(model: TableModel, cells: Cells, values: Array, own: Array, n_causes: int) -> tuple[IntArray, Array, Array]:
    """Return causes and parts (row, feature, output, cause), the largest first, and the rest (row, feature, output)."""
    shape = (len(cells), model.n_features, model.n_outputs, n_causes)
    causes, parts = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    statistics = require_statistics(model)
    if has_context(model):
        gate = MeanGate(model, statistics.gate_mean)
        for rows, few in row_chunks(model, cells):
            square = context_parts(gate, few, own[rows], statistics.typical)[1]
            square = square.transpose(0, 1, 3, 2)  # (B, F, O, cause)
            causes[rows], parts[rows] = _largest(square, n_causes)
    else:
        for i in range(model.n_features):
            causes[:, i] = np.delete(np.arange(model.n_features), i)[:n_causes]
    return causes, parts, (values - own) - parts.sum(axis=-1)


def _largest(parts: Array, n_causes: int) -> tuple[IntArray, Array]:
    """Return the positions and the values of the largest parts in size. A feature is not a cause of its own shift."""
    size = np.abs(parts)
    n_features = parts.shape[1]
    size[:, np.arange(n_features), :, np.arange(n_features)] = -1.0
    if n_causes < n_features - 1:
        found = np.argpartition(-size, n_causes - 1, axis=-1)[..., :n_causes]
        order = np.argsort(-np.take_along_axis(size, found, axis=-1), axis=-1, kind="stable")
        found = np.take_along_axis(found, order, axis=-1)
    else:
        found = np.argsort(-size, axis=-1, kind="stable")[..., :n_causes]
    return found, np.take_along_axis(parts, found, axis=-1)


def as_given(model: TableModel, columns: Columns) -> tuple[AnyArray, ...]:
    """Return the columns to show: numbers as numbers, everything else unchanged."""
    out = []
    for feature, array in zip(model.schema.features, columns.arrays, strict=True):
        is_text = array.dtype == object and not isinstance(feature, Category)
        out.append(array.astype(np.float64) if is_text and _all_numbers(array) else array)
    return tuple(out)


def _all_numbers(array: AnyArray) -> bool:
    return all(value is None or isinstance(value, (int, float)) for value in array)


def shown(column: AnyArray, *, digits: int = 12) -> list[str | None]:
    """Return a column as texts; missing values are None."""
    out: list[str | None] = []
    for value in column.tolist():
        if value is None or (isinstance(value, float) and np.isnan(value)):
            out.append(None)
        else:
            out.append(f"{value:.{digits}g}" if isinstance(value, float) else str(value))
    return out
