"""Recipes: what a fit does if a parameter is left at its default. All defaults live in this file.

Every default of a parameter is a value of a recipe, or None and follows from a recipe and the size of the table. The
parameter table, the settings of a fit, the presets, the search spaces and the command line read them here.
"""

from dataclasses import dataclass, replace
from typing import Literal

__all__ = [
    "CLASSES",
    "EFFORTS",
    "NUMBERS",
    "PAPER",
    "PATH",
    "RECIPES",
    "SMOOTHNESS",
    "VARIANTS",
    "ByRows",
    "Effort",
    "Path",
    "Recipe",
]


@dataclass(frozen=True)
class ByRows:
    """A number that grows with the table."""

    steps: tuple[tuple[int, int], ...]
    """A number of rows, and the value from there on; the first one is 0."""

    def at(self, n_rows: int) -> int:
        """Return the value for a number of rows."""
        return [value for least, value in self.steps if n_rows >= least][-1]

    def from_rows(self, factor: float) -> "ByRows":
        """Return the same values, each from so many times as many rows on."""
        return ByRows(tuple((round(factor * least), value) for least, value in self.steps))

    @property
    def first(self) -> int:
        """The value for few rows."""
        return self.steps[0][1]

    @property
    def last(self) -> int:
        """The value for many rows."""
        return self.steps[-1][1]

    def __str__(self) -> str:
        first, *others = self.steps
        return "; ".join([f"{first[1]:,}", *(f"{value:,} from {least:,} rows on" for least, value in others)])


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How to fit a model to a kind of target."""

    # Ensemble and network.
    n_members: int
    """Number of networks that are trained side by side and averaged."""
    n_experts: ByRows
    """Number of experts per feature. Wide tables always use the first value."""
    n_steered_experts: int
    """Number of experts per feature if additivity is required: more experts express more with less context."""
    n_diagonal_experts: int
    """Number of experts per feature for the variant 'nae-d', whose gates see only their own feature."""
    hidden_dim: ByRows
    """Width of the encoders. Wide tables always use the first value."""
    wide: int
    """A table with more features than this is wide: larger networks cost four times as much there, and gain nothing."""
    n_blocks: int
    """Number of blocks (the depth) of the encoders."""
    gate_rank: int
    """Width of a low-rank or deep gate."""
    temperature: float
    """Temperature of the Gumbel noise of the variant 'nae-d'."""
    expert_dropout: float
    """Share of expert weights that is dropped in training, unless additivity is required or the table is small."""

    # Knots and levels.
    is_on_rows: bool
    """Whether the encoder is evaluated on rows. Knots then only tabulate it, and ``knot_budget`` is divided by the
    squared number of features and by the experts."""
    most_knots: int
    """Largest number of knots of a number."""
    least_knots: int
    """Every number may have this many knots, even in a table with few rows."""
    rows_per_knot: int | None
    """A number has at most one knot per this many rows, because few rows have simple curves. None sets no limit."""
    knot_budget: int
    """A number has at most this many knots divided by the number of features, as a step costs features × knots."""
    narrow_knots: int
    """Every number may have this many knots, even in a wide table."""
    most_levels: int | None
    """Largest number of levels of a category that keep their own slots. If None, the largest number of knots."""
    level_rows: int
    """A level keeps its own slot if it has this many rows."""
    level_share: float
    """A level also keeps its own slot if it has this share of the rows."""
    n_ramps: int
    """Resolution of the piecewise-linear input."""
    fine_rows: int
    """From this many rows on, an additive model gets finer curves, because it has nothing else."""
    fine_factor: int
    """How many times as many knots a finer model may have."""
    n_fine_ramps: int
    """Resolution of the inputs of a finer model."""
    n_fine_looks: int
    """Patience of a finer model, in looks at the validation rows."""

    # Steps.
    learning_rate: float
    """Learning rate of AdamW."""
    batch_size: ByRows
    """Rows per step."""
    max_steps: int
    """Largest number of steps, from which the largest number of epochs follows."""
    least_epochs: int
    """The largest number of epochs is at least this one."""
    warmup_steps: int
    """Number of steps over which the learning rate rises (warm-up)."""
    schedule: Literal["cosine", "plateau"]
    """How the learning rate falls: along a cosine over all epochs, or once the validation loss stops improving."""
    cooldown: float
    """Number of steps over which the learning rate falls at the end of 'plateau', as a share of the steps before."""
    least_steps: int
    """Number of steps before which 'plateau' does not end."""
    averaged_steps: int | None
    """Number of steps over which the weights that are judged and kept are averaged. None does not average."""

    # Validation.
    validation_size: float
    """Share of the rows that is held out."""
    has_folds: bool
    """Whether each member holds out a fold of its own."""
    evaluate_steps: int | None
    """Number of steps between two looks at the validation rows. None looks after every epoch."""
    least_evaluate_steps: int
    """Number of steps between two looks at the validation rows, for the smallest tables."""
    least_looks: int
    """The validation rows are looked at this often at least, even if there are few epochs."""
    n_looks: int
    """Patience: number of looks without a better validation loss before the learning rate falls."""
    least_patience: int
    """Patience is at least this many steps."""
    patience_share: float | None
    """Patience as a share of the epochs. None counts looks instead."""
    least_patience_epochs: int
    """Patience as a share of the epochs is at least this many epochs."""
    leading_patience: float
    """Patience where monotone features change others, as a share of the usual patience: such a fit improves slowly."""
    full_rows: int
    """Up to this many rows, steps between looks and least steps shrink in proportion: few rows need few steps."""

    # Penalties.
    weight_decay: float
    """Smallest weight decay of AdamW."""
    most_weight_decay: float
    """Largest weight decay of AdamW."""
    decay_per_pair: float
    """Weight decay grows by this number times the number of pairs of features per row."""
    variation_penalty: float
    """Weight of the spread of the experts, the paper's lambda."""
    context_penalty: float
    """Weight of the context's share of the contributions' variance."""
    steered_output_penalty: float
    """Weight of the contributions' mean square if additivity is required; otherwise the weight is 0."""
    initial_penalty: float
    """Weight of the context's share at which the dial starts."""

    # Few rows.
    small_rows: int
    """Up to this many rows, a weight of 2 equals the row twice: full batches, double precision, no random steps."""
    max_small_steps: int
    """Largest number of steps for such a table."""
    start_rows: int
    """Up to this many rows, training starts at a penalised additive model. Larger tables gain nothing from it."""
    unvalidated_epochs: int
    """Largest number of passes if no row can be held out, such as for a single row."""


NUMBERS = Recipe(
    n_members=8,
    n_experts=ByRows(((0, 8), (32_000, 16))),
    n_steered_experts=16,
    n_diagonal_experts=64,
    hidden_dim=ByRows(((0, 32), (32_000, 64))),
    wide=64,
    n_blocks=2,
    gate_rank=64,
    temperature=0.1,
    expert_dropout=0.0,
    is_on_rows=False,
    most_knots=128,
    least_knots=20,
    rows_per_knot=4,
    knot_budget=8192,
    narrow_knots=32,
    most_levels=128,
    level_rows=20,
    level_share=0.01,
    n_ramps=48,
    fine_rows=10_000,
    fine_factor=2,
    n_fine_ramps=64,
    n_fine_looks=16,
    learning_rate=5e-3,
    batch_size=ByRows(((0, 256), (8_000, 512), (100_000, 1024))),
    max_steps=12_000,
    least_epochs=8,
    warmup_steps=50,
    schedule="plateau",
    cooldown=0.5,
    least_steps=1000,
    averaged_steps=None,
    validation_size=0.125,
    has_folds=True,
    evaluate_steps=32,
    least_evaluate_steps=4,
    least_looks=10,
    n_looks=12,
    least_patience=100,
    patience_share=None,
    least_patience_epochs=5,
    leading_patience=0.7,
    full_rows=800,
    weight_decay=0.1,
    most_weight_decay=1.0,
    decay_per_pair=0.75,
    variation_penalty=0.1,
    context_penalty=0.05,
    steered_output_penalty=0.01,
    initial_penalty=0.1,
    small_rows=256,
    max_small_steps=12_000,
    start_rows=1000,
    unvalidated_epochs=200,
)
"""The recipe for numbers (docs/decisions/0005)."""

CLASSES = replace(
    NUMBERS,
    n_experts=ByRows(((0, 8), (10_000, 16))),
    n_steered_experts=8,
    hidden_dim=ByRows(((0, 32), (10_000, 64))),
    expert_dropout=0.1,
    cooldown=0.25,
    least_steps=0,
    averaged_steps=32,
    n_looks=8,
)
"""The recipe for classes. Other values are those for numbers."""

PAPER = replace(
    NUMBERS,
    n_experts=ByRows(((0, 8),)),
    n_steered_experts=8,
    hidden_dim=ByRows(((0, 32),)),
    is_on_rows=True,
    most_knots=4096,
    narrow_knots=256,
    rows_per_knot=None,
    knot_budget=2**25,
    most_levels=None,
    fine_factor=1,
    level_rows=0,
    level_share=0.0,
    schedule="cosine",
    has_folds=False,
    evaluate_steps=None,
    patience_share=0.25,
    context_penalty=0.0,
    steered_output_penalty=0.0,
    max_small_steps=200,
    start_rows=0,
)
"""The recipe for ``encoder='mlp'``, whatever the target."""


@dataclass(frozen=True)
class Effort:
    """How much a fit spends on accuracy: what it changes about a recipe."""

    n_members: int
    """Number of members."""
    patience: float
    """Factor of the looks at the validation rows, and of the steps, that a training waits for a better one."""
    large_rows: float
    """Factor of the rows from which networks are large."""

    def apply(self, recipe: Recipe) -> Recipe:
        """Return the recipe with this effort."""
        return replace(
            recipe,
            n_members=self.n_members,
            n_experts=recipe.n_experts.from_rows(self.large_rows),
            hidden_dim=recipe.hidden_dim.from_rows(self.large_rows),
            n_looks=round(self.patience * recipe.n_looks),
            n_fine_looks=round(self.patience * recipe.n_fine_looks),
            least_patience=round(self.patience * recipe.least_patience),
            least_steps=round(self.patience * recipe.least_steps),
            patience_share=None if recipe.patience_share is None else min(1.0, self.patience * recipe.patience_share),
        )


EFFORTS = {
    "quick": Effort(n_members=4, patience=0.5, large_rows=4.0),
    "normal": Effort(n_members=NUMBERS.n_members, patience=1.0, large_rows=1.0),
    "best": Effort(n_members=16, patience=2.0, large_rows=0.25),
}
"""What ``effort`` may be. 'normal' is the recipe as it is."""

RECIPES = {"numbers": NUMBERS, "classes": CLASSES, "encoder='mlp'": PAPER}


@dataclass(frozen=True)
class Path:
    """How ``additivity='auto'`` moves from a flexible model to an additive one."""

    targets: tuple[float, ...]
    """The additivity of each further point."""
    share: float
    """Epochs of a further point, as a share of the first fit's."""
    learning_rate_share: float
    """Its learning rate, as a share of the first fit's."""
    least_looks: int
    """The smallest number of looks at the validation rows."""
    output_penalty: float
    """The smallest weight of the contributions' mean square."""


PATH = Path(
    targets=(0.7, 0.8, 0.9, 0.95, 0.99),
    share=0.25,
    learning_rate_share=0.5,
    least_looks=8,
    output_penalty=NUMBERS.steered_output_penalty,
)

SMOOTHNESS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""What ``smoothness='auto'`` tries, from rough curves to straight lines."""

VARIANTS: dict[str, dict[str, str]] = {
    "nae": {"routing": "softmax"},
    "nae-e": {"routing": "equal"},
    "nae-d": {"routing": "gumbel", "gate": "diagonal"},
}
"""The gate and the routing of each variant."""
