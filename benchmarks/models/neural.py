"""Networks as models of the suite: with features, training and the scikit-learn interface."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Part, Split, Task
from benchmarks.models.protocol import Budget, Fitted
from benchmarks.models.recipe import Recipe

if TYPE_CHECKING:
    import pandas as pd

    from benchmarks.models.networks import Network
    from benchmarks.models.networks.inputs import Inputs
    from benchmarks.models.networks.training import Rows, Trained

__all__ = ["FittedNetwork", "Neural", "Terms"]

Kind = Literal["mlp", "nam", "nbm", "node", "node-gam"]


@dataclass(frozen=True)
class Neural:
    """A network of the literature, trained until validation stops improving."""

    kind: Kind
    recipe: Recipe
    has_pairs: bool = False
    modules: tuple[str, ...] = ("torch", "sklearn.preprocessing")

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit on the device of the budget. If the budget has a number of epochs, it replaces that of the recipe."""
        import torch

        from benchmarks.models.networks import NETWORKS
        from benchmarks.models.networks.inputs import Inputs
        from benchmarks.models.networks.training import seeded, train

        recipe = self.recipe if budget.max_epochs is None else replace(self.recipe, max_epochs=budget.max_epochs)
        device = torch.device(budget.device)
        inputs = Inputs.fit(split.train.X, split.train.y, seed=budget.seed)
        scale = Scale.fit(split.train.y, split.dataset.task)
        options: dict[str, Any] = {"has_pairs": True} if self.has_pairs else {}
        with seeded(budget.seed, threads=budget.threads, device=device) as shuffle:
            n_outputs = split.n_classes if split.dataset.task == "multiclass" else 1
            network = NETWORKS[self.kind](len(inputs.names), n_outputs, **options).to(device)
            parts = [_rows(part, inputs, scale).to(device) for part in (split.train, split.validation)]
            trained = train(network, parts[0], parts[1], recipe, shuffle=shuffle)
        return Fitted(FittedNetwork(network, inputs, scale, device, trained), split.dataset.task, lambda X: X)


@dataclass(frozen=True)
class Scale:
    """The centre and the spread of the target; 0 and 1 for classes."""

    centre: float = 0.0
    spread: float = 1.0

    @classmethod
    def fit(cls, y: NDArray[Any], task: Task) -> "Scale":
        """Compute them from training targets."""
        return cls(float(y.mean()), float(y.std()) or 1.0) if task == "regression" else cls()


@dataclass(frozen=True, eq=False)
class Terms:
    """The terms of an additive network, whose scores are ``values.sum(axis=1) + intercept``."""

    names: tuple[tuple[str, ...], ...]
    """The features of every term."""
    values: NDArray[np.float64]
    """(row, term, output), in units of the target, or of the logit."""
    intercept: NDArray[np.float64]
    """(output,)"""


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """A trained network with the scikit-learn interface."""

    network: "Network"
    inputs: "Inputs"
    scale: Scale
    device: Any
    trained: "Trained"

    def predict(self, X: "pd.DataFrame") -> NDArray[np.float64]:
        """Return the predicted numbers (row,)."""
        return self.scores(X)[:, 0]

    def predict_proba(self, X: "pd.DataFrame") -> NDArray[np.float64]:
        """Return the probabilities of the classes (row, class)."""
        scores = self.scores(X)
        if scores.shape[1] == 1:
            scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
        return shares

    def scores(self, X: "pd.DataFrame") -> NDArray[np.float64]:
        """Return numbers, or logits (row, output)."""
        from benchmarks.models.networks.training import evaluate

        scores: NDArray[np.float64] = evaluate(self.network, self._features(X)).double().cpu().numpy()
        return scores * self.scale.spread + self.scale.centre

    def terms(self, X: "pd.DataFrame") -> Terms:
        """Return the terms of an additive network. Other networks have none and raise ``TypeError``."""
        from benchmarks.models.networks import AdditiveNetwork
        from benchmarks.models.networks.training import evaluate_terms

        if not isinstance(self.network, AdditiveNetwork):
            raise TypeError(f"Terms must be asked of an additive network; {type(self.network).__name__} is not one.")
        values = evaluate_terms(self.network, self._features(X)).double().cpu().numpy()
        intercept = self.network.intercept.detach().double().cpu().numpy()
        names = tuple(tuple(self.inputs.names[i] for i in key) for key in self.network.keys)
        return Terms(names, values * self.scale.spread, intercept * self.scale.spread + self.scale.centre)

    @property
    def n_parameters(self) -> int:
        """The number of trained parameters."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    def _features(self, X: "pd.DataFrame") -> Any:
        import torch

        return torch.as_tensor(self.inputs(X)).to(self.device)


def _rows(part: Part, inputs: "Inputs", scale: Scale) -> "Rows":
    import torch

    from benchmarks.models.networks.training import Rows

    is_number = part.y.dtype.kind == "f"
    y = torch.as_tensor((part.y - scale.centre) / scale.spread, dtype=torch.float32 if is_number else torch.int64)
    return Rows(torch.as_tensor(inputs(part.X)), y)
