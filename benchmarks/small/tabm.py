"""TabM from its package: piecewise-linear embeddings, AdamW, and early stopping on a fifth of the rows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import Split, Task
from benchmarks.models.linear import table_columns
from benchmarks.models.protocol import Budget, Fitted

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TabM"]

VALIDATION_SHARE = 0.2
PATIENCE = 16
MOST_EPOCHS = 500
BATCH_ROWS = 64
N_BINS = 32


@dataclass(frozen=True)
class TabM:
    """An ensemble of multilayer perceptrons that share most of their weights."""

    modules: tuple[str, ...] = ("tabm", "torch")

    def fit(self, split: Split, budget: Budget) -> Fitted:
        """Fit four fifths of the rows until the loss on the last fifth stops improving."""
        import torch
        from sklearn.model_selection import train_test_split

        rows, is_class = split.all_train, split.dataset.task != "regression"
        torch.set_num_threads(budget.threads)
        torch.manual_seed(budget.seed)
        strata = rows.y if is_class and np.bincount(rows.y).min() > 1 else None
        n_validation = max(split.n_classes, 2, round(VALIDATION_SHARE * len(rows)))
        order = np.arange(len(rows))
        train, held_out = train_test_split(order, test_size=n_validation, random_state=budget.seed, stratify=strata)
        columns = table_columns(rows.X).fit(rows.X.iloc[train])
        centre, spread = (0.0, 1.0) if is_class else (rows.y[train].mean(), rows.y[train].std() or 1.0)
        target = torch.as_tensor(rows.y if is_class else (rows.y - centre) / spread)
        target = target if is_class else target.float()
        inputs = _inputs(columns, rows.X)
        model = _make(inputs[train], split.n_classes or 1)
        _train(model, (inputs[train], target[train]), (inputs[held_out], target[held_out]), is_class=is_class)
        fitted = _FittedTabM(model, columns, split.dataset.task, float(centre), float(spread))
        return Fitted(fitted, split.dataset.task, lambda X: X)


@dataclass(frozen=True, eq=False)
class _FittedTabM:
    model: Any
    columns: Any
    task: Task
    centre: float
    spread: float

    def predict(self, X: "pd.DataFrame") -> NDArray[np.float64]:
        return np.asarray(self._outputs(X).mean(axis=1)[:, 0] * self.spread + self.centre)

    def predict_proba(self, X: "pd.DataFrame") -> NDArray[np.float64]:
        scores = self._outputs(X)
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        return np.asarray((shares / shares.sum(axis=2, keepdims=True)).mean(axis=1))

    def _outputs(self, X: "pd.DataFrame") -> NDArray[np.float64]:
        import torch

        self.model.eval()
        with torch.no_grad():
            found: NDArray[np.float64] = self.model(_inputs(self.columns, X)).double().numpy()
        return found


def _inputs(columns: Any, X: "pd.DataFrame") -> Any:
    import torch

    found = columns.transform(X)
    return torch.as_tensor(np.asarray(found.todense() if hasattr(found, "todense") else found, dtype=np.float32))


def _make(inputs: Any, n_outputs: int) -> Any:
    """Return the network. Embeddings are linear if a column has a single value, and therefore no bins."""
    import tabm
    from rtdl_num_embeddings import LinearReLUEmbeddings, PiecewiseLinearEmbeddings, compute_bins

    if all(len(column.unique()) > 1 for column in inputs.T):
        bins = compute_bins(inputs, n_bins=min(N_BINS, len(inputs) - 1))
        embeddings: Any = PiecewiseLinearEmbeddings(bins, d_embedding=16, activation=False, version="B")
    else:
        embeddings = LinearReLUEmbeddings(inputs.shape[1], 16)
    return tabm.TabM.make(n_num_features=inputs.shape[1], d_out=n_outputs, num_embeddings=embeddings)


def _train(model: Any, rows: tuple[Any, Any], held_out: tuple[Any, Any], *, is_class: bool) -> None:
    """Train each of the k predictions separately, validate their mean, and keep the weights of the best epoch."""
    import torch
    from torch.nn import functional as fn

    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=3e-4)

    def loss_of(inputs: Any, target: Any) -> Any:
        scores = model(inputs)  # (B, k, O)
        wanted = target.repeat_interleave(scores.shape[1])
        return (
            fn.cross_entropy(scores.flatten(0, 1), wanted)
            if is_class
            else fn.mse_loss(scores.flatten(0, 1)[:, 0], wanted)
        )

    def judge(inputs: Any, target: Any) -> float:
        model.eval()
        with torch.no_grad():
            scores = model(inputs)
            if is_class:
                return float(fn.nll_loss(scores.softmax(dim=-1).mean(dim=1).log(), target))
            return float(fn.mse_loss(scores.mean(dim=1)[:, 0], target))

    best, best_state, waited = float("inf"), model.state_dict(), 0
    for _ in range(MOST_EPOCHS):
        model.train()
        for batch in torch.randperm(len(rows[0])).split(BATCH_ROWS):
            optimiser.zero_grad()
            loss_of(rows[0][batch], rows[1][batch]).backward()
            optimiser.step()
        loss = judge(*held_out)
        waited += 1
        if loss < best:
            best, waited = loss, 0
            best_state = {name: value.clone() for name, value in model.state_dict().items()}
        if waited >= PATIENCE:
            break
    model.load_state_dict(best_state)
