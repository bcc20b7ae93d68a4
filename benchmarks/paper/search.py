"""The paper's random search for hyper-parameters on Housing, a few trials at a time.

Optuna draws the trials. They are stored in ``trials.json`` next to the results, so that a search can be continued, and
so that a machine without Optuna can carry out trials.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.paper.claims import Claim, claims_table
from benchmarks.paper.experiment import Experiment, Results, Section
from benchmarks.paper.runs import PAPER, Run, Value, settings
from benchmarks.tables import markdown_table
from nae import presets
from nae._optional import require

__all__ = ["EXPERIMENTS", "draw_trials", "known_trials", "trial_run"]

TRIALS = Path("benchmarks/results/paper/trials.json")
N_SMOKE = 2
CHOICES: dict[str, tuple[Value, ...]] = {
    "n_blocks": (3, 4),
    "hidden_dim": (64, 128),
    "batch_size": (512, 1024, 2048),
    "max_epochs": (75, 150, 500, 1000),
    "encoder_dropout": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "expert_dropout": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
    "normalization": ("batch", "layer"),
}
FEWEST = 3
"""With fewer trials, no verdict is given."""
RANGES = {"learning_rate": (1e-6, 1e-1), "weight_decay": (1e-8, 1e-1), "output_penalty": (1e-8, 1e-1)}
"""Parameters drawn on a log scale. The paper does not state the scale, but its best values span six decades."""


def known_trials(path: Path = TRIALS) -> list[dict[str, Value]]:
    """Return the trials that have been drawn."""
    found: list[dict[str, Value]] = json.loads(path.read_text()) if path.exists() else []
    return found


def draw_trials(n_trials: int, path: Path = TRIALS) -> list[dict[str, Value]]:
    """Return at least ``n`` trials. Missing ones are drawn and stored."""
    trials = known_trials(path)
    if len(trials) >= n_trials:
        return trials
    optuna = require("optuna", extra="tune")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    space = _distributions(optuna)
    # Every trial has its own seed, so that it does not depend on how many trials were drawn at once.
    for number in range(len(trials), n_trials):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=number))
        trials.append(dict(sorted(study.ask(space).params.items())))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(trials, indent=1) + "\n")
    return trials


def trial_run(trial: Mapping[str, Value]) -> Run:
    """Return the run of a trial."""
    epochs = int(trial["max_epochs"] or 1)
    return Run("housing", PAPER, settings(**trial, early_stopping_rounds=max(5, epochs // 4)))


def _distributions(optuna: Any) -> dict[str, Any]:
    kinds = optuna.distributions
    found = {name: kinds.CategoricalDistribution(values) for name, values in CHOICES.items()}
    return found | {name: kinds.FloatDistribution(*limits, log=True) for name, limits in RANGES.items()}


def _runs() -> list[Run]:
    return [trial_run(trial) for trial in known_trials()]


def _show(results: Results) -> Section:
    names = (*CHOICES, *RANGES)
    own = presets.paper("housing")
    reference = results.report(Run("housing", PAPER))
    rows = [["**the paper's choice**", *_scores(reference), *(_value(own[name]) for name in names)]]
    found = [(number, trial, results.report(trial_run(trial))) for number, trial in enumerate(known_trials())]
    done = [(number, trial, report) for number, trial, report in found if report is not None]
    for number, trial, report in sorted(done, key=lambda each: each[2].validation or 0.0):
        rows.append([f"trial {number}", *_scores(report), *(_value(trial[name]) for name in names)])
    text = (
        f"{len(done)} of {len(found)} trials drawn from the paper's ranges have been run, the best on validation rows "
        "first. How many the paper ran is not said. `python -m benchmarks paper search --trials 20` draws and runs "
        "further ones."
    )
    scores = [report.validation for _, _, report in done if report.validation is not None]
    best = min(scores) if len(scores) >= FEWEST else None
    claim = Claim(
        "the paper's choice is not beaten: validation RMSE of the best trial over its own",
        None if best is None or reference is None or not reference.validation else best / reference.validation,
        least=1.0,
    )
    texts = [text, claims_table([claim], has_default=False)]
    texts.append(markdown_table(["", "validation RMSE", "test RMSE", *names], rows))
    return Section(texts, claims=[claim])


def _scores(report: Any) -> tuple[str, str]:
    if report is None:
        return "–", "–"
    return f"{report.validation:.4f}", f"{report.rmse:.4f}"


def _value(value: Value) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


EXPERIMENTS = (Experiment("search", "Search for hyper-parameters", "Appendix, hyper-parameters", _runs, _show),)
