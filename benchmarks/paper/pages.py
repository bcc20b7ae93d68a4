"""Write finished runs to files: a table and pictures per experiment, and one page with all of them."""

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper.claims import claims_to_json, judge_claim
from benchmarks.paper.experiment import Experiment, Picture, Results, Section
from benchmarks.paper.registry import EXPERIMENTS, laptop_runs, ordered
from benchmarks.paper.store import KEPT, Archive, Report, RunStore
from benchmarks.paper.verdicts import Verdict, judge, to_json
from benchmarks.tables import markdown_table

__all__ = ["Places", "gather", "write_page", "write_pages"]


@dataclass(frozen=True)
class Places:
    """The paths of the output."""

    folder: Path = KEPT
    page: Path = Path("docs/reproduction.md")


def gather(store: RunStore, places: Places, experiments: Iterable[Experiment], *, is_smoke: bool = False) -> Results:
    """Return all kept reports and those in the store, which have priority. Then keep all of them."""
    archive = Archive(places.folder)
    reports = {report.run.path: report for report in archive.reports()}
    reports |= {r.run.path: r for r in store.reports() if r.run.is_smoke == is_smoke and _is_news(r, reports)}
    explanations = archive.explanations()
    for experiment in experiments:
        for run in experiment.drawn():
            chosen = run.smoke() if is_smoke else run
            found = store.explanation(chosen)
            if found:
                explanations[chosen.path] = _merged(explanations.get(chosen.path, {}), found, experiment)
    archive.write(reports.values(), explanations)
    return Results(reports, explanations, is_smoke)


def write_pages(experiments: Sequence[Experiment], results: Results, places: Places) -> None:
    """Write the tables and pictures of experiments, and the page of all experiments."""
    import matplotlib as mpl

    mpl.use("Agg")
    places.folder.mkdir(parents=True, exist_ok=True)
    for experiment in experiments:
        section = experiment.show(results)
        for picture in section.pictures:
            _write_picture(picture, places.folder)
        text = _text(experiment, section)
        (places.folder / f"{experiment.name}.md").write_text(text)
        content: dict[str, object] = {"lines": to_json(section.lines), "verdicts": _counts(section)}
        if section.claims:
            content["claims"] = claims_to_json(section.claims)
        (places.folder / f"{experiment.name}.json").write_text(json.dumps(content, indent=1) + "\n")


def write_page(experiments: Sequence[Experiment], results: Results, places: Places) -> None:
    """Join the sections of all experiments."""
    parts, rows = [], []
    for experiment in experiments:
        path = places.folder / f"{experiment.name}.md"
        if not path.exists():
            continue
        counts = json.loads(path.with_suffix(".json").read_text())["verdicts"]
        anchor = f"[{experiment.title}](#{experiment.name})"
        rows.append([anchor, experiment.source, *(_cell(counts[column]) for column in ("paper mode", "default"))])
        link = Path("..") / places.folder
        text = path.read_text()
        for other in experiments:  # here, they are on the same page
            text = text.replace(f"](./{other.name}.md)", f"](#{other.name})")
        parts.append(text.replace("](./", f"]({link.as_posix()}/"))
    head = _head(results)
    overview = markdown_table(["", "in the paper", "paper mode", "default"], rows)
    places.page.parent.mkdir(parents=True, exist_ok=True)
    places.page.write_text("\n\n".join([head, overview, *parts]) + "\n")


def _merged(kept: dict[str, Any], found: dict[str, Any], experiment: Experiment) -> dict[str, Any]:
    """Return the kept explanation of a run: the parts that an experiment draws."""
    names = set(experiment.features)
    features = [each for each in found["global"]["features"] if not names or each["name"] in names]
    new = {each["name"] for each in features}
    others = [each for each in kept.get("global", {}).get("features", []) if each["name"] not in new]
    maps = {name: found[name] for name in ("pair", "three") if experiment.has_maps and name in found}
    return kept | {"global": found["global"] | {"features": [*others, *features]}} | maps


def _is_news(report: Report, known: dict[str, Report]) -> bool:
    """Whether a report replaces a known one: a failed run must not hide a successful one."""
    before = known.get(report.run.path)
    return report.is_done or before is None or not before.is_done


def _text(experiment: Experiment, section: Section) -> str:
    title = f'<a id="{experiment.name}"></a>\n\n## {experiment.title}'
    source = f"`python -m benchmarks paper {experiment.name}` · {experiment.source}"
    pictures = [f"![{picture.caption}](./{picture.name}.png)\n\n*{picture.caption}*" for picture in section.pictures]
    return "\n\n".join([title, source, *section.texts, *pictures]) + "\n"


def _counts(section: Section) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {"paper mode": {}, "default": {}}
    verdicts: list[tuple[str, Verdict]] = []
    for line in section.lines:
        verdicts += [
            (name, judge(each, line.paper, line)) for name, each in zip(found, (line.mode, line.default), strict=True)
        ]
    for claim in section.claims:
        verdicts += [
            (name, judge_claim(claim, each)) for name, each in zip(found, (claim.mode, claim.default), strict=True)
        ]
    for column, verdict in verdicts:
        if verdict not in ("no figure", "not run"):
            found[column][verdict] = found[column].get(verdict, 0) + 1
    return found


def _cell(counts: dict[str, int]) -> str:
    return ", ".join(f"{counts[word]} {word}" for word in ("reproduced", "better", "not") if word in counts) or "–"


def _head(results: Results) -> str:
    done = [report for report in results.reports.values() if report.is_done]
    hours = sum(report.fit_seconds or 0.0 for report in done) / 3600
    on_gpu = [report for report in done if report.device.startswith(("NVIDIA", "cuda"))]
    names = ", ".join(sorted({report.device for report in on_gpu} - {"cuda"})) or "none"
    return (
        "# The paper, reproduced\n\n"
        "Made by `python -m benchmarks paper pages` from the reports in `benchmarks/results/paper/reports.json`; "
        "`python -m benchmarks paper all` runs what is not among the finished runs in `runs/` yet, `make reproduce` "
        f"what fits on a laptop: {len(laptop_runs(ordered(EXPERIMENTS)))} runs, about three and a half hours of one "
        "core, estimated from the time that single ones took; it goes on where it was stopped, and has not been run in "
        "one go.\n\n"
        f"{len(done)} runs, {hours:.1f} hours of fitting; {len(on_gpu)} of them on a GPU ({names}), "
        "the others on CPUs.\n\n"
        '**Paper mode** is `encoder="mlp"` with the hyper-parameters that the paper gives (`nae.presets.paper`), '
        "**default** our estimators as they come, with the one setting changed that a line names. A line is "
        "*reproduced* within two standard deviations, the paper's and ours together, or within the tolerance that its "
        "section states; *better* or *not* otherwise. What the paper shows as a picture or says in words is a number "
        "with limits here, and *reproduced* within them; *no figure* stands where the paper has nothing to compare "
        "with. *Max iteration* in the paper counts epochs; training stops after a quarter of them without progress."
    )


def _write_picture(picture: Picture, folder: Path) -> None:
    """Write a picture with 256 colours: a third of the bytes, and no eye tells."""
    from matplotlib import pyplot as plt
    from PIL import Image

    whole = io.BytesIO()
    picture.figure.savefig(whole, dpi=100)
    few: Any = Image.open(whole).convert("RGB").quantize(colors=256, dither=Image.Dither.NONE)
    few.save(folder / f"{picture.name}.png", optimize=True)
    plt.close(picture.figure)
