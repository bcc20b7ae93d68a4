"""The time and the memory of training against features and experts."""

from benchmarks.paper.drawing import Curve, draw_curves
from benchmarks.paper.experiment import Experiment, Picture, Results, Section
from benchmarks.paper.runs import DEFAULT, PAPER, Run, is_ours, settings
from benchmarks.paper.timing import N_EPOCHS, count_parameters
from benchmarks.paper.verdicts import Figure, Line, Measured, comparison

__all__ = ["EXPERIMENTS", "timed_runs"]

FEATURES = (32, 64, 128, 256, 512)
EXPERTS = (4, 8, 16, 32)
SECONDS = {
    4: (39.7, 39.8, 42.8, 64.4, 174.0),
    8: (40.4, 42.6, 47.6, 102.3, 238.0),
    16: (40.8, 42.3, 82.9, 150.1, 346.7),
    32: (42.9, 89.6, 111.7, 277.5, 559.0),
}
MEGABYTES = {
    4: (2.6, 7.2, 22.3, 76.6, 281.2),
    8: (3.6, 11.2, 38.4, 140.8, 537.7),
    16: (5.7, 19.3, 70.7, 269.4, 1050.7),
    32: (9.8, 35.6, 135.2, 526.4, 2076.8),
}
PEERS: dict[str, tuple[str, tuple[float | None, ...], int]] = {
    "na2m": ("NA²M", (70.9, 290.7, 1146.1, None, None), 128),
    "ebm": ("EB²M", (4.5, 10.5, 34.4, 155.4, 1004.3), 32),
    "nam": ("NAM", (6.3, 10.4, 17.2, 33.0, 66.0), 512),
    "ebm-additive": ("EBM", (5.7, 9.4, 18.0, 37.6, 95.8), 128),
}
"""By model: label, the paper's seconds, and the largest number of features that is run here."""
MEMORY_DIM = 64


def _run(model: str, n_features: int, n_experts: int | None = None) -> Run:
    chosen = () if n_experts is None else settings(n_experts=n_experts)
    return Run("noise", model, chosen, settings(n_features=n_features), is_timed=True)


def _runs() -> list[Run]:
    ours = [_run(PAPER, n, k) for n in FEATURES for k in EXPERTS]
    ours += [_run(DEFAULT, n, 8) for n in FEATURES]
    peers = [_run(name, n) for n in FEATURES for name, (_, _, most) in PEERS.items() if n <= most]
    return sorted([*ours, *peers], key=lambda run: int(dict(run.options)["n_features"] or 0))


def timed_runs() -> list[Run]:
    """Return the runs that need only torch and a device, the largest ones first."""
    first = [_run(PAPER, 512, k) for k in EXPERTS] + [_run(PAPER, 256, 8)]
    default = [_run(DEFAULT, n, 8) for n in FEATURES]
    peers = [_run("na2m", 32), _run("na2m", 64), *(_run("nam", n) for n in FEATURES), _run("na2m", 128)]
    rest = [_run(PAPER, n, k) for n in FEATURES for k in EXPERTS]
    return list(dict.fromkeys([*first, *default, *peers, *rest]))


def _show(results: Results) -> Section:
    lines = [
        Line(
            f"NAE, n = {n}, K = {k}: seconds",
            Figure(SECONDS[k][at]),
            results.measured([_run(PAPER, n, k)], "fit_seconds"),
            results.measured([_run(DEFAULT, n, 8)], "fit_seconds") if k == 8 else Measured(),
            tolerance=0.25,
            digits=1,
            why=_part_run(results, _run(PAPER, n, k)),
        )
        for k in EXPERTS
        for at, n in enumerate(FEATURES)
    ]
    peers = [
        Line(
            f"{label}, n = {n}: seconds",
            None if seconds[at] is None else Figure(seconds[at] or 0.0),
            results.measured([_run(name, n)], "fit_seconds"),
            tolerance=0.25,
            digits=1,
            why=_peer_note(results, name, n, most),
        )
        for name, (label, seconds, most) in PEERS.items()
        for at, n in enumerate(FEATURES)
    ]
    memory = [
        Line(
            f"NAE, n = {n}, K = {k}: MB of parameters",
            Figure(MEGABYTES[k][at]),
            Measured((4 * count_parameters(n, n_experts=k, hidden_dim=MEMORY_DIM) / 2**20,)),
            is_lower_better=None,
            tolerance=0.03,
            digits=1,
        )
        for k in EXPERTS
        for at, n in enumerate(FEATURES)
    ]
    ours = [run for run in _runs() if is_ours(run)]
    devices = sorted({report.device for run in ours if (report := results.report(run)) is not None})
    seconds = (
        "Seconds of 100 epochs over 5,000 rows with batches of 2,048, encoders of four layers of 128. The paper's are "
        f"an A100's, ours are of: {', '.join(devices) or 'nothing yet'}. A quarter either way counts as reproduced. "
        "*Default* is the whole default model with K = 8: eight members, low-rank gate, on knots, batches of 256. "
        "Every run has the device for itself. NAM and NA²M are trained like NAE, in batches of 2,048; EBM and EB²M "
        "until they stop by themselves, in seconds of one core's processor time."
    )
    megabytes = (
        "What the paper calls memory is the size of the parameters, and those of encoders 64 wide: counted so, its "
        "figures come out, though its text says 128. The most that torch held on the device is in `reports.json`."
    )
    texts = [
        seconds,
        comparison(lines),
        comparison(peers, mode="measured", has_default=False),
        megabytes,
        comparison(memory, mode="counted, d = 64", has_default=False),
    ]
    return Section(texts, [*lines, *peers, *memory], _picture(results))


def _part_run(results: Results, run: Run) -> str:
    """Return the number of epochs that were timed, if not all."""
    report = results.report(run)
    if report is None or report.n_epochs is None or report.n_epochs >= N_EPOCHS:
        return ""
    return f"{report.n_epochs} epochs run, the others at their rate"


def _peer_note(results: Results, name: str, n_features: int, most: int) -> str:
    """Return where the seconds of a peer were measured, or why there are none."""
    run = _run(name, n_features)
    report = results.report(run)
    if report is None:
        return f"not run: more than {most} features take too long" if n_features > most else results.failure(run)
    part = _part_run(results, run)
    return f"{report.device}; {part}" if part else report.device


def _picture(results: Results) -> list[Picture]:
    panels = []
    for k in EXPERTS:
        curves = [Curve("the paper, A100", FEATURES, SECONDS[k], is_paper=True)]
        for label, runs in (
            ("paper mode", [_run(PAPER, n, k) for n in FEATURES]),
            ("default, K = 8", [_run(DEFAULT, n, 8) for n in FEATURES]),
        ):
            found = [(n, results.report(run)) for n, run in zip(FEATURES, runs, strict=True)]
            points = [(n, report.fit_seconds) for n, report in found if report is not None and report.fit_seconds]
            if points:
                curves.append(Curve(label, [n for n, _ in points], [y for _, y in points]))
        panels.append((f"K = {k}", curves))
    if all(len(curves) == 1 for _, curves in panels):
        return []
    figure = draw_curves(panels, x_label="features", y_label="seconds of 100 epochs", is_log=True, share_scale=True)
    return [Picture("cost", "Seconds against features, for four numbers of experts", figure)]


EXPERIMENTS = (Experiment("cost", "Training time and memory", "Appendix, Tables on cost", _runs, _show),)
