"""Explain differences between paper mode and the paper: the same runs with one interpretation changed at a time."""

from dataclasses import dataclass

from benchmarks.paper.accuracy import DIAGONAL, FIGURES, N_SEEDS
from benchmarks.paper.experiment import Experiment, Results, Section
from benchmarks.paper.housing import LAMBDAS, lambda_run
from benchmarks.paper.housing import TABLE as HOUSING
from benchmarks.paper.runs import PAPER, Run, Value, settings
from benchmarks.paper.scaling import EVEN_GRID, K_LAMBDA, K_LAMBDAS, even_run, grid_run
from benchmarks.paper.simulations import ADDITIVITIES
from benchmarks.paper.simulations import LAMBDAS as SIMULATED
from benchmarks.paper.simulations import lambda_run as simulated_run
from benchmarks.paper.verdicts import Figure, Line, judge
from benchmarks.tables import markdown_table
from nae import presets

__all__ = ["EXPERIMENTS"]

LEAST_DROPOUT: dict[str, Value] = {"encoder_dropout": 0.0, "expert_dropout": 0.1}
LEAST_DROPOUT |= {"max_epochs": 150, "early_stopping_rounds": 37}
"""The smallest dropout in the paper's ranges, and a sufficient number of epochs."""
NO_DROPOUT: dict[str, Value] = {"encoder_dropout": 0.0, "expert_dropout": 0.0}
NO_DROPOUT |= {"max_epochs": 75, "early_stopping_rounds": 18, "learning_rate": 2e-3}
"""No dropout, with fewer and larger steps."""
SHORT: dict[str, Value] = {"max_epochs": 75, "early_stopping_rounds": 18}
"""The smallest number of epochs in the paper's ranges."""
CELLS = ((16, 2), (32, 4), (64, 8), (64, 16))
"""Cells of NAE-E's grid: numbers of experts and of active experts."""
ESTIMATES = (
    ("additivity_by_value", "additivity by exact value"),
    ("additivity_floored", "the same, δ a hundredth of the score's variance"),
)
STRENGTHS = (1.0, 10.0, 100.0)


def _with(run: Run, values: dict[str, Value]) -> Run:
    return Run(run.data, run.model, settings(**dict(run.settings) | values), run.options, run.seed, run.fold)


def _diagonal(values: dict[str, Value]) -> Run:
    return _with(Run("housing", PAPER, DIAGONAL), values)


def _even(n_experts: int, n_active: int) -> Run:
    return _with(even_run(PAPER, n_experts, n_active, 0.0), NO_DROPOUT)


def _unbiased(n_experts: int, strength: float) -> Run:
    """Return the run with the penalty of the released code, which divides by K − 1."""
    stronger = round(strength * n_experts / (n_experts - 1), 4)
    values = {"n_experts": n_experts, "n_active": n_experts} if n_experts != 4 else {}
    return Run("housing", PAPER, settings(variation_penalty=stronger, **values))


def _dropped(strength: float, **values: Value) -> Run:
    """Return the simulation with Housing's dropout, which paper mode does not use for simulations."""
    own = {name: presets.paper("housing")[name] for name in ("encoder_dropout", "expert_dropout")}
    return Run("multimodal", PAPER, settings(variation_penalty=strength, **own, **values))


def _short(strength: float) -> Run:
    """Return the same run with few epochs."""
    return _dropped(strength, **SHORT)


def _runs() -> list[Run]:
    return [
        _diagonal(NO_DROPOUT),
        _diagonal(LEAST_DROPOUT),
        *(_even(k, c) for k, c in CELLS),
        *(_unbiased(4, strength) for strength in STRENGTHS),
        _unbiased(2, 10.0),
        *(_short(strength) for strength in SIMULATED),
        _dropped(10.0),
    ]


@dataclass(frozen=True)
class _Change:
    """One number of the paper, and ours before and after the change."""

    label: str
    paper: Figure
    before: list[Run]
    after: list[Run]
    metric: str = "rmse"

    def line(self, results: Results) -> Line:
        is_error = self.metric == "rmse"
        return Line(
            self.label,
            self.paper,
            results.measured(self.after, self.metric),
            is_lower_better=True if is_error else None,
            tolerance=0.01 if is_error else 0.05 if self.metric in HOUSING else 0.1,
        )


def _dropout_changes() -> list[_Change]:
    before = [Run("housing", PAPER, DIAGONAL, seed=seed) for seed in range(N_SEEDS)]
    diagonal = [
        _Change(f"NAE-D, K = 64: {label}", Figure(*FIGURES["nae-d"][0]), before, [_diagonal(values)])
        for label, values in (("0 and 0.1", LEAST_DROPOUT), ("none", NO_DROPOUT))
    ]
    even = [
        _Change(f"NAE-E, K = {k}, C = {c}: none", Figure(*EVEN_GRID[k, c]), [even_run(PAPER, k, c, 0.0)], [_even(k, c)])
        for k, c in CELLS
    ]
    return [*diagonal, *even]


def _penalty_changes() -> list[_Change]:
    changes = [
        _Change(
            f"λ = {strength:g}: {'RMSE' if metric == 'rmse' else metric}",
            Figure(value, spread or None),
            [lambda_run(PAPER, strength)],
            [_unbiased(4, strength)],
            metric,
        )
        for strength in STRENGTHS
        for metric, figures in HOUSING.items()
        for value, spread in [figures[LAMBDAS.index(strength)]]
    ]
    before, paper = grid_run(PAPER, 2, strength=10.0), K_LAMBDA[2][K_LAMBDAS.index(10.0)]
    return [*changes, _Change("K = 2, λ = 10: RMSE", Figure(paper), [before], [_unbiased(2, 10.0)])]


def _simulated_changes() -> list[_Change]:
    label, metric = "λ = 10: additivity by exact value, 1,000 epochs", "additivity_by_value"
    long = _Change(label, Figure(ADDITIVITIES[-1]), [simulated_run(PAPER, 10.0)], [_dropped(10.0)], metric)
    changes = [
        _Change(
            f"λ = {strength:g}: {label}",
            Figure(paper),
            [simulated_run(PAPER, strength)],
            [_short(strength)],
            metric,
        )
        for metric, label in ESTIMATES
        for strength, paper in zip(SIMULATED, ADDITIVITIES, strict=True)
    ]
    return [*changes, long]


def _show(results: Results) -> Section:
    groups = (
        (DROPOUT_NOTE, _dropout_changes()),
        (PENALTY_NOTE, _penalty_changes()),
        (SIMULATED_NOTE, _simulated_changes()),
    )
    texts, lines = [INTRODUCTION], []
    for note, every in groups:
        changes = [change for change in every if results.measured(change.after, change.metric).values]
        if not changes:
            continue  # an interpretation that has not been run is left out
        found = [change.line(results) for change in changes]
        rows = [
            [
                line.label,
                change.paper.show(3),
                results.measured(change.before, change.metric).show(3),
                line.mode.show(3),
                {"not": "**not**", "not run": "–"}.get(word := judge(line.mode, line.paper, line), word),
            ]
            for change, line in zip(changes, found, strict=True)
        ]
        texts += [note, markdown_table(["", "paper", "paper mode", "changed", "verdict"], rows)]
        lines += found
    return Section(texts, lines)


INTRODUCTION = (
    "Runs of paper mode with one thing changed that the paper leaves open, or that its released code does otherwise "
    "than its text, to see which of them explains a difference found above. Housing unless said otherwise; one seed "
    "where something is changed."
)
DROPOUT_NOTE = (
    "**NAE-D and NAE-E: dropout.** Values and gradients of the weights are those of the paper's equations and of its "
    "released code; that code reads settings of their own for the two variants, which the paper does not print, and "
    "draws Gumbel noise when it predicts. Paper mode has NAE's dropout, 0.1 in the encoders and 0.2 of the experts. "
    "Changed: the least in the paper's ranges, 0 and 0.1, with 150 epochs; or none at all, with 75 epochs and a "
    "learning rate of 0.002. Dropout of experts is most of what NAE-D is short of, since Gumbel noise leaves one "
    "expert a feature and dropping it leaves nothing. Of what NAE-E is short of it is a third to a half with 16 and 32 "
    "experts, and nothing with 64; the rest is not explained."
)
PENALTY_NOTE = (
    "**The variation penalty: K − 1.** Eq. (7) divides the squares by K, the released code by K − 1. Changed: "
    "λ K / (K − 1) in Eq. (7), which is the same. At λ = 10 the RMSE comes nearer to the paper's, a third of the "
    "way at K = 4 and more than half of it at K = 2; additivity a fifth of the way. The rest is not explained."
)
SIMULATED_NOTE = (
    "**The multimodal table: short training.** Paper mode takes 1,000 epochs and no dropout. Changed: Housing's "
    "dropout and 75 epochs, the fewest in the paper's ranges. At λ = 10 the experts then never part: the RMSE is that "
    "of NAM, the bounds are closed, and additivity is the paper's 1.000 as soon as δ is not vanishingly small; with "
    "more epochs they part after all. At λ = 1 the paper's figure is not met either way."
)
EXPERIMENTS = (Experiment("differences", "What explains the differences", "–", _runs, _show),)
