"""From flat estimator parameters and the shape of the data to frozen configurations."""

from dataclasses import dataclass, replace
from typing import Any

import torch

from nae.errors import ConfigError
from nae.network import NetworkConfig
from nae.parameters import Parameters
from nae.training import TrainingConfig

__all__ = ["SMALL", "VARIANTS", "Settings", "resolve"]

SMALL = 256  # up to this many rows weights equal repetition: full batches, float64, folds by what rows hold

_STARTED = 1000  # up to this many rows, training starts at a penalised additive model; beyond, nothing is gained
_FULL = 800  # from this many rows on, looks are as far apart as they ever are
_UNVALIDATED_EPOCHS = 200

_WIDE = 64  # features; more of them stay with few experts: large ones are four times the price, and nothing is gained

_FINE = (
    10_000  # from so many rows on, an additive model has twice the knots and more patience: all it has are its curves
)
_FINE_LOOKS = 16

_LEAST_KNOTS, _ROWS_PER_KNOT = 20, 4

_LEVEL_ROWS, _LEVEL_SHARE = 20, 0.01  # a level with so many rows, or with so many of them, has an effect of its own

_MAX_STEPS = 12_000
_LEAST_PATIENCE = 100  # steps, however close looks are
_EVALUATE_STEPS = 32  # steps between two looks at the validation rows


@dataclass(frozen=True)
class _Defaults:
    """What numbers and classes were found to need (docs/decisions/0005)."""

    n_large: int
    """From so many rows on: twice the experts at twice the width."""
    n_looks: int
    """Looks at the validation rows without progress before the step size falls."""
    least_steps: int
    """Steps that are taken in any case before it falls."""
    cooldown: float
    """Steps over which it falls, as a share of those before."""
    averaged_steps: int | None
    expert_dropout: float
    n_steered: int
    """Experts of a feature where additivity is asked for: more of them say more with less context."""


_NUMBERS = _Defaults(
    n_large=32_000,
    n_looks=12,
    least_steps=1000,
    cooldown=0.5,
    averaged_steps=None,
    expert_dropout=0.0,
    n_steered=16,
)
_CLASSES = _Defaults(
    n_large=10_000,
    n_looks=8,
    least_steps=0,
    cooldown=0.25,
    averaged_steps=_EVALUATE_STEPS,
    expert_dropout=0.1,
    n_steered=8,
)

VARIANTS: dict[str, dict[str, str]] = {
    "nae": {"routing": "softmax"},
    "nae-e": {"routing": "equal"},
    "nae-d": {"routing": "gumbel", "gate": "diagonal"},
}


@dataclass(frozen=True)
class Settings:
    """Everything a fit needs to know besides the data."""

    network: NetworkConfig
    training: TrainingConfig
    n_knots: int
    """Most knots of a number."""
    n_levels: int
    """Most levels of a category with a slot of their own."""
    least_share: float
    """Levels with less of the rows than this share a slot."""
    n_ramps: int
    is_small: bool
    has_start: bool
    """Whether training starts at a penalised additive model."""
    validation_size: float

    @property
    def n_folds(self) -> int | None:
        """Members hold out one of so many parts of the rows each; None holds out one part for all."""
        return self.training.n_folds

    @property
    def n_parts(self) -> int:
        """How many equal parts of the rows come closest to ``validation_size``."""
        return max(2, round(1 / self.validation_size))

    def unvalidated(self) -> "Settings":
        """Return the settings for rows of which none can be held out, such as a single one: so many epochs, no more."""
        n_epochs = min(self.training.max_epochs, _UNVALIDATED_EPOCHS)
        return replace(self, training=replace(self.training, max_epochs=n_epochs))

    @property
    def table_sizes(self) -> dict[str, Any]:
        """What decides how many slots a feature has."""
        return {"n_knots": self.n_knots, "n_levels": self.n_levels, "least_share": self.least_share}

    @property
    def dtype(self) -> torch.dtype:
        """The precision of training."""
        return torch.float64 if self.is_small else torch.float32


def resolve(
    params: Parameters, *, n_rows: int, n_features: int, total: float | None = None, is_classes: bool = False
) -> Settings:
    """Return the settings for so many rows, and fill in what the parameters leave open.

    ``total`` is the weight of the rows, or None if weights are not whole. Whole weights mean repetition, so the total
    decides which tables are small; other weights are only relative.
    """
    n_rows = _count(n_rows, total)
    is_steered = params.additivity is not None
    if isinstance(params.additivity, str):  # 'auto': the path begins with the flexible model
        params = replace(params, additivity=None, expert_dropout=0.0)
    is_small = n_rows <= SMALL
    defaults = _CLASSES if is_classes else _NUMBERS
    network = _network(params, defaults, n_rows=n_rows, n_features=n_features, is_steered=is_steered)
    is_mlp = network.encoder == "mlp"
    is_fine = _is_fine(network, n_rows)
    n_knots, n_levels = _table_sizes(params.n_knots, n_rows, n_features, network, is_fine=is_fine)
    return Settings(
        network=network,
        training=_training(params, defaults, n_rows=n_rows, n_features=n_features, network=network),
        n_knots=n_knots,
        n_levels=n_levels,
        least_share=0.0 if is_mlp else min(_LEVEL_ROWS / n_rows, _LEVEL_SHARE),
        n_ramps=params.n_ramps or (64 if is_fine else 48),
        is_small=is_small,
        has_start=n_rows <= _STARTED and not is_mlp and not params.output_penalty,
        validation_size=params.validation_size,
    )


def _table_sizes(
    given: int | None, n_rows: int, n_features: int, network: NetworkConfig, *, is_fine: bool
) -> tuple[int, int]:
    """Return the most knots and the most levels.

    A step costs features times knots, so wide tables have fewer; so have tables of few rows, whose curves are simple.
    """
    if given is not None:
        return int(given), int(given)
    if network.encoder == "mlp":  # dense, since rows and not knots are trained on; fewer where that would be large
        n_knots = max(256, min(4096, 2**25 // (n_features**2 * network.n_experts)))
        return n_knots, n_knots
    scale = 2 if is_fine else 1
    wanted = max(_LEAST_KNOTS, n_rows // _ROWS_PER_KNOT)
    return min(wanted, scale * max(32, min(128, 8192 // n_features))), 128


def _network(
    params: Parameters, defaults: _Defaults, *, n_rows: int, n_features: int, is_steered: bool
) -> NetworkConfig:
    is_small, is_mlp = n_rows <= SMALL, params.encoder == "mlp"
    may_be_large = n_features <= _WIDE and not is_mlp
    is_large = n_rows >= defaults.n_large and may_be_large
    variant = VARIANTS[params.variant]
    n_experts = params.n_experts
    if n_experts is None:
        n_usual = 16 if is_large else defaults.n_steered if may_be_large and is_steered else 8
        n_experts = 64 if params.variant == "nae-d" else n_usual
    if params.additivity == 1.0:
        n_experts = 1  # one expert per feature: nothing is left for a gate to decide
    n_active = params.n_active
    if n_active is None:
        # Equal weights over all experts would leave the gate nothing to choose; the paper takes half of them.
        n_active = max(1, n_experts // 2) if variant["routing"] == "equal" else n_experts
    if params.additivity == 1.0:
        n_active = 1
    gate = variant.get("gate", params.gate)
    if params.gate not in ("auto", gate):
        raise ConfigError(f"variant={params.variant!r} has a {gate} gate; got gate={params.gate!r}. Leave gate='auto'.")
    if gate == "auto":
        gate = "low-rank" if n_features * n_experts > 2 * params.gate_rank else "additive"
    has_own_dropout = params.variant == "nae" and n_experts > 1 and not is_mlp
    dropout = _given(params.expert_dropout, defaults.expert_dropout if has_own_dropout else 0.0)
    if params.additivity is not None or is_small:
        dropout = 0.0  # its noise would count as context; with few rows, weights must equal repetition
    return NetworkConfig(
        encoder=params.encoder,
        gate=gate,
        routing="softmax" if variant["routing"] == "gumbel" and is_small else variant["routing"],  # no noise either
        n_experts=int(n_experts),
        n_active=int(n_active),
        n_members=params.n_members,
        n_blocks=params.n_blocks,
        hidden_dim=params.hidden_dim or (64 if is_large else 32),
        gate_rank=params.gate_rank,
        norm=params.normalization if is_mlp else "layer",
        encoder_dropout=params.encoder_dropout if is_mlp and not is_small else 0.0,
        expert_dropout=dropout,
    )


def _training(
    params: Parameters, defaults: _Defaults, *, n_rows: int, n_features: int, network: NetworkConfig
) -> TrainingConfig:
    is_small, is_mlp = n_rows <= SMALL, network.encoder == "mlp"
    batch_size = n_rows if is_small else (params.batch_size or _batch_size(n_rows))
    steps_per_epoch = max(1, round(n_rows / batch_size))
    max_epochs = params.max_epochs or max(8, -(-(200 if is_small and is_mlp else _MAX_STEPS) // steps_per_epoch))
    scale = min(1.0, n_rows / _FULL)  # few rows are learned in few steps
    steps_apart = max(4.0, scale * _EVALUATE_STEPS)
    evaluate_every = 1 if is_mlp else max(1, min(round(steps_apart / steps_per_epoch), max_epochs // 10))
    n_looks = _FINE_LOOKS if _is_fine(network, n_rows) else defaults.n_looks
    usual = max(n_looks * evaluate_every, round(_LEAST_PATIENCE / steps_per_epoch))
    patience = params.early_stopping_rounds or (max(5, max_epochs // 4) if is_mlp else usual)
    has_dial = params.additivity is not None
    return TrainingConfig(
        learning_rate=params.learning_rate,
        weight_decay=_given(params.weight_decay, min(1.0, max(0.1, 0.75 * n_features**2 / n_rows))),
        batch_size=batch_size,
        max_epochs=max_epochs,
        patience=patience,
        least_steps=0 if params.early_stopping_rounds else round(scale * defaults.least_steps),
        warmup_steps=min(50, max(1, max_epochs * steps_per_epoch // 10)),
        variation_penalty=params.variation_penalty,
        output_penalty=_given(params.output_penalty, 0.01 if has_dial and not is_mlp else 0.0),
        context_penalty=_given(params.context_penalty, 0.0 if is_mlp else 0.05),
        additivity=_aim(params) if network.n_experts > 1 else None,
        time_limit=params.time_limit,
        schedule="cosine" if is_mlp else "plateau",
        averaged_steps=None if is_mlp else defaults.averaged_steps,
        cooldown=defaults.cooldown,
        evaluate_every=evaluate_every,
        n_folds=max(2, round(1 / params.validation_size)) if network.n_members > 1 and not is_mlp else None,
    )


def _aim(params: Parameters) -> float | None:
    return None if isinstance(params.additivity, str) else params.additivity


def _is_fine(network: NetworkConfig, n_rows: int) -> bool:
    return network.n_experts == 1 and n_rows >= _FINE


def _given(value: float | None, default: float) -> float:
    return default if value is None else value


def _batch_size(n_rows: int) -> int:
    return 256 if n_rows < 8_000 else 512 if n_rows < 100_000 else 1024


def _count(n_rows: int, total: float | None) -> int:
    n_counted = n_rows if total is None else int(total)
    return n_counted if n_counted <= SMALL else max(n_rows, SMALL + 1)
