"""TableModel: a fitted model as numpy tables. Predictions, explanations and bounds all read the same few arrays."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from nae._typing import AnyArray, Array, IntArray
from nae._words import counted
from nae.contributions import Contributions
from nae.encoding.cells import Cells
from nae.encoding.columns import Columns
from nae.encoding.frames import read_table
from nae.encoding.record import RecordReader
from nae.encoding.schema import Schema
from nae.errors import DataError, UserError
from nae.links import Link
from nae.tables.answers import Answers
from nae.tables.clamps import Clamps
from nae.tables.evidence import Evidence
from nae.tables.gates import GateTables
from nae.tables.lookup import interpolate
from nae.tables.residuals import Residuals
from nae.tables.routing import Routing
from nae.tables.statistics import Statistics
from nae.tables.summary import TrainingSummary
from nae.tables.working import in_turn

if TYPE_CHECKING:
    from nae.tables.kernel import Kernel

__all__ = ["TableModel"]

Result = TypeVar("Result")

_CHUNK = 200_000  # numbers in a chunk of rows; about as many fit into the cache of a core


@dataclass(frozen=True, eq=False)
class TableModel(Answers):
    """A fitted model: tables of experts and gate terms over knots, and linear interpolation between them.

    Attributes
    ----------
    schema
        Features, knots and levels.
    experts
        (slot, expert, output, member).
    gate
        Gate terms over the same slots.
    routing
        How logits become the weights of the experts.
    intercept
        (output,).
    link
        How the score becomes the prediction.
    outputs
        Names of the targets or classes; one name for a single output.
    classes
        The class labels of a classifier, as strings; empty for regression. The score of a model of two classes is the
        log-odds of the second.
    class_weight
        The weight of each class when :meth:`choose` assigns a class, (class,); empty if all weights are equal.
        Probabilities do not depend on it.
    statistics
        Aggregates of the training rows.
    clamps
        The range of the contributions at every slot. If None, the experts alone bound them.
    residuals
        The distribution of residuals on rows that the model did not learn from. If None, intervals need such rows.
    evidence
        What the training rows say of every effect, and how surely. If None, effects have no band.
    training
        What the model remembers of its training.
    kernel
        The kernel that :meth:`compile` made. If None, numpy does the work.
    """

    schema: Schema
    experts: Array
    gate: GateTables
    routing: Routing
    intercept: Array
    link: Link
    outputs: tuple[str, ...] = ("score",)
    classes: tuple[str, ...] = ()
    class_weight: tuple[float, ...] = ()
    statistics: Statistics | None = None
    clamps: Clamps | None = None
    residuals: Residuals | None = None
    evidence: Evidence | None = None
    training: TrainingSummary = field(default_factory=TrainingSummary)
    kernel: "Kernel | None" = field(default=None, repr=False)

    def __repr__(self) -> str:
        return (
            f"TableModel({counted(self.n_features, 'feature')}, {counted(self.n_experts, 'expert')}, "
            f"{counted(self.n_members, 'member')}, {counted(self.n_outputs, 'output')}, "
            f"{self.gate.kind} gate, {self.routing.name} routing)"
        )

    @property
    def n_features(self) -> int:
        return len(self.schema)

    @property
    def n_experts(self) -> int:
        return int(self.experts.shape[1])

    @property
    def n_outputs(self) -> int:
        return int(self.experts.shape[2])

    @property
    def n_targets(self) -> int:
        """The number of columns of the truth: one for several quantiles, and for classes; else one per output."""
        return 1 if self.classes or self.training.levels else self.n_outputs

    @property
    def n_members(self) -> int:
        return int(self.experts.shape[3])

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.schema.names

    @property
    def offset_names(self) -> tuple[str, ...] | None:
        """What the offset of the training rows was called, nothing where it had no name; None without an offset."""
        return self.training.offset

    def cells(self, X: Any) -> Cells:
        """Return the cells of a table. Columns are matched by name if the table has names."""
        if isinstance(X, Cells):
            return X
        if type(X) is dict and self.schema.has_names:
            found = self._record_reader.read(X, self.experts.dtype)
            if found is not None:
                return found
        columns = self._explained_columns(X)
        if self.kernel is not None and len(columns.arrays) == self.n_features:
            return self.kernel.locate(self.schema, columns)
        return self.schema.locate(columns, dtype=self.experts.dtype)

    @cached_property
    def _record_reader(self) -> RecordReader:
        return RecordReader.of(self.schema)

    def compile(self) -> "TableModel":
        """Return the same model with a kernel compiled by numba, which is many times faster.

        Scores and contributions differ from those of numpy by less than 1e-6 of the largest one, because
        single-precision numbers are summed in another order. Compiling takes some seconds, once per process and type
        of number. Nothing is stored on disk. Large tables are divided among the cores that the process may use.
        Requires ``pip install 'neural-additive-experts[fast]'``.
        """
        from nae.tables.kernel import make_kernel
        from nae.tables.lowered import lower

        kernel = make_kernel(lower(self))
        nothing = Columns(tuple(np.full(1, np.nan) for _ in self.schema.features))
        kernel.evaluate(kernel.locate(self.schema, nothing))  # compile now rather than at the first request
        return replace(self, kernel=kernel)

    def _explained_model(self) -> "TableModel":
        return self

    def _explained_columns(self, X: Any) -> Columns:
        columns = read_table(X, only=self.schema.names if self.schema.has_names else None)
        if columns.names is not None and self.schema.has_names:
            return columns.select(self.schema.names)
        return columns

    def decision_function(self, X: Any, *, offset: AnyArray | None = None) -> Array:
        """Return the score of every row: (row,), or (row, output) if the model has several outputs."""
        cells = self.cells(X)
        if self.kernel is not None:
            score = self.kernel.evaluate(cells).score
        else:
            score = np.empty((len(cells), self.n_outputs))
            for rows, _, values in self.each(cells, self.contribute):
                score[rows] = values.sum(axis=1, dtype=np.float64)
            score += self.intercept
        if offset is None:
            return self._squeeze(score)
        return self._squeeze(score + self.read_offset(offset, len(score)))

    def read_offset(self, offset: AnyArray, n_rows: int) -> Array:
        """Return an offset with a column per output, or with one column for all, (row, column)."""
        n_columns = 1 if self.training.levels else self.n_outputs  # quantiles keep their order with one for all
        return _as_offset(offset, n_rows, n_columns)

    def predict(self, X: Any, *, offset: AnyArray | None = None) -> AnyArray:
        """Return the predicted target of every row. For a classifier, this is the class that :meth:`choose` returns."""
        if self.classes:
            best = self.choose(self.predict_proba(X, offset=offset))
            return np.asarray(np.array(self.classes, dtype=object)[best])
        return self.link.inverse(self.decision_function(X, offset=offset))

    def choose(self, probability: Array) -> IntArray:
        """Return the position of the chosen class, (row,), given the probabilities of all classes, (row, class).

        This is the class with the largest product of probability and class weight. Without class weights, it is the
        most probable class.
        """
        weighted = probability * np.array(self.class_weight) if self.class_weight else probability
        return np.asarray(weighted.argmax(axis=1))

    def predict_proba(self, X: Any, *, offset: AnyArray | None = None) -> Array:
        """Return the probability of every class, (row, class)."""
        if not self.classes:
            raise UserError("predict_proba needs a classifier; this model predicts numbers. Use predict.")
        mean = self.link.inverse(self.decision_function(X, offset=offset))
        return mean if mean.ndim == 2 else np.stack([1 - mean, mean], axis=1)

    def contributions(self, X: Any, *, with_experts: bool = False) -> Contributions:
        """Return what every feature contributes to every row's score, with its bounds.

        Parameters
        ----------
        X
            A table.
        with_experts
            Also return expert values and gate weights.
        """
        cells = self.cells(X)
        if self.kernel is not None and not with_experts:
            found = self.kernel.evaluate(cells, with_values=True)
            return self._contributions(found.values, found.lower, found.upper)
        shape = (len(cells), self.n_features, self.n_outputs)
        values, lower, upper = np.empty(shape), np.empty(shape), np.empty(shape)
        kept: list[tuple[Array, Array]] = []
        for rows, _, (own, ends, experts, routing) in self.each(cells, self._contribute_within):
            values[rows], (lower[rows], upper[rows]) = own, ends
            if with_experts:
                kept.append((experts.transpose(0, 1, 4, 2, 3), routing.transpose(0, 1, 3, 2)))
        # The mean of equal numbers may differ from them in the last digit. Then the bound moves, not the contribution.
        np.minimum(lower, values, out=lower)
        np.maximum(upper, values, out=upper)
        if not with_experts:
            return self._contributions(values, lower, upper)
        experts, routing = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        return self._contributions(values, lower, upper, experts=experts, routing=routing)

    def _contributions(self, values: Array, lower: Array, upper: Array, **more: Array) -> Contributions:
        return Contributions(
            values=self._squeeze(values),
            lower=self._squeeze(lower),
            upper=self._squeeze(upper),
            intercept=self._squeeze(self.intercept.astype(np.float64)),
            feature_names=self.feature_names,
            output_names=self.outputs if self.n_outputs > 1 else (),
            **more,
        )

    @cached_property
    def slot_bounds(self) -> tuple[Array, Array]:
        """Lower and upper bound at every slot, (slot, output) each.

        Between two knots every expert is linear, so without clamps the extremes over the slots are those over all
        inputs.
        """
        least, most = (bound.mean(axis=-1) for bound in self.routing.bounds(self.experts, axis=1))  # (T, O)
        if self.clamps is None:
            return least, most
        return self.clamps.clip_slots(least), self.clamps.clip_slots(most)

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the model to one file without code. ``nae.load`` reads it.

        Examples
        --------
        >>> import tempfile, nae
        >>> from nae.encoding import Number, Schema
        >>> from nae.links import LINKS
        >>> from nae.tables import GateTables, SoftmaxRouting
        >>> line = TableModel(
        ...     schema=Schema((Number("x", np.array([0.0, 1.0])),)),
        ...     experts=np.array([0.0, 2.0, 1.0, 1.0]).reshape(4, 1, 1, 1),
        ...     gate=GateTables("additive", np.zeros((4, 1, 1)), np.zeros((1, 1))),
        ...     routing=SoftmaxRouting(1),
        ...     intercept=np.zeros(1),
        ...     link=LINKS["identity"],
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     line.save(f"{folder}/line.nae")
        ...     nae.load(f"{folder}/line.nae").predict({"x": [0.25, None]})
        array([0.5, 1. ])
        """
        from nae.tables.archive import save

        save(self, path)

    def with_training(self, **entries: Any) -> "TableModel":
        """Return the same model with further entries in its training summary: JSON values, as a file has them."""
        return replace(self, training=TrainingSummary.from_dict(self.training.to_dict() | entries))

    def _contribute(self, cells: Cells) -> tuple[Array, Array, Array]:
        """Return contributions (B, F, O), experts (B, F, K, O, M) and weights (B, F, K, M)."""
        experts = interpolate(self.experts, cells)
        if self.n_experts == 1:
            routing = np.ones((len(cells), self.n_features, 1, self.n_members), dtype=experts.dtype)
            return self.clip(experts[:, :, 0].mean(axis=-1), cells), experts, routing
        routing = self.routing.weights(self.gate.logits(cells))
        routing = np.ascontiguousarray(routing.transpose(0, 2, 1, 3))
        if self.n_outputs == 1:  # numpy computes one long sum much faster
            shape = (len(cells), self.n_features, self.n_experts * self.n_members)
            values = np.einsum("bfi,bfi->bf", experts.reshape(shape), routing.reshape(shape))[..., None]
        else:
            values = np.einsum("bfkom,bfkm->bfo", experts, routing)
        values /= self.n_members
        return self.clip(values, cells), experts, routing

    def _contribute_within(self, cells: Cells) -> tuple[Array, list[Array], Array, Array]:
        """Return contributions, their lower and upper bounds, experts and weights."""
        values, experts, routing = self._contribute(cells)
        by_expert = np.ascontiguousarray(experts.transpose(2, 0, 1, 3, 4))  # numpy reduces the first axis much faster
        bounds = self.routing.bounds(by_expert, axis=0)  # (B, F, O, M)
        return values, [self.clip(bound.mean(axis=-1), cells) for bound in bounds], experts, routing

    def clip(self, values: Array, cells: Cells) -> Array:
        """Return contributions or their bounds, (row, feature, output), within the clamps; as they are without any."""
        return np.asarray(values) if self.clamps is None else self.clamps.clip(values, cells)

    def contribute(self, cells: Cells) -> Array:
        """Return the contributions of a few rows, (row, feature, output), computed all at once."""
        return self._contribute(cells)[0]

    def each(self, cells: Cells, work: Callable[[Cells], Result]) -> Iterator[tuple[slice, Cells, Result]]:
        """Yield the rows in chunks that need a bounded amount of memory, with what ``work`` makes of each."""
        return in_turn(lambda chunk: (*chunk, work(chunk[1])), self.iterate(cells))

    def iterate(self, cells: Cells) -> Iterator[tuple[slice, Cells]]:
        """Yield the rows in chunks that need a bounded amount of memory."""
        per_row = self.n_members * self.n_features * self.n_experts * (self.n_outputs + 2)
        step = max(1, _CHUNK // max(per_row, 1))
        for start in range(0, max(len(cells), 1), step):  # a table without rows is one empty chunk
            rows = slice(start, start + step)
            yield rows, cells.take(rows)

    def _squeeze(self, values: Array) -> Array:
        return values[..., 0] if self.n_outputs == 1 else values


def _as_offset(offset: AnyArray, n_rows: int, n_columns: int) -> Array:
    given = np.asarray(offset, dtype=np.float64)
    shaped = given[:, None] if given.ndim == 1 else given
    if shaped.ndim != 2 or len(shaped) != n_rows or shaped.shape[1] not in (1, n_columns):
        raise DataError(f"offset must have one value per row ({n_rows}); got shape {given.shape}.")
    return shaped
