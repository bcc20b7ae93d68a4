"""From the parameters and the size of the table to frozen configurations, by a recipe."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nae.errors import ConfigError
from nae.network import NetworkConfig
from nae.parameters import Parameters
from nae.recipes import CLASSES, EFFORTS, NUMBERS, PAPER, VARIANTS, Recipe
from nae.training import TrainingConfig

__all__ = ["Settings", "count_folds", "resolve"]


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
    unvalidated_epochs: int
    """Most epochs if no row can be held out."""
    has_clamps: bool = True
    """Whether contributions stay in the range that training rows have shown."""

    @property
    def n_folds(self) -> int | None:
        """Number of folds, of which each member holds out one; None if all members hold out the same rows."""
        return self.training.n_folds

    @property
    def n_parts(self) -> int:
        """Number of folds, as ``validation_size`` asks for."""
        return count_folds(self.validation_size)

    def unvalidated(self) -> "Settings":
        """Return the settings for rows of which none can be held out, such as a single one."""
        n_epochs = min(self.training.max_epochs, self.unvalidated_epochs)
        return replace(self, training=replace(self.training, max_epochs=n_epochs))

    @property
    def table_sizes(self) -> dict[str, Any]:
        """What decides how many slots a feature has."""
        return {"n_knots": self.n_knots, "n_levels": self.n_levels, "least_share": self.least_share}

    @property
    def dtype(self) -> type[np.floating]:
        """The precision of training."""
        return np.float64 if self.is_small else np.float32


def resolve(
    params: Parameters, *, n_rows: int, n_features: int, total: float | None = None, is_classes: bool = False
) -> Settings:
    """Return the settings for so many rows: those that are given, and the recipe's for the others.

    ``total`` is the weight of the rows, or None if weights are not whole. Whole weights mean repetition, so the total
    decides which tables are small; other weights are only relative.
    """
    kind = PAPER if params.encoder == "mlp" else CLASSES if is_classes else NUMBERS
    recipe = EFFORTS[params.effort].apply(kind)
    n_counted = n_rows if total is None else int(total)
    if n_counted > recipe.small_rows:
        n_counted = max(n_rows, recipe.small_rows + 1)
    return _Case(params, recipe, n_counted, n_features).settings()


def count_folds(validation_size: float) -> int:
    """Return the number of folds that holds out about this share of the rows, at least two."""
    return max(2, round(1 / validation_size))


@dataclass(frozen=True, eq=False)
class _Case:
    """A table of some size, with the parameters that are given and the recipe for the others."""

    params: Parameters
    recipe: Recipe
    n_rows: int
    n_features: int

    @property
    def is_small(self) -> bool:
        """Whether weights must equal repetition."""
        return self.n_rows <= self.recipe.small_rows

    @property
    def is_narrow(self) -> bool:
        """Whether there may be many experts."""
        return self.n_features <= self.recipe.wide

    @property
    def is_steered(self) -> bool:
        """Whether additivity is asked for."""
        return self.params.additivity is not None

    @property
    def target(self) -> float | None:
        """The additivity that is asked for; the path of 'auto' begins with a flexible model."""
        return None if isinstance(self.params.additivity, str) else self.params.additivity

    def settings(self) -> Settings:
        params, recipe = self.params, self.recipe
        network = self.network()
        is_fine = network.n_experts == 1 and self.n_rows >= recipe.fine_rows
        n_knots, n_levels = self.table_sizes(network.n_experts, is_fine=is_fine)
        return Settings(
            network=network,
            training=self.training(network, is_fine=is_fine),
            n_knots=n_knots,
            n_levels=n_levels,
            least_share=min(recipe.level_rows / self.n_rows, recipe.level_share),
            n_ramps=params.n_ramps or (recipe.n_fine_ramps if is_fine else recipe.n_ramps),
            is_small=self.is_small,
            has_start=self.n_rows <= recipe.start_rows and not params.output_penalty,
            validation_size=params.validation_size,
            unvalidated_epochs=recipe.unvalidated_epochs,
            has_clamps=params.bounds == "data",
        )

    def table_sizes(self, n_experts: int, *, is_fine: bool) -> tuple[int, int]:
        """Return the most knots and the most levels."""
        given, recipe = self.params.n_knots, self.recipe
        if given is not None:
            return int(given), int(given)
        cost = self.n_features**2 * n_experts if recipe.is_on_rows else self.n_features
        n_knots = max(recipe.narrow_knots, min(recipe.most_knots, recipe.knot_budget // cost))
        n_knots *= recipe.fine_factor if is_fine else 1
        if recipe.rows_per_knot is not None:
            n_knots = min(n_knots, max(recipe.least_knots, self.n_rows // recipe.rows_per_knot))
        return n_knots, n_knots if recipe.most_levels is None else recipe.most_levels

    def network(self) -> NetworkConfig:
        params, recipe = self.params, self.recipe
        variant = VARIANTS[params.variant]
        n_experts, n_active = self.count_experts(has_equal_weights=variant["routing"] == "equal")
        hidden_dim = recipe.hidden_dim.at(self.n_rows) if self.is_narrow else recipe.hidden_dim.first
        has_noise = not self.is_small  # noise would make a row of weight 2 differ from the row twice
        return NetworkConfig(
            encoder=params.encoder,
            gate=self.gate(n_experts),
            routing=variant["routing"] if has_noise or variant["routing"] != "gumbel" else "softmax",
            n_experts=n_experts,
            n_active=n_active,
            n_members=params.n_members or recipe.n_members,
            n_blocks=params.n_blocks,
            hidden_dim=params.hidden_dim or hidden_dim,
            gate_rank=params.gate_rank,
            norm=params.normalization if recipe.is_on_rows else "layer",
            encoder_dropout=params.encoder_dropout if recipe.is_on_rows and has_noise else 0.0,
            expert_dropout=self.expert_dropout(n_experts) if has_noise else 0.0,
            temperature=recipe.temperature,
        )

    def count_experts(self, *, has_equal_weights: bool) -> tuple[int, int]:
        """Return the experts of a feature, and how many of them take part."""
        params, recipe = self.params, self.recipe
        if self.target == 1.0:
            return 1, 1  # one expert per feature: nothing is left for a gate to decide
        if params.n_experts is not None:
            n_experts = int(params.n_experts)
        elif params.variant == "nae-d":
            n_experts = recipe.n_diagonal_experts
        elif self.is_narrow:
            steered = recipe.n_steered_experts if self.is_steered else 0
            n_experts = max(recipe.n_experts.at(self.n_rows), steered)
        else:
            n_experts = recipe.n_experts.first
        if params.n_active is not None:
            return n_experts, int(params.n_active)
        # Equal weights over all experts would leave the gate nothing to choose; the paper takes half of them.
        return n_experts, max(1, n_experts // 2) if has_equal_weights else n_experts

    def gate(self, n_experts: int) -> str:
        params = self.params
        gate = VARIANTS[params.variant].get("gate", params.gate)
        if params.gate not in ("auto", gate):
            raise ConfigError(
                f"variant={params.variant!r} has a {gate} gate; got gate={params.gate!r}. Leave gate='auto'."
            )
        if gate != "auto":
            return gate
        return "low-rank" if self.n_features * n_experts > 2 * params.gate_rank else "additive"

    def expert_dropout(self, n_experts: int) -> float:
        if self.is_steered:
            return 0.0  # its noise would count as context
        is_usual = self.params.variant == "nae" and n_experts > 1
        return _given(self.params.expert_dropout, self.recipe.expert_dropout if is_usual else 0.0)

    def training(self, network: NetworkConfig, *, is_fine: bool) -> TrainingConfig:
        params, recipe = self.params, self.recipe
        batch_size = self.n_rows if self.is_small else (params.batch_size or recipe.batch_size.at(self.n_rows))
        n_batches = max(1, round(self.n_rows / batch_size))
        max_steps = recipe.max_small_steps if self.is_small else recipe.max_steps
        max_epochs = params.max_epochs or max(recipe.least_epochs, -(-max_steps // n_batches))
        evaluate_every = self.evaluate_every(n_batches, max_epochs)
        n_looks = recipe.n_fine_looks if is_fine else recipe.n_looks
        patience = max(n_looks * evaluate_every, round(recipe.least_patience / n_batches))
        if recipe.patience_share is not None:
            patience = max(recipe.least_patience_epochs, int(max_epochs * recipe.patience_share))
        decay = max(recipe.weight_decay, recipe.decay_per_pair * self.n_features**2 / self.n_rows)
        steered_penalty = 0.0 if self.target is None else recipe.steered_output_penalty
        has_folds = recipe.has_folds and network.n_members > 1
        return TrainingConfig(
            learning_rate=params.learning_rate,
            weight_decay=_given(params.weight_decay, min(recipe.most_weight_decay, decay)),
            batch_size=batch_size,
            max_epochs=max_epochs,
            patience=params.early_stopping_rounds or patience,
            least_steps=0 if params.early_stopping_rounds else round(self.share() * recipe.least_steps),
            warmup_steps=min(recipe.warmup_steps, max(1, max_epochs * n_batches // 10)),
            variation_penalty=params.variation_penalty,
            output_penalty=_given(params.output_penalty, steered_penalty),
            context_penalty=_given(params.context_penalty, recipe.context_penalty),
            additivity=self.target if network.n_experts > 1 else None,
            initial_penalty=recipe.initial_penalty,
            time_limit=params.time_limit,
            schedule=recipe.schedule,
            averaged_steps=recipe.averaged_steps,
            cooldown=recipe.cooldown,
            evaluate_every=evaluate_every,
            n_folds=count_folds(params.validation_size) if has_folds else None,
        )

    def evaluate_every(self, n_batches: int, max_epochs: int) -> int:
        """Return the epochs between two looks at the validation rows."""
        recipe = self.recipe
        if recipe.evaluate_steps is None:
            return 1
        n_steps = max(recipe.least_evaluate_steps, self.share() * recipe.evaluate_steps)
        return max(1, min(round(n_steps / n_batches), max_epochs // recipe.least_looks))

    def share(self) -> float:
        """Return the share of the usual steps: few rows are learned in few steps."""
        return min(1.0, self.n_rows / self.recipe.full_rows)


def _given(value: float | None, default: float) -> float:
    return default if value is None else value
