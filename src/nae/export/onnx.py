"""A model as ONNX. It has one input per feature; its outputs are scores, predictions, contributions and bounds.

Numbers are float64 of shape (row, 1), with NaN for missing values. Categories are strings, with ``MISSING_TOKEN`` for
missing values. If only some experts are active, logits that are equal up to rounding may be ordered differently.
"""

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from nae._files import write_whole
from nae._optional import require
from nae._typing import Array
from nae.encoding.schema import Category, Number
from nae.errors import UserError
from nae.export.source import lowered, require_unicode, scaled_spans
from nae.tables.lowered import Clip, Lowered, Mix, OneExpert, Step
from nae.tables.routing import EqualRouting, SoftmaxRouting
from nae.tables.steps import Multiply, OwnTerms, Rectify, SumTerms

__all__ = ["MISSING_TOKEN", "to_onnx", "write_onnx"]

MISSING_TOKEN = "<missing>"  # noqa: S105
_OPSET, _ML_OPSET, _IR = 17, 3, 9


def to_onnx(model: Any, *, missing: str = MISSING_TOKEN) -> bytes:
    """Return a model, or the model of a fitted estimator, as the bytes of an ONNX file.

    Parameters
    ----------
    model
        A TableModel or a fitted estimator.
    missing
        The text that stands for a missing category. It must not be a level.

    Returns
    -------
    bytes
        Outputs: ``scores`` (row, output), ``probabilities`` (row, class) or ``predictions`` (row, output),
        ``contributions``, ``lower`` and ``upper`` (row, feature, output).
    """
    require("onnx", extra="export")
    found = lowered(model)
    require_unicode(found, "ONNX")
    taken = {"scores", "predictions", "probabilities", "contributions", "lower", "upper", ""}
    for feature in found.schema.features:
        if feature.name in taken or feature.name.startswith("nae."):
            raise UserError(f"An ONNX input cannot be called {feature.name!r}; rename the column before fit.")
        if isinstance(feature, Category) and missing in (*feature.levels, *feature.rare):
            raise UserError(f"{missing!r} is a level of {feature.name!r}; pass another text as missing=.")
    return bytes(_Builder(found, missing).build())


def write_onnx(model: Any, path: str | os.PathLike[str], *, missing: str = MISSING_TOKEN) -> None:
    """Write the result of :func:`to_onnx` to a file."""
    write_whole(path, to_onnx(model, missing=missing))


class _Builder:
    """Collects nodes and constants. A method returns the names of the values that its nodes compute."""

    def __init__(self, model: Lowered, missing: str) -> None:
        from onnx import TensorProto, helper, numpy_helper

        self.model, self.missing = model, missing
        self.helper, self.numpy_helper, self.types = helper, numpy_helper, TensorProto
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.real = TensorProto.FLOAT if model.dtype == np.float32 else TensorProto.DOUBLE
        self.cells = [self._cell(i) for i in range(model.n_features)]

    def node(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        name = out or f"nae.{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, dtype: Any) -> str:
        name = f"nae.constant.{len(self.constants)}"
        self.constants.append(self.numpy_helper.from_array(np.array(value, dtype=dtype, order="C"), name))
        return name

    def reals(self, value: Any) -> str:
        return self.constant(value, self.model.dtype)

    def sums(self, value: str, axis: int, *, keepdims: int = 0) -> str:
        return self.node("ReduceSum", value, self.constant([axis], np.int64), keepdims=keepdims)

    def build(self) -> bytes:
        found: tuple[str, ...] = ()
        for step in self.model.steps:
            found = EMITTERS[type(step)](self, step, *found)
        for name, out in zip(found, ("contributions", "lower", "upper"), strict=True):
            self.node("Identity", name, out=out)
        self.node("Add", self.sums("contributions", 1), self.constant(self.model.intercept, np.float64), out="scores")
        return self._serialize(_LINKS[self.model.link.name](self))

    def _cell(self, i: int) -> tuple[str, str, str]:
        """Return slot, upper slot and fraction of a feature, (B, 1) each."""
        feature, offset = self.model.schema.features[i], int(self.model.schema.offsets[i])
        if isinstance(feature, Number):
            return self._number_cell(feature, offset)
        n_levels = len(feature.levels)
        slots = [*range(n_levels), *([n_levels] * len(feature.rare)), feature.n_values]
        slot = self.node(
            "LabelEncoder",
            feature.name,
            domain="ai.onnx.ml",
            keys_strings=[*feature.levels, *feature.rare, self.missing],
            values_int64s=[slot + offset for slot in slots],
            default_int64=feature.n_values + 1 + offset,
        )
        return slot, slot, ""

    def _number_cell(self, feature: Number, offset: int) -> tuple[str, str, str]:
        knots, given = feature.knots, feature.name
        table, one = self.constant(knots, np.float64), self.constant([1], np.int64)
        first, last = self.constant(knots[:1], np.float64), self.constant(knots[-1:], np.float64)
        is_known = self.node("Equal", given, given)  # NaN differs from itself
        inside = self.node("Min", self.node("Max", self.node("Where", is_known, given, first), first), last)
        is_above = self.node("GreaterOrEqual", inside, table)  # (B, G)
        at = self.node("Sub", self.sums(self.node("Cast", is_above, to=self.types.INT64), 1, keepdims=1), one)
        up = self.node("Min", self.node("Add", at, one), self.constant([len(knots) - 1], np.int64))
        scale, span = scaled_spans(knots)
        own = [self.node("Gather", self.constant(values, np.float64), at) for values in (scale, knots * scale, span)]
        fraction = self.node("Div", self.node("Sub", self.node("Mul", inside, own[0]), own[1]), own[2])
        missing, shift = self.constant([feature.n_values + offset], np.int64), self.constant([offset], np.int64)
        slot = self.node("Where", is_known, self.node("Add", at, shift), missing)
        upper = self.node("Where", is_known, self.node("Add", up, shift), missing)
        return slot, upper, self.node("Cast", fraction, to=self.real)

    def _look_up(self, table: str, cell: tuple[str, str, str]) -> str:
        """Return the interpolated rows of a table (T, N) at a cell, (B, 1, N)."""
        slot, upper, fraction = cell
        low = self.node("Gather", table, slot)
        if not fraction:
            return low
        part = self.node("Unsqueeze", fraction, self.constant([2], np.int64))
        high = self.node("Gather", table, upper)
        return self.node("Add", low, self.node("Mul", part, self.node("Sub", high, low)))

    def _at_cells(self, table: Array) -> list[str]:
        """Return the rows of a table (slot, ...) at the cell of every feature, (B, 1, .) each."""
        flat = self.reals(table.reshape(len(table), -1))
        return [self._look_up(flat, cell) for cell in self.cells]

    def reshape(self, value: str, *shape: int) -> str:
        return self.node("Reshape", value, self.constant([-1, *shape], np.int64))

    def sum_terms(self, step: SumTerms) -> tuple[str]:
        """Return bias plus summed terms, (B, unit, M)."""
        total = self.node("Sum", *self._at_cells(step.terms))
        hidden = self.node("Add", total, self.reals(step.bias.reshape(1, 1, -1)))
        return (self.reshape(hidden, *step.bias.shape),)

    def own_terms(self, step: OwnTerms) -> tuple[str]:
        """Return bias plus every feature's own terms, (B, K * F, M)."""
        joined = self.node("Concat", *self._at_cells(step.terms), axis=1)
        apart = self.reshape(joined, self.model.n_features, *step.terms.shape[1:])
        own = self.reshape(self.node("Transpose", apart, perm=[0, 2, 1, 3]), *step.bias.shape)
        return (self.node("Add", own, self.reals(step.bias[None])),)

    def rectify(self, step: Rectify, values: str) -> tuple[str]:
        return (self.node("Relu", values),)

    def multiply(self, step: Multiply, values: str) -> tuple[str]:
        """Return the product with every member's matrix plus its bias, (B, unit, M)."""
        product = self.node("MatMul", self.node("Transpose", values, perm=[2, 0, 1]), self.reals(step.matrix))
        moved = self.node("Add", product, self.reals(step.bias.T[:, None]))  # (M, B, unit)
        return (self.node("Transpose", moved, perm=[1, 2, 0]),)

    def softmax(self, step: SoftmaxRouting, values: str) -> tuple[str]:
        """Return the weights of the experts, (B, K, F, M)."""
        logits = self._by_expert(values)
        if step.n_active == self.model.n_experts:
            return (self.node("Softmax", logits, axis=1),)
        top, chosen = self._top(logits, step.n_active)
        return (self._scatter(logits, chosen, self.node("Softmax", top, axis=1)),)

    def equal(self, step: EqualRouting, values: str) -> tuple[str]:
        """Return the weights of the experts, (B, K, F, M)."""
        logits = self._by_expert(values)
        top, chosen = self._top(logits, step.n_active)
        share = self.node("Add", self.node("Mul", top, self.reals(0.0)), self.reals(1.0 / step.n_active))
        return (self._scatter(logits, chosen, share),)

    def _by_expert(self, values: str) -> str:
        return self.reshape(values, self.model.n_experts, self.model.n_features, self.model.n_members)

    def _top(self, values: str, n: int, **attributes: Any) -> tuple[str, str]:
        """Return the ``n`` largest values along the experts, and which they are."""
        top, chosen = f"nae.{len(self.nodes)}", f"nae.{len(self.nodes)}.index"
        number = self.constant([n], np.int64)
        self.nodes.append(self.helper.make_node("TopK", [values, number], [top, chosen], axis=1, **attributes))
        return top, chosen

    def _scatter(self, logits: str, chosen: str, weights: str) -> str:
        """Return the weights at the chosen experts, and zero at the others."""
        return self.node("ScatterElements", self.node("Mul", logits, self.reals(0.0)), chosen, weights, axis=1)

    def one_expert(self, step: OneExpert) -> tuple[str]:
        return (self.reals(np.ones((1, 1, 1, 1))),)

    def mix(self, step: Mix, weights: str) -> tuple[str, str, str]:
        """Return contributions and bounds, (B, F, O) each."""
        joined = self.node("Concat", *self._at_cells(step.experts), axis=1)
        apart = self.reshape(joined, self.model.n_features, *step.experts.shape[1:])
        experts = self.node("Transpose", apart, perm=[0, 2, 3, 1, 4])  # (B, K, O, F, M)
        by_expert = self.node("Unsqueeze", weights, self.constant([2], np.int64))
        contributions = self._member_mean(self.sums(self.node("Mul", experts, by_expert), 1))
        least, most = (self._member_mean(value) for value in self._extremes(experts, step.n_extreme))
        return contributions, self.node("Min", least, contributions), self.node("Max", most, contributions)

    def clip(self, step: Clip, *values: str) -> tuple[str, ...]:
        """Return contributions and bounds within the range at their cells, (B, F, O) each."""
        ends = (self.node("Concat", *self._at_cells(table), axis=1) for table in (step.lower, step.upper))
        lower, upper = (self.node("Cast", end, to=self.types.DOUBLE) for end in ends)
        return tuple(self.node("Min", self.node("Max", value, lower), upper) for value in values)

    def _extremes(self, experts: str, n: int) -> tuple[str, str]:
        """Return the means of the ``n`` smallest and of the ``n`` largest experts, (B, O, F, M) each."""
        if n == 1:
            least = self.node("ReduceMin", experts, axes=[1], keepdims=0)
            return least, self.node("ReduceMax", experts, axes=[1], keepdims=0)
        tops = (self._top(experts, n, largest=largest)[0] for largest in (0, 1))
        least, most = (self.node("ReduceMean", top, axes=[1], keepdims=0) for top in tops)
        return least, most

    def _member_mean(self, value: str) -> str:
        """Return the mean over the members as float64: (B, O, F, M) -> (B, F, O)."""
        mean = self.node("ReduceMean", value, axes=[3], keepdims=0)
        return self.node("Cast", self.node("Transpose", mean, perm=[0, 2, 1]), to=self.types.DOUBLE)

    def predictions(self, op: str) -> tuple[str, int]:
        """Return the name and width of the output on the scale of the target."""
        return self.node(op, "scores", out="predictions"), self.model.n_outputs

    def two_classes(self) -> tuple[str, int]:
        """Return the name and width of the output of probabilities."""
        second, first = self.node("Sigmoid", "scores"), self.node("Sigmoid", self.node("Neg", "scores"))
        return self.node("Concat", first, second, axis=1, out="probabilities"), 2

    def many_classes(self) -> tuple[str, int]:
        """Return the name and width of the output of probabilities."""
        return self.node("Softmax", "scores", axis=1, out="probabilities"), self.model.n_outputs

    def _serialize(self, prediction: tuple[str, int]) -> bytes:
        model, helper, double = self.model, self.helper, self.types.DOUBLE
        per_feature = ["row", model.n_features, model.n_outputs]
        inputs = [
            helper.make_tensor_value_info(
                feature.name, double if isinstance(feature, Number) else self.types.STRING, ["row", 1]
            )
            for feature in model.schema.features
        ]
        outputs = [
            helper.make_tensor_value_info("scores", double, ["row", model.n_outputs]),
            helper.make_tensor_value_info(prediction[0], double, ["row", prediction[1]]),
            *(helper.make_tensor_value_info(name, double, per_feature) for name in ("contributions", "lower", "upper")),
        ]
        graph = helper.make_graph(self.nodes, "nae", inputs, outputs, initializer=self.constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
        made = helper.make_model(graph, producer_name="nae", opset_imports=opsets, ir_version=_IR)
        helper.set_model_props(
            made,
            {
                "features": json.dumps(list(model.schema.names)),
                "outputs": json.dumps(list(model.outputs)),
                "classes": json.dumps(list(model.classes)),
                "missing": self.missing,
            },
        )
        from onnx import checker

        checker.check_model(made)
        return bytes(made.SerializeToString())


EMITTERS: dict[type[Step], Callable[..., tuple[str, ...]]] = {
    SumTerms: _Builder.sum_terms,
    OwnTerms: _Builder.own_terms,
    Rectify: _Builder.rectify,
    Multiply: _Builder.multiply,
    SoftmaxRouting: _Builder.softmax,
    EqualRouting: _Builder.equal,
    OneExpert: _Builder.one_expert,
    Mix: _Builder.mix,
    Clip: _Builder.clip,
}
"""Every step in ONNX, given the names of the values that the step before it computes."""
_LINKS: dict[str, Callable[[_Builder], tuple[str, int]]] = {
    "identity": lambda builder: builder.predictions("Identity"),
    "log": lambda builder: builder.predictions("Exp"),
    "logit": _Builder.two_classes,
    "softmax": _Builder.many_classes,
}
