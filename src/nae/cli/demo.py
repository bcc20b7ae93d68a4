"""``nae demo``: make a table, fit a model and explain it, in half a minute."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer

from nae import datasets
from nae.cli.console import out, say
from nae.cli.explain import global_table
from nae.cli.fit import fit_table
from nae.cli.options import parse_duration
from nae.cli.recipe import Recipe, Task
from nae.cli.writing import check_folder, write_table

__all__ = ["demo"]


def demo(
    folder: Annotated[str, typer.Option("--folder", "-o", help="The folder for the table and the model.")] = "nae-demo",
    rows: Annotated[int, typer.Option(help="Number of rows of the table.", min=50)] = 4000,
    members: Annotated[int, typer.Option(help="Number of members (networks that are averaged).")] = 1,
    time_limit: Annotated[str, typer.Option(help="Longest time to train.")] = "30s",
) -> None:
    """Make a table in which one feature flips the effect of another, fit a model and explain it."""
    place = Path(folder)
    check_folder(folder)
    place.mkdir(exist_ok=True)
    X, y = datasets.multimodal(rows)
    table = pa.table({**{name: np.asarray(values) for name, values in X.items()}, "y": np.asarray(y)})
    data, path = place / "waves.csv", place / "waves.nae"
    write_table(table, str(data))
    say(f"wrote {data}: x2 flips the wave of x1, so an additive model sees no effect.")
    recipe = Recipe(task=Task.regression, n_members=members, time_limit=parse_duration(time_limit))
    estimator = fit_table(table, "y", recipe)
    estimator.save(path)
    out().print(global_table(estimator.model_))
    say(f"wrote {path}. Try:")
    say(f"  nae explain {path} --pair x1 x2")
    say(f"  nae explain {path} {data} --row 1")
    say(f"  nae report {path} {data} -o report.html")
    say(f"  nae serve {path}")
