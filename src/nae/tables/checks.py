"""Checks of the header and the arrays of a model file, before a model is made of them."""

from typing import Any

import numpy as np

from nae._typing import AnyArray
from nae.encoding.schema import Number
from nae.errors import FormatError
from nae.links import LINKS
from nae.tables.evidence import Evidence
from nae.tables.gates import GATES
from nae.tables.model import TableModel
from nae.tables.residuals import Residuals
from nae.tables.routing import ROUTINGS
from nae.tables.statistics import QUANTILES, Statistics

__all__ = ["check_arrays", "check_header", "check_model"]

_KEYS: dict[str, type] = {
    "format": int,
    "library": str,
    "schema": dict,
    "gate": str,
    "routing": dict,
    "link": str,
    "outputs": list,
    "classes": list,
    "training": dict,
    "arrays": dict,
    "extra": dict,
}
_FEATURE_KEYS: dict[str, type] = {"name": str, "kind": str, "reason": str, "has_missing": bool}
_KIND_KEYS: dict[str, dict[str, type]] = {
    "number": {"n_knots": int, "integral": bool},
    "boolean": {"n_knots": int, "integral": bool},
    "category": {"levels": list, "rare": list},
}
_MOST_GATE = 1e15  # the product of two such numbers is far below the largest float32


def check_header(header: dict[str, Any]) -> None:
    """Check the keys of the header and the types of their values."""
    optional: dict[str, type] = {"class_weight": list} if "class_weight" in header else {}
    _check_keys(header, _KEYS | optional, "The header")
    if optional:
        _check_weights(header["class_weight"], len(header["classes"]))
    _check_keys(header["routing"], {"name": str, "n_active": int}, "The routing")
    for what, name, known in (
        ("gate", header["gate"], tuple(GATES)),
        ("link", header["link"], tuple(LINKS)),
        ("routing", header["routing"]["name"], tuple(ROUTINGS)),
    ):
        if name not in known:
            raise FormatError(f"The {what} must be one of {list(known)}; got {name[:40]!r}.")
    for key in ("outputs", "classes"):
        _check_texts(header[key], key)
    if len(set(header["classes"])) != len(header["classes"]):
        raise FormatError("The names of the classes must differ; one of them occurs twice.")
    _check_schema(header["schema"])


def check_arrays(arrays: dict[str, AnyArray], names: tuple[str, ...]) -> None:
    """Check that exactly the expected arrays are there, and that their numbers are finite and not too large."""
    optional = {"gate.mix", "gate.mix_bias"}
    wrong = set(arrays) ^ set(names)
    if wrong - optional or ("gate.mix" in arrays) != ("gate.mix_bias" in arrays):
        raise FormatError(f"The arrays must be {sorted(names)}; {sorted(wrong)} are missing or unexpected.")
    for name, array in arrays.items():
        if not np.all(np.isfinite(array)):
            raise FormatError(f"{name!r} must hold finite numbers.")
        most = _MOST_GATE if name.startswith("gate.") else np.finfo(array.dtype).max / 4
        if np.abs(array).max(initial=0.0) > most:
            raise FormatError(f"{name!r} must hold numbers up to {most:g}.")
    for name in ("knots", "intercept"):
        if arrays[name].dtype != np.float64:
            raise FormatError(f"{name!r} must hold F64.")
    if len({arrays[name].dtype for name in arrays if name == "experts" or name.startswith(("gate.", "clamps."))}) > 1:
        raise FormatError("'experts', the arrays of the gate and the clamps must have the same type.")


def check_model(model: TableModel) -> None:
    """Check that shapes, outputs, classes and link agree with each other."""
    if model.experts.ndim != 4 or model.gate.terms.ndim != 3:
        raise FormatError("'experts' must have four axes and 'gate.terms' three.")
    slots, features = model.schema.n_slots, model.n_features
    experts, outputs, members = model.experts.shape[1:]
    if min(experts, outputs, members) < 1:
        raise FormatError(
            f"A model must have at least one expert, output and member; got experts of shape {model.experts.shape}."
        )
    width = model.gate.terms.shape[1]
    logits = experts * features
    expected: dict[str, tuple[AnyArray, tuple[int, ...]]] = {
        "experts": (model.experts, (slots, experts, outputs, members)),
        "intercept": (model.intercept, (outputs,)),
        "gate.terms": (model.gate.terms, (slots, width, members)),
        "gate.bias": (model.gate.bias, (width if model.gate.sums_features else logits, members)),
    }
    expected |= _mix_shapes(model, width, logits, members)
    if model.statistics is not None:
        expected |= _statistics_shapes(model.statistics, slots, features, outputs, (width, members))
    if model.clamps is not None:
        clamps = model.clamps.to_arrays()
        expected |= {f"clamps.{name}": (array, (slots, outputs)) for name, array in clamps.items()}
    if model.residuals is not None:
        expected |= _residual_shapes(model, model.residuals)
    if model.evidence is not None:
        expected |= _evidence_shapes(model.evidence, slots, features, outputs)
    for name, (array, shape) in expected.items():
        if array.shape != shape:
            raise FormatError(f"{name!r} must have shape {shape}; got {array.shape}.")
    _check_sums(model)
    _check_booleans(model)
    _check_names(model, outputs, experts)


def _check_sums(model: TableModel) -> None:
    """Check that no sum over experts, members or features can be beyond the largest number."""
    n_terms = max(model.n_experts, model.n_members, model.n_features)
    most = np.finfo(model.experts.dtype).max / 4 / n_terms
    clamps = {} if model.clamps is None else model.clamps.to_arrays()
    for name, array in {
        "experts": model.experts,
        **{f"clamps.{name}": array for name, array in clamps.items()},
    }.items():
        if np.abs(array).max() > most:
            raise FormatError(
                f"{name!r} must hold numbers up to {most:g}, so that sums of {n_terms} of them are finite."
            )
    if model.clamps is not None and np.any(model.clamps.lower > model.clamps.upper):
        raise FormatError("'clamps.lower' must not be above 'clamps.upper'.")


def _mix_shapes(
    model: TableModel, width: int, logits: int, members: int
) -> dict[str, tuple[AnyArray, tuple[int, ...]]]:
    gate, experts = model.gate, model.n_experts
    if gate.multiplies:
        if gate.mix is None or gate.mix_bias is None:
            raise FormatError(f"A {gate.kind} gate must have 'gate.mix' and 'gate.mix_bias'.")
        return {"gate.mix": (gate.mix, (members, width, logits)), "gate.mix_bias": (gate.mix_bias, (logits, members))}
    if gate.mix is not None:
        raise FormatError(f"A {gate.kind} gate must not have 'gate.mix'.")
    if width != (logits if gate.sums_features else experts):
        raise FormatError(f"The terms of the {gate.kind} gate do not fit {experts} experts; got width {width}.")
    return {}


def _residual_shapes(model: TableModel, residuals: Residuals) -> dict[str, tuple[AnyArray, tuple[int, ...]]]:
    found = {f"residuals.{name}": array for name, array in residuals.to_arrays().items()}
    entry = model.training.intervals
    n_points = 0 if entry is None or "by" not in entry else sum(entry["by"]["n_points"])
    if bool(n_points) != ("residuals.by_level" in found):
        raise FormatError("'residuals.by_level' must come with the levels of a column, in 'intervals' of the summary.")
    for name in ("residuals.quantiles", "residuals.score_knots"):
        if name in found and (found[name].ndim != 2 or np.any(np.diff(found[name], axis=0) < 0)):
            raise FormatError(f"{name!r} must be ascending columns.")
    n_knots = 1 if residuals.sizes is None else len(residuals.sizes.score_knots)
    lengths = {
        "residuals.quantiles": len(residuals.quantiles),
        "residuals.size": model.schema.n_slots,
        "residuals.by_level": n_points,
    }
    outputs = 1 if model.classes else model.n_outputs
    return {name: (array, (max(lengths.get(name, n_knots), 1), outputs)) for name, array in found.items()}


def _evidence_shapes(
    evidence: Evidence, slots: int, features: int, outputs: int
) -> dict[str, tuple[AnyArray, tuple[int, ...]]]:
    if np.any(evidence.error < 0):
        raise FormatError("'evidence.error' must not be negative.")
    if np.any((evidence.chance < 0) | (evidence.chance > 1)):
        raise FormatError("'evidence.chance' must be in [0, 1].")
    shapes = {"centre": (slots, outputs), "error": (slots, outputs), "chance": (features, outputs)}
    return {f"evidence.{name}": (array, shapes[name]) for name, array in evidence.to_arrays().items()}


def _check_booleans(model: TableModel) -> None:
    for feature in model.schema.features:
        if isinstance(feature, Number) and feature.is_boolean and not np.isin(feature.knots, (0.0, 1.0)).all():
            raise FormatError(f"The knots of the boolean {feature.name!r} must be 0 and 1.")


def _statistics_shapes(
    statistics: Statistics, slots: int, features: int, outputs: int, gate: tuple[int, int]
) -> dict[str, tuple[AnyArray, tuple[int, ...]]]:
    shapes: dict[str, tuple[int, ...]] = {
        "weight": (slots,),
        "mean": (slots, outputs),
        "quantiles": (len(QUANTILES), slots, outputs),
        "gate_mean": (features, *gate),
        "variance": (features, outputs),
        "residual": (features, outputs),
        "score_variance": (outputs,),
        "additive_variance": (outputs,),
        "influence": (features, features, outputs),
        "typical": (features, features, outputs),
        "agreement": (features, outputs),
    }
    for name in ("weight", "variance", "residual", "score_variance", "additive_variance"):
        if np.any(getattr(statistics, name) < 0):
            raise FormatError(f"'statistics.{name}' must not be negative.")
    return {f"statistics.{name}": (array, shapes[name]) for name, array in statistics.to_arrays().items()}


def _check_names(model: TableModel, outputs: int, experts: int) -> None:
    if len(model.outputs) != outputs:
        raise FormatError(f"A model with {outputs} outputs must have as many names for them; got {len(model.outputs)}.")
    levels = model.training.levels
    if levels and len(levels) != outputs:
        raise FormatError(f"A model of {len(levels)} quantiles must have as many outputs; got {outputs}.")
    if not 1 <= model.routing.n_active <= experts:
        raise FormatError(f"n_active must be in [1, {experts}]; got {model.routing.n_active}.")
    n_classes = len(model.classes)
    if n_classes and (n_classes == 1 or outputs != (1 if n_classes == 2 else n_classes)):
        raise FormatError(f"A model with {n_classes} classes cannot have {outputs} outputs.")
    expected = {0: ("identity", "log"), 2: ("logit",)}.get(n_classes, ("softmax",))
    if model.link.name not in expected:
        raise FormatError(f"A model with {n_classes} classes must have one of the links {expected}; got {model.link}.")


def _check_schema(schema: dict[str, Any]) -> None:
    _check_keys(schema, {"features": list, "has_names": bool}, "The schema")
    if not schema["features"]:
        raise FormatError("The schema must have at least one feature.")
    names = set()
    for row in schema["features"]:
        kind = row.get("kind") if isinstance(row, dict) else None
        if not isinstance(kind, str) or kind not in _KIND_KEYS:
            raise FormatError(f"A feature must be one of {sorted(_KIND_KEYS)}; got {str(kind)[:40]!r}.")
        _check_keys(row, _FEATURE_KEYS | _KIND_KEYS[kind], "A feature")
        if row["name"] in names:
            raise FormatError(f"Feature names must differ; {row['name'][:80]!r} occurs twice.")
        names.add(row["name"])
        if kind == "category":
            levels = [*row["levels"], *row["rare"]]
            _check_texts(levels, f"the levels of {row['name'][:80]!r}")
            if len(set(levels)) != len(levels):
                raise FormatError(f"The levels of {row['name'][:80]!r} must differ.")
        elif not 1 <= row["n_knots"] <= 2**31:
            raise FormatError(f"{row['name'][:80]!r} must have at least one knot; got {row['n_knots']}.")


def _check_weights(weights: list[Any], n_classes: int) -> None:
    are_numbers = all(type(weight) in (int, float) and 0 < weight <= 1e300 for weight in weights)
    if not are_numbers or not 0 < len(weights) == n_classes:
        raise FormatError(f"'class_weight' must hold a positive number for each of {n_classes} classes.")


def _check_keys(found: Any, expected: dict[str, type], what: str) -> None:
    if not isinstance(found, dict) or set(found) != set(expected):
        got = sorted(set(found) ^ set(expected))[:5] if isinstance(found, dict) else type(found).__name__
        raise FormatError(f"{what} must have the keys {sorted(expected)}; missing or unexpected: {got}.")
    for key, kind in expected.items():
        if type(found[key]) is not kind:  # isinstance would take a boolean for an integer
            raise FormatError(f"{what} must hold {key!r} as {kind.__name__}; got {type(found[key]).__name__}.")


def _check_texts(values: list[Any], what: str) -> None:
    if not all(isinstance(value, str) for value in values):
        raise FormatError(f"The header must hold {what} as texts.")
