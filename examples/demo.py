"""Train on a simulated and on a real table, print what the models say, and draw it into demo/."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score, root_mean_squared_error
from sklearn.model_selection import train_test_split

from nae import NAEClassifier, NAERegressor, TableModel, datasets, metrics

FOLDER = Path("demo")
INK, BAND, GREY, BLUE, ORANGE = "#22223b", "#d9e2ec", "#7b8794", "#1f77b4", "#e8702a"


def main() -> None:
    """Run both parts."""
    console = Console(width=96)
    FOLDER.mkdir(exist_ok=True)
    console.rule("[bold]1  A simulated table: x2 turns the wave of x1 over")
    simulate(console)
    console.rule("[bold]2  A real table: 569 tumours, 30 measurements of each")
    diagnose(console)


def simulate(console: Console) -> None:
    """Fit the paper's multimodal simulation, first with one expert per feature, then with several."""
    X, y = datasets.multimodal(10_000)
    X_test, y_test = datasets.multimodal(5_000, seed=1)
    models = {
        "additive model (additivity=1)": NAERegressor(additivity=1.0, n_members=1, verbose=True, random_state=0),
        "additive experts": NAERegressor(n_members=1, verbose=True, random_state=0),
    }
    table = result_table("RMSE")
    for name, model in models.items():
        model.fit(X, y)
        add_result(table, name, root_mean_squared_error(y_test, model.predict(X_test)), model, X_test)
    console.print(table, "The noise alone has an RMSE of 0.1.")
    figure = Figure(figsize=(9.6, 3.9), layout="constrained")
    groups = {"effect where x2 = 1": X_test["x2"] > 0, "effect where x2 = −1": X_test["x2"] < 0}
    for ax, (name, model) in zip(figure.subplots(1, 2, sharey=True), models.items(), strict=True):
        draw_shape(ax, model.model_, X_test, "x1", groups=groups)
        ax.set_title(name, loc="left", fontsize=11, fontweight="bold", color=INK)
    finish(console, figure, "contribution to y", "simulation.png")


def diagnose(console: Console) -> None:
    """Fit a table of tumours, ask for additivity, and explain the most doubtful of the test rows."""
    data = load_breast_cancer()
    labels = data.target_names[data.target]
    train, test = train_test_split(np.arange(len(labels)), test_size=0.25, random_state=0, stratify=labels)
    X, X_test = ({str(name): data.data[rows, i] for i, name in enumerate(data.feature_names)} for rows in (train, test))
    y, y_test = labels[train], labels[test]
    table = result_table("AUC")
    for name, additivity in (("additive experts", None), ("the same, additivity=0.9", 0.9)):
        model = NAEClassifier(additivity=additivity, verbose=True, random_state=0).fit(X, y)
        probability = model.predict_proba(X_test)[:, 1]
        add_result(table, name, roc_auc_score(y_test == model.classes_[1], probability), model, X)
    console.print(table)
    doubtful = int(np.abs(probability - 0.5).argmin())
    explain(console, model, {name: column[[doubtful]] for name, column in X_test.items()}, truth=y_test[doubtful])
    importance = np.abs(model.contributions(X).values).mean(axis=0)
    strongest = [model.model_.feature_names[i] for i in np.argsort(-importance)[:6]]
    figure = Figure(figsize=(10.8, 6.4), layout="constrained")
    for ax, name in zip(figure.subplots(2, 3, sharey=True).flat, strongest, strict=True):
        draw_shape(ax, model.model_, X, name, groups={label: y == label for label in model.classes_[::-1]}, size=3.4)
    finish(console, figure, f"contribution to the log-odds of {model.classes_[1]}", "breast_cancer.png")


def result_table(score: str) -> Table:
    """Return an empty table of results."""
    table = Table("model", header_style="bold")
    for column in (score, "additivity", "interaction share", "cancellation"):
        table.add_column(column, justify="right")
    return table


def add_result(table: Table, name: str, score: float, model: Any, X: Any) -> None:
    """Add the row of one model, its additivity measured on ``X``."""
    numbers = (metric(model, X) for metric in (metrics.additivity, metrics.interaction_share, metrics.cancellation))
    table.add_row(name, f"{score:.4f}", *(f"{number:.3f}" for number in numbers))


def explain(console: Console, model: NAEClassifier, row: datasets.Table, *, truth: str) -> None:
    """Print the strongest contributions to one row's score, each with its guaranteed bounds."""
    found = model.contributions(row)
    values, lower, upper = found.values[0], found.lower[0], found.upper[0]
    table = Table("feature", header_style="bold")
    for column in ("value", "adds", "at least", "at most"):
        table.add_column(column, justify="right")
    strongest = np.argsort(-np.abs(values))[:8]
    for i in strongest:
        colour = "dark_orange" if values[i] > 0 else "blue"
        name, adds = found.feature_names[i], f"[{colour}]{values[i]:+.3f}[/]"
        table.add_row(name, f"{row[name][0]:.4g}", adds, f"{lower[i]:+.3f}", f"{upper[i]:+.3f}")
    rest = np.delete(values, strongest)
    table.add_row(f"{len(rest)} others", "", f"{rest.sum():+.3f}")
    table.add_row("intercept", "", f"{model.intercept_:+.3f}", end_section=True)
    table.add_row("[bold]log-odds", "", f"[bold]{found.score[0]:+.3f}")
    chance = model.predict_proba(row)[0, 1]
    console.print(
        f"The most doubtful tumour of the test set: {chance:.0%} {model.classes_[1]}, in truth {truth}.", table
    )


def draw_shape(ax: Axes, model: TableModel, X: Any, name: str, *, groups: dict[str, Any], size: float = 2.0) -> None:
    """Draw one feature: the band its effect can never leave, actual effects by group, mean effect and density."""
    i = model.schema.index(name)
    knots = np.array(model.schema.features[i].labels[:-2], dtype=float)  # missing and unseen come last
    lower, upper = (bound[model.schema.slots(i)][:-2, 0] for bound in model.slot_bounds)
    values, effects = np.asarray(X[name]), model.contributions(X).feature(name)
    ax.fill_between(knots, lower, upper, color=BAND, lw=0, label="guaranteed bounds")
    for (label, rows), colour in zip(groups.items(), (ORANGE, BLUE), strict=True):
        ax.plot(values[rows], effects[rows], "o", ms=size, mew=0, color=colour, alpha=0.6, label=label)
    ax.plot(*mean_by_bin(values, effects), color=INK, lw=1.8, label="mean effect")
    ax.axhline(0, color=GREY, lw=0.6, zorder=0)
    ax.set(xlim=np.quantile(values, [0.002, 0.995]), ymargin=0.14)
    ax.set_xlabel(name, color=INK)
    ax.spines[:].set_visible(False)
    ax.tick_params(colors=GREY, labelsize=8, length=0)
    density = ax.inset_axes((0, 0, 1, 0.1), xlim=ax.get_xlim())
    density.hist(values, bins=60, range=ax.get_xlim(), color=GREY, alpha=0.4)
    density.axis("off")


def mean_by_bin(values: Any, effects: Any, n_bins: int = 30) -> tuple[Any, Any]:
    """Return the means of both in bins of equally many rows."""
    order = np.array_split(np.argsort(values), n_bins)
    return [values[rows].mean() for rows in order], [effects[rows].mean() for rows in order]


def finish(console: Console, figure: Figure, label: str, name: str) -> None:
    """Add label and legend to a figure, and write it into the folder of the demo."""
    figure.supylabel(label, fontsize=10, color=INK)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    for handle in legend.get_lines():
        handle.set(markersize=6, alpha=1)
    figure.savefig(FOLDER / name, dpi=150)
    console.print(f"Drawn: [bold]{FOLDER / name}[/]\n")


if __name__ == "__main__":
    main()
