"""Problems of all kinds and sizes, drawn by hypothesis."""

from typing import Any

from hypothesis import strategies as st

from tests.engines.native.problems import Problem

__all__ = ["problems"]

GATES = ("additive", "low-rank", "deep", "diagonal")
ROUTINGS = ("softmax", "equal", "gumbel")
LOSSES = ("squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie", "logistic", "cross-entropy")
EXPONENTIAL = ("poisson", "gamma", "tweedie")
"""Losses that raise e to the score. Scores of many features whose curves all rise are too large for them."""
PENALTIES = {"variation_penalty": 0.3, "context_penalty": 0.2, "output_penalty": 0.1}
_MOST_VALUES = 40_000  # experts of all rows and features: torch takes a second for many more


@st.composite
def problems(
    draw: Any, *, most_features: int = 7, most_experts: int = 18, most_outputs: int = 4, most_hidden: int = 40
) -> Problem:
    loss = draw(st.sampled_from(LOSSES))
    gate = draw(st.sampled_from(GATES))
    n_features = draw(st.integers(1, most_features))
    n_experts = draw(st.integers(1, max(1, min(most_experts, _MOST_VALUES // (24 * n_features)))))
    if gate == "additive":  # has a weight for every pair of features
        n_features = min(n_features, 40)
    return Problem(
        n_features=n_features,
        n_rows=draw(st.integers(24, 90)),
        n_knots=draw(st.integers(2, 17)),
        n_outputs=draw(st.integers(2 if loss == "cross-entropy" else 1, most_outputs)),
        n_categories=draw(st.integers(0, n_features)),
        has_missing=draw(st.booleans()),
        has_constant=draw(st.booleans()),
        has_start=draw(st.booleans()),
        has_base=draw(st.booleans()),
        is_sparse=draw(st.booleans()),
        has_forms=draw(st.booleans()) and (n_features <= 12 or loss not in EXPONENTIAL),
        n_folds=draw(st.sampled_from([None, 3])),
        loss=loss,
        is_double=draw(st.booleans()),
        network={
            "gate": gate,
            "routing": draw(st.sampled_from(ROUTINGS)),
            "n_experts": n_experts,
            "n_active": draw(st.integers(1, n_experts)),
            "n_members": draw(st.integers(1, 3)),
            "n_blocks": draw(st.integers(1, 3)),
            "hidden_dim": draw(st.integers(1, most_hidden)),
            "gate_rank": draw(st.integers(1, 20)),
            "temperature": 0.5,
            "expert_dropout": draw(st.sampled_from([0.0, 0.3])),
        },
        training={
            "batch_size": draw(st.integers(5, 100)),
            "averaged_steps": draw(st.sampled_from([None, 4])),
            "weight_decay": 0.1,
            "additivity": draw(st.sampled_from([None, 0.9])),
            **{name: draw(st.sampled_from([0.0, weight])) for name, weight in PENALTIES.items()},
        },
        seed=draw(st.integers(0, 5)),
    )
