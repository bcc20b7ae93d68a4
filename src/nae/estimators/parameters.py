"""The parameters that both estimators share, and the settings that follow from them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from nae._typing import Array
from nae.encoding.kinds import FeatureTypes
from nae.estimators.settings import SMALL, Settings, resolve

__all__ = ["Parameters"]


class Parameters(BaseEstimator):  # type: ignore[misc]
    """Flat parameters, stored as they are given; abstract. The estimators document them."""

    def __init__(
        self,
        *,
        additivity: float | str | None = None,
        variant: str = "nae",
        encoder: str = "piecewise",
        gate: str = "auto",
        n_experts: int | None = None,
        n_active: int | None = None,
        n_members: int = 8,
        n_knots: int | None = None,
        n_ramps: int = 48,
        n_blocks: int = 2,
        hidden_dim: int | None = None,
        gate_rank: int = 64,
        normalization: str = "layer",
        variation_penalty: float = 0.1,
        output_penalty: float | None = None,
        context_penalty: float | None = None,
        expert_dropout: float = 0.0,
        encoder_dropout: float = 0.0,
        weight_decay: float | None = None,
        learning_rate: float = 5e-3,
        batch_size: int | None = None,
        max_epochs: int | None = None,
        early_stopping_rounds: int | None = None,
        validation_size: float = 0.125,
        validation: Any = None,
        time_limit: float | None = None,
        feature_types: FeatureTypes = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
        verbose: bool | int = False,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str = "auto",
    ) -> None:
        self.additivity = additivity
        self.variant = variant
        self.encoder = encoder
        self.gate = gate
        self.n_experts = n_experts
        self.n_active = n_active
        self.n_members = n_members
        self.n_knots = n_knots
        self.n_ramps = n_ramps
        self.n_blocks = n_blocks
        self.hidden_dim = hidden_dim
        self.gate_rank = gate_rank
        self.normalization = normalization
        self.variation_penalty = variation_penalty
        self.output_penalty = output_penalty
        self.context_penalty = context_penalty
        self.expert_dropout = expert_dropout
        self.encoder_dropout = encoder_dropout
        self.weight_decay = weight_decay
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.early_stopping_rounds = early_stopping_rounds
        self.validation_size = validation_size
        self.validation = validation
        self.time_limit = time_limit
        self.feature_types = feature_types
        self.callbacks = callbacks
        self.verbose = verbose
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device

    def _settings(self, weight: Array, *, n_features: int) -> Settings:
        is_whole = bool(np.all(weight == np.rint(weight)))
        return self._resolve(len(weight), total=float(weight.sum()) if is_whole else None, n_features=n_features)

    def _resolve(self, n_rows: int, *, total: float | None, n_features: int) -> Settings:
        """Return the settings for so many rows of a total weight, None where weights are not whole."""
        # Whole weights mean repetition, so they decide what counts as small; others are only relative.
        n_counted = n_rows if total is None else int(total)
        if n_counted > SMALL:
            n_counted = max(n_rows, SMALL + 1)
        return resolve(self.get_params(deep=False), n_rows=n_counted, n_features=n_features)

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))
