"""The accuracy of all models on all tables of the paper, and NAE-D among the additive models."""

from benchmarks.models import entry_named
from benchmarks.paper.drawing import Panel, draw_panels
from benchmarks.paper.experiment import Experiment, Picture, Results, Section
from benchmarks.paper.runs import DEFAULT, PAPER, Run, Settings, settings
from benchmarks.paper.tables import N_FOLDS, is_at_hand
from benchmarks.paper.verdicts import Figure, Line, Measured, comparison, with_reason
from benchmarks.tables import markdown_table

__all__ = ["ADDITIVE", "EXPERIMENTS", "PEERS", "TABLES", "at_hand", "repeated"]

N_SEEDS = 3
"""Number of seeds of variants and peers. The paper has ten."""
N_OWN_SEEDS = 10
"""Number of seeds of NAE itself, as in the paper."""
TABLES = ("housing", "mimic2", "mimic3", "income", "credit", "year")
"""The paper's tables, in its order."""
SEEDED = ("housing", "year")
"""Tables with one split and several seeds. The other tables have five folds."""
SAMPLE = "credit_sample5412"
LABELS = {"housing": "Housing", "mimic2": "MIMIC-II", "mimic3": "MIMIC-III", "income": "Income", "credit": "Credit"}
LABELS |= {"year": "Year", SAMPLE: "Credit, sample of 5,412 rows"}
PEERS = (
    "mlp", "node", "xgboost", "lightgbm", "catboost", "ebm", "na2m", "nb2m", "node-ga2m", "linear", "spline",
    "ebm-additive", "nam", "nbm", "node-gam",
)  # fmt: skip
ADDITIVE = ("ebm-additive", "nam")
FIGURES: dict[str, tuple[tuple[float, float], ...]] = {
    "mlp": ((0.501, 0.006), (0.835, 0.014), (0.815, 0.009), (0.914, 0.003), (0.981, 0.007), (78.48, 0.56)),
    "node": ((0.523, 0.0), (0.843, 0.011), (0.828, 0.007), (0.919, 0.003), (0.981, 0.009), (76.21, 0.12)),
    "xgboost": ((0.443, 0.0), (0.844, 0.012), (0.819, 0.004), (0.928, 0.003), (0.978, 0.009), (78.53, 0.09)),
    "ebm": ((0.492, 0.0), (0.848, 0.012), (0.821, 0.004), (0.928, 0.003), (0.982, 0.006), (83.16, 0.01)),
    "na2m": ((0.492, 0.008), (0.843, 0.012), (0.825, 0.006), (0.912, 0.003), (0.985, 0.007), (79.80, 0.05)),
    "nb2m": ((0.478, 0.002), (0.848, 0.012), (0.819, 0.010), (0.917, 0.003), (0.978, 0.007), (79.01, 0.03)),
    "node-ga2m": ((0.476, 0.007), (0.846, 0.011), (0.822, 0.007), (0.923, 0.003), (0.986, 0.010), (79.57, 0.12)),
    "linear": ((0.735, 0.0), (0.796, 0.012), (0.772, 0.009), (0.900, 0.002), (0.976, 0.012), (88.89, 0.40)),
    "spline": ((0.568, 0.0), (0.825, 0.011), (0.812, 0.004), (0.918, 0.003), (0.982, 0.011), (85.96, 0.07)),
    "ebm-additive": ((0.559, 0.0), (0.835, 0.011), (0.809, 0.004), (0.927, 0.003), (0.974, 0.009), (85.81, 0.11)),
    "nam": ((0.572, 0.005), (0.834, 0.013), (0.813, 0.003), (0.910, 0.003), (0.977, 0.015), (85.25, 0.01)),
    "nbm": ((0.564, 0.001), (0.833, 0.013), (0.806, 0.003), (0.918, 0.003), (0.981, 0.007), (85.10, 0.01)),
    "node-gam": ((0.558, 0.003), (0.832, 0.011), (0.814, 0.005), (0.927, 0.003), (0.981, 0.011), (85.09, 0.01)),
    "nae": ((0.451, 0.002), (0.847, 0.014), (0.825, 0.006), (0.927, 0.003), (0.982, 0.009), (78.66, 0.21)),
    "nae-d": ((0.553, 0.001), (0.830, 0.012), (0.805, 0.006), (0.927, 0.003), (0.977, 0.010), (85.60, 0.04)),
}
REASONS = {
    ("housing", "spline"): "ridge on twelve knots per feature, not tuned",
    ("housing", "node"): "compact re-implementation, not tuned; its seeds lie between 0.520 and 0.559",
    ("housing", "xgboost"): "depth 7 and slow steps; the paper's settings are not given",
    ("income", "node-gam"): "compact re-implementation, not tuned",
    ("income", "node-ga2m"): "compact re-implementation, not tuned",
}
DIAGONAL: Settings = settings(variant="nae-d", gate="auto", n_experts=64)


def repeated(data: str, model: str, chosen: Settings = ()) -> list[Run]:
    """Return the runs of a model on a table, one per seed or fold."""
    if data in SEEDED:
        n_seeds = N_OWN_SEEDS if model in (PAPER, DEFAULT) and not chosen else N_SEEDS
        return [Run(data, model, chosen, seed=seed) for seed in range(n_seeds)]
    return [Run(data, model, chosen, fold=fold) for fold in range(N_FOLDS)]


def _label(name: str) -> str:
    """Return the paper's name of a model, or our name if the paper does not have it."""
    entry = entry_named(name)
    return entry.paper_label or entry.label


def _figure(model: str, data: str) -> Figure | None:
    if model not in FIGURES or data not in TABLES:
        return None
    return Figure(*FIGURES[model][TABLES.index(data)])


def _measured(results: Results, data: str, model: str, chosen: Settings = ()) -> Measured:
    """Return the score that the paper uses: RMSE, AUC, or for Year the MSE."""
    is_regression = data in SEEDED
    found = results.measured(repeated(data, model, chosen), "rmse" if is_regression else "auc")
    return Measured(tuple(value**2 for value in found.values)) if data == "year" else found


def _line(results: Results, data: str, model: str, label: str) -> Line:
    is_regression = data in SEEDED
    is_ours = model == "nae"
    return Line(
        label,
        _figure(model, data),
        _measured(results, data, PAPER if is_ours else model),
        _measured(results, data, DEFAULT) if is_ours else Measured(),
        is_lower_better=is_regression,
        tolerance=0.01 if is_regression else 0.003,
        digits=2 if data == "year" else 3,
        why=_reason(results, data, model),
    )


def _reason(results: Results, data: str, model: str) -> str:
    """Return why a line has no number or a different one, and the number of repetitions if some are missing."""
    runs = repeated(data, PAPER if model == "nae" else model)
    n_done = len(results.measured(runs, "rmse" if data in SEEDED else "auc").values)
    if n_done == 0:
        return next((reason for run in runs if (reason := results.failure(run))), "")
    known = REASONS.get((data, model), "")
    part = "" if n_done == len(runs) else f"{n_done} of {len(runs)} {'seeds' if data in SEEDED else 'folds'}"
    return "; ".join(each for each in (known, part) if each)


# Every model on every table


def at_hand() -> list[str]:
    """Return the tables to run: those that can be downloaded, and those that are available here."""
    return [name for name in (*TABLES, SAMPLE) if is_at_hand(name) or name in ("housing", "income", SAMPLE)]


def _accuracy_runs() -> list[Run]:
    runs = []
    for data in at_hand():
        for model in (PAPER, DEFAULT, *PEERS):
            if data != SAMPLE or model in (PAPER, DEFAULT, "linear", "spline", "ebm", "ebm-additive", "xgboost", "nam"):
                runs += repeated(data, model)
    return runs


def _show_accuracy(results: Results) -> Section:
    text = (
        f"Housing: {N_OWN_SEEDS} seeds of NAE on the paper's split, like the paper, and {N_SEEDS} of the others. "
        "Income and Credit: five stratified folds, drawn with seed 0, since the paper's own are not published with it; "
        "an eighth of every training part validates, where the paper's released code takes a fifth. Paper mode and the "
        "networks take a category as the mean target of its level, as the paper does. Peers have the settings of "
        "`docs/benchmarks.md` and are not tuned per table; the paper's are. *Reproduced*: within two standard "
        "deviations, theirs and ours together, or 1 % (AUC: 0.3 %) where that is more."
    )
    texts = [text, _overview(results)]
    lines: list[Line] = []
    for data in (*TABLES, SAMPLE):
        rows = [
            _line(results, data, "nae", "NAE"),
            *(_line(results, data, name, _label(name)) for name in PEERS),
        ]
        if any(line.mode.values or line.default.values for line in rows):
            rows = [line for line in rows if line.mode.values or line.default.values or line.why]
            metric = "RMSE ↓" if data == "housing" else "MSE ↓" if data == "year" else "AUC ↑"
            texts.append(f"**{LABELS[data]}, {metric}**\n\n{comparison(rows, mode='paper mode, or the peer')}")
            lines += rows
        else:
            texts.append(f"**{LABELS[data]}**: {_absence(data)}")
    return Section(texts, lines)


def _absence(data: str) -> str:
    if data in ("housing", "income", SAMPLE):
        return "not run."
    return "not run: the table is not at hand here. `docs/data.md` says where it is had and how its files are laid out."


def _overview(results: Results) -> str:
    """Return the paper's table of interpretability, complexity and accuracy, with our scores next to its figures."""
    shown = ("housing", "income")
    header = [
        "",
        "interpretable",
        "complexity",
        *(f"{LABELS[data]}, {who}" for data in shown for who in ("paper", "ours")),
    ]
    rows = []
    for name in PEERS:
        entry = entry_named(name)
        row = [_label(name), "yes" if entry.is_interpretable else "no", entry.complexity]
        for data in shown:
            figure = _figure(name, data)
            row += ["–" if figure is None else figure.show(3), _measured(results, data, name).show(3)]
        rows.append(row)
    for label, model in (("**NAE**, paper mode", PAPER), ("**NAE**, default", DEFAULT)):
        row = [label, "yes", "O(n)"]
        for data in shown:
            figure = _figure("nae", data)
            row += ["–" if figure is None else figure.show(3), f"**{_measured(results, data, model).show(3)}**"]
        rows.append(row)
    return markdown_table(header, rows)


# NAE-D


def _diagonal_runs() -> list[Run]:
    return [
        run for data in ("housing", "income") for model in (PAPER, DEFAULT) for run in repeated(data, model, DIAGONAL)
    ]


def _show_diagonal(results: Results) -> Section:
    lines = []
    for data in ("housing", "income"):
        lines.append(
            Line(
                f"NAE-D, {LABELS[data]}",
                _figure("nae-d", data),
                _measured(results, data, PAPER, DIAGONAL),
                _measured(results, data, DEFAULT, DIAGONAL),
                is_lower_better=data == "housing",
                tolerance=0.01 if data == "housing" else 0.003,
            )
        )
        lines += [_line(results, data, name, f"{entry_named(name).paper_label}, {LABELS[data]}") for name in ADDITIVE]
    text = (
        "K = 64 experts, a diagonal gate, Gumbel noise of temperature 0.1 in training only. The paper does not give "
        "NAE-D's other hyper-parameters, and its released code reads a file of their own for it; paper mode takes "
        "NAE's, whose dropout does not suit additive models: with one expert they give an RMSE of 0.61 on Housing. "
        "[What explains the differences](./differences.md) has NAE-D with less of it. The released code draws Gumbel "
        "noise when it predicts, too; here prediction is the softmax. RMSE on Housing, AUC on Income."
    )
    panels = []
    for label, run in (
        ("EBM", Run("housing", "ebm-additive")),
        ("NAM (one expert)", Run("housing", PAPER, settings(n_experts=1))),
        ("NAE-D, paper mode", repeated("housing", PAPER, DIAGONAL)[0]),
        ("NAE-D, default", repeated("housing", DEFAULT, DIAGONAL)[0]),
    ):
        shapes = results.shapes(run)
        if shapes is not None and "Longitude" in shapes.feature_names:
            report = results.report(run)
            note = f"RMSE {report.rmse:.3f}" if report is not None and report.rmse is not None else ""
            panels.append(Panel(label, note, shapes, "Longitude"))
    pictures = []
    if panels:
        caption = "Longitude by additive models, NAE-D with the bounds of its experts"
        figure = draw_panels(panels, title="", n_columns=4, unit="100,000 USD")
        pictures.append(Picture("nae-d", caption, figure))
    lines = with_reason(lines, "dropout of NAE's hyper-parameters: see the last section")
    return Section([text, comparison(lines, mode="paper mode, or the peer")], lines, pictures)


def _diagonal_drawn() -> list[Run]:
    return [
        Run("housing", "ebm-additive"),
        Run("housing", PAPER, settings(n_experts=1)),
        repeated("housing", PAPER, DIAGONAL)[0],
        repeated("housing", DEFAULT, DIAGONAL)[0],
    ]


EXPERIMENTS = (
    Experiment("accuracy", "Accuracy on real tables", "Table 1", _accuracy_runs, _show_accuracy),
    Experiment(
        "nae-d", "NAE-D", "Appendix, Table and Figure on NAE-D",
        lambda: [*_diagonal_runs(), *_diagonal_drawn()], _show_diagonal, _diagonal_drawn,
        ("Longitude",),
    ),
)  # fmt: skip
