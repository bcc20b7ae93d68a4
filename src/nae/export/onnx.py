"""A model as ONNX: one input per feature; scores, predictions, contributions and bounds as outputs.

Numbers are float64 of shape (row, 1), NaN for missing; categories are strings, ``MISSING_TOKEN`` for missing. Where
only some experts are active, two logits that differ by rounding alone may be ordered differently than here.
"""

import json
import os
from typing import Any

import numpy as np

from nae._files import write_whole
from nae._optional import require
from nae.encoding.schema import Category, Number
from nae.errors import UserError
from nae.export.source import model_of, require_unicode, scaled_spans
from nae.tables.model import TableModel

__all__ = ["MISSING_TOKEN", "to_onnx", "write_onnx"]

MISSING_TOKEN = "<missing>"  # noqa: S105
_OPSET, _ML_OPSET, _IR = 17, 3, 9


def to_onnx(model: Any, *, missing: str = MISSING_TOKEN) -> bytes:
    """Return a model (or a fitted estimator) as the bytes of an ONNX file.

    Parameters
    ----------
    model
        A TableModel or a fitted estimator.
    missing
        The text that stands for a missing category; no level may be called so.

    Returns
    -------
    bytes
        Outputs: ``scores`` (row, output), ``probabilities`` (row, class) or ``predictions`` (row, output),
        ``contributions``, ``lower`` and ``upper`` (row, feature, output).
    """
    require("onnx", extra="export")
    tables = model_of(model)
    require_unicode(tables, "ONNX")
    taken = {"scores", "predictions", "probabilities", "contributions", "lower", "upper", ""}
    for feature in tables.schema.features:
        if feature.name in taken or feature.name.startswith("nae."):
            raise UserError(f"An ONNX input cannot be called {feature.name!r}; rename the column before fit.")
        if isinstance(feature, Category) and missing in (*feature.levels, *feature.rare):
            raise UserError(f"{missing!r} is a level of {feature.name!r}; pass another text as missing=.")
    return bytes(_Builder(tables, missing).build())


def write_onnx(model: Any, path: str | os.PathLike[str], *, missing: str = MISSING_TOKEN) -> None:
    """Write :func:`to_onnx` to a file."""
    write_whole(path, to_onnx(model, missing=missing))


class _Builder:
    """Collects nodes and constants; every method returns the name of what it computed."""

    def __init__(self, model: TableModel, missing: str) -> None:
        from onnx import TensorProto, helper, numpy_helper

        self.model, self.missing = model, missing
        self.helper, self.numpy_helper, self.types = helper, numpy_helper, TensorProto
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.real = TensorProto.FLOAT if model.experts.dtype == np.float32 else TensorProto.DOUBLE

    def node(self, op: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        name = out or f"nae.{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, dtype: Any) -> str:
        name = f"nae.constant.{len(self.constants)}"
        self.constants.append(self.numpy_helper.from_array(np.array(value, dtype=dtype, order="C"), name))
        return name

    def reals(self, value: Any) -> str:
        return self.constant(value, self.model.experts.dtype)

    def sums(self, value: str, axis: int, *, keepdims: int = 0) -> str:
        return self.node("ReduceSum", value, self.constant([axis], np.int64), keepdims=keepdims)

    def build(self) -> bytes:
        model = self.model
        cells = [self._cell(i) for i in range(model.n_features)]
        experts = self._experts(cells)  # (B, K, O, F, M)
        if model.n_experts == 1:
            mixed = self.node("Squeeze", experts, self.constant([1], np.int64))
        else:
            weights = self.node("Unsqueeze", self._weights(self._logits(cells)), self.constant([2], np.int64))
            mixed = self.sums(self.node("Mul", experts, weights), 1)
        least, most = self._bounds(experts)
        self._member_mean(mixed, out="contributions")
        self.node("Min", self._member_mean(least), "contributions", out="lower")
        self.node("Max", self._member_mean(most), "contributions", out="upper")
        self.node("Add", self.sums("contributions", 1), self.constant(model.intercept, np.float64), out="scores")
        return self._serialize(self._predict())

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

    def _experts(self, cells: list[tuple[str, str, str]]) -> str:
        model = self.model
        flat = self.reals(model.experts.reshape(model.schema.n_slots, -1))
        own = [self._look_up(flat, cell) for cell in cells]
        joined = self.node("Concat", *own, axis=1)
        shape = [-1, model.n_features, model.n_experts, model.n_outputs, model.n_members]
        apart = self.node("Reshape", joined, self.constant(shape, np.int64))
        return self.node("Transpose", apart, perm=[0, 2, 3, 1, 4])

    def _logits(self, cells: list[tuple[str, str, str]]) -> str:
        """Return the logits, (B, K, F, M)."""
        model, gate = self.model, self.model.gate
        flat = self.reals(gate.terms.reshape(model.schema.n_slots, -1))
        terms = [self._look_up(flat, cell) for cell in cells]
        shape = [-1, model.n_experts, model.n_features, model.n_members]
        if gate.kind == "diagonal":
            joined = self.node("Concat", *terms, axis=1)
            apart = self.node(
                "Reshape", joined, self.constant([-1, model.n_features, model.n_experts, model.n_members], np.int64)
            )
            turned = self.node("Transpose", apart, perm=[0, 2, 1, 3])
            return self.node("Add", turned, self.reals(gate.bias.reshape(1, *shape[1:])))
        total = self.node("Sum", *terms)
        hidden = self.node("Add", total, self.reals(gate.bias.reshape(1, 1, -1)))
        if gate.mix is None or gate.mix_bias is None:
            return self.node("Reshape", hidden, self.constant(shape, np.int64))
        width = gate.terms.shape[1]
        hidden = self.node("Reshape", hidden, self.constant([-1, width, model.n_members], np.int64))
        if gate.kind == "deep":
            hidden = self.node("Relu", hidden)
        mixed = self.node("MatMul", self.node("Transpose", hidden, perm=[2, 0, 1]), self.reals(gate.mix))
        mixed = self.node("Add", mixed, self.reals(gate.mix_bias.T[:, None]))  # (M, B, K * F)
        turned = self.node("Transpose", mixed, perm=[1, 2, 0])
        return self.node("Reshape", turned, self.constant(shape, np.int64))

    def _weights(self, logits: str) -> str:
        routing = self.model.routing
        if routing.name == "softmax" and routing.n_active == self.model.n_experts:
            return self.node("Softmax", logits, axis=1)
        top, chosen = f"nae.{len(self.nodes)}", f"nae.{len(self.nodes)}.index"
        n_active = self.constant([routing.n_active], np.int64)
        self.nodes.append(self.helper.make_node("TopK", [logits, n_active], [top, chosen], axis=1))
        if routing.name == "equal":
            share = self.reals(1.0 / routing.n_active)
            kept = self.node("Add", self.node("Mul", top, self.reals(0.0)), share)
        else:
            kept = self.node("Softmax", top, axis=1)
        nothing = self.node("Mul", logits, self.reals(0.0))
        return self.node("ScatterElements", nothing, chosen, kept, axis=1)

    def _bounds(self, experts: str) -> tuple[str, str]:
        routing = self.model.routing
        if routing.name == "softmax":
            least = self.node("ReduceMin", experts, axes=[1], keepdims=0)
            return least, self.node("ReduceMax", experts, axes=[1], keepdims=0)
        found = []
        for largest in (0, 1):
            values, index = f"nae.{len(self.nodes)}", f"nae.{len(self.nodes)}.index"
            n_active = self.constant([routing.n_active], np.int64)
            self.nodes.append(
                self.helper.make_node("TopK", [experts, n_active], [values, index], axis=1, largest=largest)
            )
            found.append(self.node("ReduceMean", values, axes=[1], keepdims=0))
        return found[0], found[1]

    def _member_mean(self, value: str, *, out: str = "") -> str:
        """(B, O, F, M) -> (B, F, O), as float64."""
        mean = self.node("ReduceMean", value, axes=[3], keepdims=0)
        return self.node("Cast", self.node("Transpose", mean, perm=[0, 2, 1]), out=out, to=self.types.DOUBLE)

    def _predict(self) -> tuple[str, int]:
        """Return the name and width of the output on the scale of the target."""
        model, link = self.model, self.model.link.name
        if link == "logit":
            second = self.node("Sigmoid", "scores")
            first = self.node("Sigmoid", self.node("Neg", "scores"))
            return self.node("Concat", first, second, axis=1, out="probabilities"), 2
        if link == "softmax":
            return self.node("Softmax", "scores", axis=1, out="probabilities"), model.n_outputs
        return self.node("Exp" if link == "log" else "Identity", "scores", out="predictions"), model.n_outputs

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
                "features": json.dumps(list(model.feature_names)),
                "outputs": json.dumps(list(model.outputs)),
                "classes": json.dumps(list(model.classes)),
                "missing": self.missing,
            },
        )
        from onnx import checker

        checker.check_model(made)
        return bytes(made.SerializeToString())
