"""Presets: named sets of parameters for the estimators."""

from typing import Any

from nae.errors import ConfigError, did_you_mean
from nae.recipes import PAPER as PAPER_RECIPE

__all__ = ["PAPER", "paper"]

# PAPER: the table in the appendix on hyper-parameters, one row per data set.
_COLUMNS = (
    "batch_size",
    "max_epochs",
    "learning_rate",
    "weight_decay",
    "encoder_dropout",
    "expert_dropout",
    "output_penalty",
    "normalization",
)
_ROWS: dict[str, tuple[int, int, float, float, float, float, float, str]] = {
    "housing": (2048, 1000, 5.97e-4, 5.29e-5, 0.1, 0.2, 1.97e-5, "layer"),
    "mimic2": (2048, 1000, 1.97e-4, 8.06e-4, 0.0, 0.4, 3.49e-8, "layer"),
    "mimic3": (1024, 500, 1.68e-4, 2.78e-4, 0.1, 0.2, 4.86e-5, "layer"),
    "income": (2048, 1000, 1.11e-4, 4.25e-3, 0.0, 0.5, 3.99e-1, "layer"),
    "credit": (2048, 150, 4.00e-5, 1.88e-3, 0.3, 0.2, 5.07e-4, "batch"),
    "year": (512, 75, 1.17e-4, 2.28e-6, 0.1, 0.6, 1.45e-4, "layer"),
}
PAPER = tuple(_ROWS)


def paper(name: str) -> dict[str, Any]:
    """Return the paper's hyper-parameters for one of its data sets, as estimator parameters.

    Parameters
    ----------
    name
        'housing', 'mimic2', 'mimic3', 'income', 'credit' or 'year'.

    Returns
    -------
    dict
        For ``NAERegressor(**paper("housing"))``. Training stops after a quarter of the epochs without progress on
        validation, and ``max_epochs`` is what the paper calls iterations.

    Examples
    --------
    >>> paper("year")["batch_size"]
    512
    """
    if name not in _ROWS:
        hint = did_you_mean(name, PAPER, is_listed=True)
        raise ConfigError(f"A preset of the paper must be one of {list(PAPER)}; got {name!r}.{hint}")
    parameters: dict[str, Any] = {
        "variant": "nae",
        "encoder": "mlp",
        "gate": "additive",
        "n_experts": 4,
        "n_active": 4,
        "n_members": 1,
        "bounds": "experts",
        "n_blocks": 4,
        "hidden_dim": 128,
        "variation_penalty": PAPER_RECIPE.variation_penalty,
    }
    parameters.update(zip(_COLUMNS, _ROWS[name], strict=True))
    parameters["early_stopping_rounds"] = int(parameters["max_epochs"] * (PAPER_RECIPE.patience_share or 1))
    return parameters
