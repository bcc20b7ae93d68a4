"""The steps of a model as JSON values, for the JSON export and for the page of a report."""

from collections.abc import Callable
from typing import Any

from nae.tables.lowered import Clip, Lowered, Mix, OneExpert, Step
from nae.tables.routing import EqualRouting, SoftmaxRouting
from nae.tables.steps import Multiply, OwnTerms, Rectify, SumTerms

__all__ = ["EMITTERS", "list_steps"]

_TERMS = {"terms": "gate.terms", "bias": "gate.bias"}
EMITTERS: dict[type[Step], Callable[[Any], dict[str, Any]]] = {
    SumTerms: lambda step: {"kind": "sum_terms", **_TERMS},
    OwnTerms: lambda step: {"kind": "own_terms", **_TERMS},
    Rectify: lambda step: {"kind": "rectify"},
    Multiply: lambda step: {"kind": "multiply", "matrix": "gate.mix", "bias": "gate.mix_bias"},
    SoftmaxRouting: lambda step: {"kind": "softmax", "n_active": step.n_active},
    EqualRouting: lambda step: {"kind": "equal", "n_active": step.n_active},
    OneExpert: lambda step: {"kind": "one_expert"},
    Mix: lambda step: {"kind": "mix", "experts": "experts", "n_extreme": step.n_extreme},
    Clip: lambda step: {"kind": "clip", "lower": "clamps.lower", "upper": "clamps.upper"},
}
"""Every step as JSON values. An array is given by its name in the model file."""


def list_steps(model: Lowered) -> list[dict[str, Any]]:
    """Return the steps of a model as JSON values; ``docs/export.md`` explains them."""
    return [EMITTERS[type(step)](step) for step in model.steps]
