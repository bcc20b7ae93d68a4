"""Draw the pictures in docs/gallery from real tables: ``python -m benchmarks.gallery``.

Reads Housing, Income, Bike, Letter and Telco from the folder ``$NAE_DATA``. Models are kept in ``runs/gallery``, so
that a second call only draws.
"""

import argparse
import io
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
from PIL import Image

from benchmarks.datasets.reading import FOLDER
from nae import NAEClassifier, NAERegressor, load, plots
from nae.errors import ConfigError
from nae.plots import FrontierPoint
from nae.tables import TableModel, save

USD = "100,000 USD"
RENTALS = "rentals per hour"


@dataclass(frozen=True)
class Picture:
    """A picture: its file, its caption, and the call that draws it."""

    name: str
    caption: str
    call: str
    figure: Any


@dataclass(frozen=True)
class Table:
    """A table and a model of it."""

    X: pd.DataFrame
    y: pd.Series
    model: TableModel


def main(arguments: list[str] | None = None) -> None:
    """Fit the missing models, draw all pictures, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gallery", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs/gallery"))
    parser.add_argument("--models", type=Path, default=Path("runs/gallery"))
    parser.add_argument("--only", default="", help="draw only the pictures whose name begins with this text")
    given = parser.parse_args(arguments)
    mpl.use("Agg")
    given.folder.mkdir(parents=True, exist_ok=True)
    given.models.mkdir(parents=True, exist_ok=True)
    rows = []
    for picture in _pictures(given.models, given.only):
        _write(picture.figure, given.folder / f"{picture.name}.png")
        plt.close(picture.figure)
        rows.append(
            f"## {picture.caption}\n\n```python\n{picture.call}\n```\n\n![{picture.caption}]({picture.name}.png)\n"
        )
        print(picture.name)
    if not given.only:
        head = "# Gallery\n\nMade by `make gallery` (`python -m benchmarks.gallery`) from real tables.\n\n"
        (given.folder / "README.md").write_text(head + "\n".join(rows))


def _write(figure: Any, path: Path) -> None:
    """Write a picture with 256 colours: a third of the bytes, and no eye tells."""
    whole = io.BytesIO()
    figure.savefig(whole, dpi=110)
    few = Image.open(whole).convert("RGB").quantize(colors=256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def _pictures(folder: Path, only: str) -> Iterator[Picture]:
    for name, draw in (
        ("housing", _housing),
        ("income", _income),
        ("bike", _bike),
        ("letter", _letter),
        ("telco", _telco),
    ):
        if name.startswith(only) or only.startswith(name):
            yield from (one for one in draw(folder) if one.name.startswith(only))


def _housing(folder: Path) -> Iterator[Picture]:
    table = _fitted(folder, "housing", NAERegressor(random_state=0, time_limit=120))
    model, X, y = table.model, table.X, table.y
    explanation = model.explain_global(X)
    shown = plots.shape(explanation, "Longitude", unit=USD)
    yield Picture(
        "housing-shape",
        "One feature: mean effect, guaranteed bounds, actual contributions, share of rows",
        'plots.shape(model.explain_global(X), "Longitude", unit="100,000 USD")',
        shown.figure,
    )
    yield Picture(
        "housing-shapes",
        "All features on one scale",
        'plots.shapes(model.explain_global(X), unit="100,000 USD")',
        plots.shapes(explanation, unit=USD),
    )
    yield Picture(
        "housing-importance",
        "How much each contribution varies, and how much of that its own value explains",
        "plots.importance(model.explain_global())",
        plots.importance(explanation, unit=USD).figure,
    )
    local = model.explain_local(X[:200], y[:200])
    yield Picture(
        "housing-waterfall",
        "One row: every contribution with its bounds, split into own effect and context",
        "plots.waterfall(model.explain_local(X, y), 3)",
        plots.waterfall(local, 3, unit=USD).figure,
    )
    pair = model.explain_interaction("Longitude", "Latitude", X=X, resolution=72)
    yield Picture(
        "housing-pair",
        "Two features together; grey where no rows lie",
        'plots.pair(model.explain_interaction("Longitude", "Latitude", X=X))',
        plots.pair(pair, unit=USD).figure,
    )
    three = model.explain_interaction("Longitude", "Latitude", "AveRooms", X=X)
    yield Picture(
        "housing-three-way",
        "Three features together",
        'plots.three_way(model.explain_interaction("Longitude", "Latitude", "AveRooms", X=X))',
        plots.three_way(three, unit=USD, title="Longitude, Latitude and AveRooms"),
    )
    yield Picture(
        "housing-matrix",
        "Which features change each other's effect",
        "plots.interaction_matrix(model.interaction_strength())",
        plots.interaction_matrix(model.interaction_strength(), unit=USD).figure,
    )
    yield from _housing_dial(folder, table)


def _housing_dial(folder: Path, table: Table) -> Iterator[Picture]:
    nearly = _fitted(
        folder, "housing", NAERegressor(additivity=0.95, random_state=0, time_limit=120), tag="housing-095"
    )
    both = table.model.explain_global(), nearly.model.explain_global()
    yield Picture(
        "housing-compare",
        "Two models over each other: flexible, and asked for an additivity of 0.95",
        'plots.compare(flexible.explain_global(), nearly.explain_global(), names=("flexible", "additivity 0.95"))',
        plots.compare(*both, unit=USD, names=("flexible", "additivity 0.95")),
    )
    yield Picture(
        "housing-frontier",
        "What additivity costs, and the point that additivity='auto' chooses",
        'plots.frontier(NAERegressor(additivity="auto").fit(X, y).additivity_path_)',
        plots.frontier(_path(folder, table), score_label="validation loss").figure,
    )
    history = json.loads((folder / "housing-095.history.json").read_text())
    yield Picture(
        "housing-training",
        "Training with the dial",
        "plots.training(model.history_)",
        plots.training(history).figure,
    )


def _income(folder: Path) -> Iterator[Picture]:
    table = _fitted(
        folder, "income", NAEClassifier(random_state=0, time_limit=120), classes={0: "50K or less", 1: "more than 50K"}
    )
    model, X, y = table.model, table.X, table.y
    explanation = model.explain_global()
    yield Picture(
        "income-shapes",
        "Numbers and categories, each on its own scale",
        "plots.shapes(model.explain_global(), share_scale=False)",
        plots.shapes(explanation, share_scale=False),
    )
    yield Picture(
        "income-countries",
        "Many levels; the rarest share one effect",
        'plots.shape(model.explain_global(), "NativeCountry")',
        plots.shape(explanation, "NativeCountry").figure,
    )
    yield Picture(
        "income-importance",
        "A classifier's contributions are log-odds",
        "plots.importance(model.explain_global())",
        plots.importance(explanation).figure,
    )
    yield Picture(
        "income-waterfall",
        "One person",
        "plots.waterfall(model.explain_local(X, y), 8)",
        plots.waterfall(model.explain_local(X[:50], y[:50]), 8).figure,
    )
    pair = model.explain_interaction("MaritalStatus", "Education", X=X)
    yield Picture(
        "income-pair",
        "Two categories",
        'plots.pair(model.explain_interaction("MaritalStatus", "Education", X=X))',
        plots.pair(pair).figure,
    )


def _bike(folder: Path) -> Iterator[Picture]:
    table = _fitted(folder, "bike_hour", NAERegressor(random_state=0, time_limit=120))
    model, X, y = table.model, table.X, table.y
    yield Picture(
        "bike-shapes",
        "Hours, days and weather",
        "plots.shapes(model.explain_global(X))",
        plots.shapes(model.explain_global(X), unit=RENTALS),
    )
    yield Picture(
        "bike-lines",
        "A feature of few values makes lines",
        'plots.pair(model.explain_interaction("hr", "workingday"))',
        plots.pair(model.explain_interaction("hr", "workingday"), unit=RENTALS).figure,
    )
    yield Picture(
        "bike-map",
        "The same week as a map",
        'plots.pair(model.explain_interaction("hr", "weekday"), kind="map")',
        plots.pair(model.explain_interaction("hr", "weekday"), unit=RENTALS, kind="map").figure,
    )
    yield Picture(
        "bike-matrix",
        "Working days change the effect of the hour",
        "plots.interaction_matrix(model.interaction_strength())",
        plots.interaction_matrix(model.interaction_strength(), unit=RENTALS).figure,
    )
    yield Picture(
        "bike-waterfall",
        "One hour",
        "plots.waterfall(model.explain_local(X, y), 17)",
        plots.waterfall(model.explain_local(X[:50], y[:50]), 17, unit=RENTALS).figure,
    )


def _letter(folder: Path) -> Iterator[Picture]:
    table = _fitted(folder, "letter", NAEClassifier(n_members=2, random_state=0, time_limit=180))
    model, X, y = table.model, table.X, table.y
    explanation = model.explain_global()
    yield Picture(
        "letter-shapes",
        "One of twenty-six classes",
        'plots.shapes(model.explain_global(), output="A")',
        plots.shapes(explanation, output="A", n_columns=4),
    )
    yield Picture(
        "letter-importance",
        "Importance over all classes",
        "plots.importance(model.explain_global())",
        plots.importance(explanation).figure,
    )
    yield Picture(
        "letter-waterfall",
        "Why this is the letter it is taken for",
        "plots.waterfall(model.explain_local(X, y), 8)",
        plots.waterfall(model.explain_local(X[:50], y[:50]), 8).figure,
    )
    pair = model.explain_interaction("x2bar", "y2bar")
    yield Picture(
        "letter-pair",
        "Two features and one class",
        'plots.pair(model.explain_interaction("x2bar", "y2bar"), output="A")',
        plots.pair(pair, output="A").figure,
    )


def _telco(folder: Path) -> Iterator[Picture]:
    estimator = NAEClassifier(n_members=2, random_state=0, time_limit=60)
    table = _fitted(folder, "telco_churn", estimator, classes={0: "keeps", 1: "leaves"})
    explanation = table.model.explain_global(table.X)
    yield Picture(
        "telco-missing",
        "Missing is a value with an effect of its own",
        'plots.shape(model.explain_global(X), "TotalCharges")',
        plots.shape(explanation, "TotalCharges").figure,
    )


def _read(name: str, classes: dict[int, str] | None) -> tuple[pd.DataFrame, pd.Series]:
    given = os.environ.get(FOLDER)
    if not given:
        raise ConfigError(f"{FOLDER} must name the folder of the Parquet files; it is not set.")
    X = pd.read_parquet(Path(given) / f"{name}.parquet")
    y = X.pop("target")
    return X, y if classes is None else y.map(classes)


def _fitted(folder: Path, name: str, estimator: Any, *, classes: dict[int, str] | None = None, tag: str = "") -> Table:
    """Return a table and its model, from the folder or newly fitted."""
    X, y = _read(name, classes)
    path = folder / f"{tag or name}.nae"
    if not path.exists():
        estimator.fit(X, y)
        save(estimator.model_, path)
        path.with_suffix(".history.json").write_text(json.dumps(estimator.history_.to_dict()))
    return Table(X, y, load(path))


def _path(folder: Path, table: Table) -> list[FrontierPoint]:
    """Return the path of additivity='auto', which is stored next to the models."""
    path = folder / "housing.path.json"
    if not path.exists():
        estimator = NAERegressor(additivity="auto", random_state=0).fit(table.X, table.y)
        path.write_text(json.dumps([asdict(point) for point in estimator.additivity_path_]))
    return [
        FrontierPoint(
            additivity=point["additivity"],
            score=point["validation"],
            error=point["standard_error"],
            label="flexible" if point["target"] is None else f"{point['target']:g}",
            is_chosen=point["is_chosen"],
        )
        for point in json.loads(path.read_text())
    ]


if __name__ == "__main__":
    main()
