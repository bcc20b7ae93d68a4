"""Train on a simulated table and on a real one, print the results, draw them into demo/, and write a report."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score, root_mean_squared_error
from sklearn.model_selection import train_test_split

from nae import NAEClassifier, NAERegressor, datasets, metrics, plots
from nae.report import write_report

FOLDER = Path("demo")
COLOURS = {1: "#d95f02", -1: "#1f78b4"}


def main() -> None:
    """Run both parts."""
    console = Console(width=96)
    FOLDER.mkdir(exist_ok=True)
    console.rule("[bold]1  A simulated table: x2 flips the wave of x1")
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
    save(console, draw_simulation(models, X_test), "simulation.png")


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
    row = {name: column[[doubtful]] for name, column in X_test.items()}
    explain(console, model, row, truth=y_test[doubtful])
    importance = np.abs(model.contributions(X).values).mean(axis=0)
    strongest = [model.model_.feature_names[i] for i in np.argsort(-importance)[:6]]
    save(console, plots.shapes(model.explain_global(X), features=strongest), "breast_cancer.png")
    save(console, plots.waterfall(model.explain_local(row)).figure, "breast_cancer_row.png")
    title = "Benign or malignant? What a model makes of 30 measurements"
    page = write_report(
        model.model_, {**X_test, "diagnosis": y_test}, FOLDER / "report.html", target="diagnosis", title=title
    )
    console.print(f"Open it in a browser, the model is inside: [bold]{page}[/]")


def result_table(score: str) -> Table:
    """Return an empty table of results."""
    table = Table("model", header_style="bold")
    for column in (score, "weighted additivity", "interaction share", "cancellation"):
        table.add_column(column, justify="right")
    return table


def add_result(table: Table, name: str, score: float, model: Any, X: Any) -> None:
    """Add the row of one model. Its additivity is measured on ``X``."""
    shown = (metrics.additivity_weighted, metrics.interaction_share, metrics.cancellation)
    numbers = (metric(model, X) for metric in shown)
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
        f"The most doubtful tumour of the test set: {chance:.0%} {model.classes_[1]}, actual: {truth}.", table
    )


def draw_simulation(models: dict[str, NAERegressor], X: datasets.Table) -> Figure:
    """Draw the effect of x1 in both models, coloured by x2, with the band that no effect can leave."""
    figure = Figure(figsize=(9.6, 3.8), layout="constrained")
    for ax, (name, model) in zip(figure.subplots(1, 2, sharey=True), models.items(), strict=True):
        order, found = np.argsort(X["x1"]), model.contributions(X)
        x1, lower, upper = (column[order] for column in (X["x1"], found.lower[:, 0], found.upper[:, 0]))
        ax.fill_between(x1, lower, upper, color="#d9e2ec", lw=0, label="guaranteed bounds")
        for sign, colour in COLOURS.items():
            ax.plot([], [], ".", ms=10, color=colour, label=f"rows with x2 = {sign}")
        ax.scatter(X["x1"], found.values[:, 0], s=3, lw=0, c=[COLOURS[int(sign)] for sign in X["x2"]])
        ax.axhline(0, color="#7b8794", lw=0.6, zorder=0)
        ax.spines[:].set_visible(False)
        ax.tick_params(colors="#7b8794", labelsize=9, length=0)
        ax.set_title(name, loc="left", fontsize=11, fontweight="bold")
        ax.set_xlabel("x1")
    figure.axes[0].set_ylabel("contribution of x1")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def save(console: Console, figure: Figure, name: str) -> None:
    """Save a figure in the folder of the demo."""
    figure.savefig(FOLDER / name, dpi=150)
    console.print(f"Drawn: [bold]{FOLDER / name}[/]")


if __name__ == "__main__":
    main()
