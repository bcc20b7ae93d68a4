"""Random models and tables as hypothesis draws them: the shape by hypothesis, which shrinks it, numbers from a seed."""

import hypothesis.strategies as st
import numpy as np

from nae.encoding import Columns
from nae.tables import TableModel
from nae.tables.gates import GATES
from nae.tables.routing import ROUTINGS
from tests.laws.models import make_model, make_table

__all__ = ["models", "models_with_tables"]


@st.composite
def models(
    draw: st.DrawFn, *, gates: tuple[str, ...] = tuple(GATES), max_experts: int = 4, may_clamp: bool = False
) -> TableModel:
    """Draw a model: the shape by hypothesis, which shrinks it, the numbers from a seed."""
    n_experts = draw(st.integers(1, max_experts))
    return make_model(
        np.random.default_rng(draw(st.integers(0, 2**16))),
        n_features=draw(st.integers(1, 4)),
        n_experts=n_experts,
        n_active=draw(st.integers(1, n_experts)),
        n_outputs=draw(st.integers(1, 3)),
        n_members=draw(st.integers(1, 3)),
        gate=draw(st.sampled_from(gates)),
        routing=draw(st.sampled_from(sorted(ROUTINGS))),
        scale=draw(st.sampled_from([0.0, 1.0, 30.0])),
        dtype=draw(st.sampled_from([np.float64, np.float32])),
        is_clamped=may_clamp and draw(st.booleans()),
    )


@st.composite
def models_with_tables(
    draw: st.DrawFn, *, gates: tuple[str, ...] = tuple(GATES), max_experts: int = 4, may_clamp: bool = False
) -> tuple[TableModel, Columns]:
    """Draw a model and a table of up to twenty rows for it."""
    model = draw(models(gates=gates, max_experts=max_experts, may_clamp=may_clamp))
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    return model, make_table(random, model.schema, draw(st.integers(1, 20)))
