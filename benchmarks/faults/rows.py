"""The data of the subjects: a small generated table, and models that are fitted in a moment."""

from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["SETTINGS", "make_model", "make_table"]

SETTINGS: dict[str, Any] = {"n_members": 1, "n_experts": 2, "n_knots": 8, "batch_size": 64, "random_state": 0}


def make_table(n_rows: int, *, seed: int = 0) -> pa.Table:
    """Return numbers, categories, and a number to predict."""
    random = np.random.default_rng(seed)
    size, age = random.uniform(20, 200, n_rows), random.uniform(0, 90, n_rows)
    town = np.array(["Ulm", "Bonn", "Kiel"])[random.integers(0, 3, n_rows)]
    price = size * np.where(town == "Ulm", 2.0, 3.0) - 0.5 * age + random.normal(size=n_rows)
    return pa.table({"size": size, "age": age, "town": town.tolist(), "price": price})


def make_model(*, seed: int = 0) -> Any:
    """Return a fitted model of the table."""
    from nae import NAERegressor

    table = make_table(300, seed=seed)
    return NAERegressor(**SETTINGS, max_epochs=3).fit(table.drop_columns(["price"]), np.array(table["price"])).model_
