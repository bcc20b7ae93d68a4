"""Categories whose levels have an order can be monotone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import nae
from nae.constraints import read_orders
from nae.errors import ConfigError

RANDOM = np.random.default_rng(0)
LEVELS = ("low", "mid", "high", "top")
CODES = RANDOM.choice(4, size=300, p=[0.2, 0.5, 0.28, 0.02])
X = pd.DataFrame({"grade": np.array(LEVELS)[CODES], "size": RANDOM.uniform(size=300)})
Y = np.array([0.0, 2.0, 1.0, 3.0])[CODES] * (1 + X["size"].to_numpy()) + 0.1 * RANDOM.normal(size=300)
SMALL: dict[str, Any] = {"random_state": 0, "n_members": 2, "max_epochs": 20}


def fit(table: Any, cst: Any) -> nae.NAERegressor:
    return nae.NAERegressor(monotonic_cst=cst, **SMALL).fit(table, Y)


@pytest.mark.parametrize(
    ("table", "cst", "way"),
    [
        (X, {"grade": LEVELS}, "+"),
        (X, {"grade": list(LEVELS[::-1])}, "+"),
        (X.assign(grade=pd.Categorical(X["grade"], categories=LEVELS, ordered=True)), {"grade": 1}, "+"),
        (X.assign(grade=pd.Categorical(X["grade"], categories=LEVELS, ordered=True)), [-1, 0], "-"),
        (pl.from_pandas(X).with_columns(pl.col("grade").cast(pl.Enum(LEVELS))), {"grade": "increasing"}, "+"),
    ],
    ids=["list", "list turned", "pandas", "pandas falling", "polars"],
)
def test_levels_in_order_rise_or_fall(table: Any, cst: Any, way: str, tmp_path: Any) -> None:
    model = fit(table, cst)
    assert model.certify(monotone={"grade": way}).all_proven
    assert model.model_.training.constraints == {"monotone": {"grade": way}}
    order = LEVELS[::-1] if isinstance(cst, dict) and cst["grade"] == list(LEVELS[::-1]) else LEVELS
    scores = model.predict(X.iloc[:4].assign(grade=order, size=0.5))
    assert ((1 if way == "+" else -1) * np.diff(scores) >= 0).all()
    model.save(tmp_path / "m.nae")
    assert nae.load(tmp_path / "m.nae").certify(monotone={"grade": way}).all_proven


def test_without_a_direction_a_type_with_an_order_changes_nothing() -> None:
    ordered = X.assign(grade=pd.Categorical(X["grade"], categories=LEVELS, ordered=True))
    plain = X.assign(grade=pd.Categorical(X["grade"], categories=LEVELS))
    found = [nae.NAERegressor(**SMALL).fit(table, Y).predict(X) for table in (ordered, plain)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    ("cst", "sentence"),
    [
        ({"grade": ["low", "mid"]}, "'grade' also has 'high', 'top'"),
        ({"grade": 1}, "List the levels from the lowest to the highest"),
        ({"size": ["low", "mid"]}, "'size' is a number"),
    ],
    ids=str,
)
def test_an_order_that_is_none_is_one_sentence(cst: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fit(X, cst)
    assert sentence in str(caught.value)


def test_a_category_without_an_order_cannot_be_certified() -> None:
    model = nae.NAERegressor(**SMALL).fit(X, Y)
    with pytest.raises(ConfigError, match="'grade' is a category of 4 levels"):
        model.certify(monotone={"grade": "+"})


def test_a_planted_fall_between_levels_is_found() -> None:
    model = replace(fit(X, {"grade": LEVELS}).model_, clamps=None)  # clamps of a level may hide its fall
    model.experts[model.schema.slots(0).start + 2] -= 100  # the third level
    found = model.certify(monotone={"grade": "+"}).certificates[0]
    assert found.verdict == "refuted"
    assert {row[0] for row in (found.counterexample.first, found.counterexample.second)} <= set(LEVELS)


def test_levels_of_files_have_the_order_of_the_list(tmp_path: Any) -> None:
    X.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    model = nae.NAERegressor(monotonic_cst={"grade": LEVELS}, **SMALL).fit(nae.scan(tmp_path / "t.csv"), "y")
    assert model.certify(monotone={"grade": "+"}).all_proven
    assert model.model_.schema.features[0].levels == LEVELS


def test_orders_are_read_by_name_or_position() -> None:
    assert read_orders({"grade": ["a", "b"]}, ("size", "grade")) == {"grade": ("a", "b")}
    assert read_orders([0, ("a", "b")], ("size", "grade")) == {"grade": ("a", "b")}
    assert read_orders({"size": 1}, ("size", "grade")) == {}
