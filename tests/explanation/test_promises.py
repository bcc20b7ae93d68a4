"""What a fit was made to keep is proven again: by ``certify`` without a statement, and when a file is loaded."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nae
from nae.encoding import Category, Number
from nae.errors import FormatError
from nae.tables import TableModel
from tests.laws.models import make_model

FEATURES = (Number("size", np.array([0.0, 1.0, 3.0])), Number("age", np.arange(4.0)), Category("town", ("Ulm", "Bonn")))
PROMISES: dict[str, Any] = {
    "monotone": {"size": "+"},
    "max_effect": {"age": 9.0},
    "isolated": ["town"],
    "unchanged": ["size"],
    "curved": {"size": "convex"},
}


def promising(promises: dict[str, Any], **options: Any) -> TableModel:
    """Return an additive model that is convex and increasing in size, and promises something."""
    model = make_model(np.random.default_rng(0), features=FEATURES, n_experts=1, **options)
    model.experts[:3] = np.array([0.0, 1.0, 4.0]).reshape(3, 1, 1, 1)
    return model.with_training(constraints=promises)


def test_without_a_statement_the_promises_are_proven() -> None:
    found = promising(PROMISES).certify()
    assert [one.kind for one in found.certificates] == ["monotone", "max effect", "isolated", "unchanged", "curved"]
    assert found.all_proven
    assert found.to_json() == promising({}).certify(**PROMISES).to_json()


BREAKS = {
    "monotone": ({"monotone": {"size": "-"}}, "A higher size never raises the score. Changing size from 3 to 0"),
    "max_effect": ({"max_effect": {"size": 3.9}}, "size alone moves the score by at most 3.9. Changing size"),
    "curved": ({"curved": {"size": "concave"}}, "is a concave function of size. At size = 1, the score is"),
}


@pytest.mark.parametrize("kind", BREAKS)
def test_a_file_that_breaks_a_promise_is_refused_if_it_is_verified(kind: str, tmp_path: Path) -> None:
    promises, words = BREAKS[kind]
    path = tmp_path / "m.nae"
    promising(promises).save(path)
    assert not nae.load(path).certify().all_proven
    with pytest.raises(FormatError, match=rf"m\.nae must keep what its fit promised\. Refuted: .*{words}") as caught:
        nae.load(path, verify=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "names"), [("isolated", ["age"]), ("unchanged", ["age"])])
def test_a_broken_promise_about_the_gate_is_found(kind: str, names: list[str]) -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, n_experts=3).with_training(
        constraints={kind: names}
    )
    with pytest.raises(FormatError, match=r"The model must keep what its fit promised\. Refuted"):
        model.verify()


def test_outputs_that_cross_are_found() -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, n_outputs=2).with_training(
        constraints={"ordered": True}
    )
    with pytest.raises(FormatError, match=r"never above that of class 1\. The scores of class 0 and class 1 are"):
        model.verify()
    model.experts[:] = np.sort(model.experts, axis=2)
    assert replace(model, intercept=np.array([0.0, 1.0])).verify().all_proven


def test_a_promise_that_cannot_be_read_is_refused_with_the_file() -> None:
    with pytest.raises(FormatError, match=r"what its fit promised\. No feature is called 'sise'\. Did you mean 'size'"):
        promising({"monotone": {"sise": "+"}}).verify()
    with pytest.raises(FormatError, match=r"must be one of monotone, .*; the file promises 'fair'\. pip install -U"):
        promising({"fair": ["town"]}).verify()


def test_a_file_without_promises_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "m.nae"
    for model in (make_model(np.random.default_rng(0)), promising(PROMISES)):
        model.save(path)
        assert nae.load(path, verify=True).training == nae.load(path).training
    assert len(make_model(np.random.default_rng(0)).verify()) == 0


def test_a_cap_of_several_classes_is_about_any_two_of_them() -> None:
    model = make_model(np.random.default_rng(0), features=FEATURES, n_outputs=3).with_training(
        constraints={"max_effect": {"size": 50.0}, "isolated": ["town"]}
    )
    found = model.certify()
    pairs = ["class 0 against class 1", "class 0 against class 2", "class 1 against class 2"]
    assert [one.output for one in found.certificates] == [*pairs, "class 0", "class 1", "class 2"]
    named = model.with_training(constraints={"monotone": {"size": "+"}, "output": "class 1"}).certify()
    assert [one.output for one in named.certificates] == ["class 1 against class 0", "class 1 against class 2"]


def test_the_other_class_keeps_the_opposite() -> None:
    model = promising(PROMISES, link="logit")
    assert model.verify().all_proven
    other = model.for_class("no")
    assert other.verify().all_proven
    assert other.certify()[0].claim == "A higher size never raises the log-odds of no."


def test_a_fit_keeps_its_promises_in_the_file(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    X = random.uniform(size=(200, 3))
    small: dict[str, Any] = {"n_members": 2, "n_experts": 3, "hidden_dim": 8, "max_epochs": 4, "random_state": 0}
    fitted = nae.NAERegressor(monotonic_cst={"x0": 1}, convex=["x1"], max_effect={"x2": 0.1}, **small)
    fitted.fit(X, X.sum(axis=1))
    assert [one.kind for one in fitted.certify().certificates] == ["monotone", "max effect", "curved"]
    fitted.save(tmp_path / "m.nae")
    assert nae.NAERegressor.load(tmp_path / "m.nae", verify=True).certify().all_proven
    quantiles = nae.NAERegressor("quantile", quantile=[0.1, 0.5, 0.9], **small).fit(X, X.sum(axis=1))
    found = quantiles.certify()
    assert [one.output for one in found.certificates] == ["q0.1 and q0.5", "q0.5 and q0.9"]
    assert found.all_proven
