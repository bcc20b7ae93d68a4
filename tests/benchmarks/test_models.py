import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from benchmarks import models
from benchmarks.datasets import Part, Split, Task
from benchmarks.models import ALL, MODELS, NETWORKS, PAPER, Budget, Entry, Fitted, entry_named
from benchmarks.models.boosting import XGBoost
from benchmarks.models.ebm import EBM
from benchmarks.models.linear import Linear
from benchmarks.models.ours import NAE
from benchmarks.suite import plan
from nae.errors import ConfigError
from tests.benchmarks.generated import make_split

TASKS: tuple[Task, ...] = ("regression", "binary", "multiclass")
PEERS = [entry for entry in MODELS if not isinstance(entry.model, NAE) and "refitted" not in entry.name]
SMALL = Budget(threads=1, n_trees=60)


@pytest.fixture(scope="module")
def splits() -> dict[Task, Split]:
    return {task: make_split(task) for task in TASKS}


def fit(entry: Entry, split: Split) -> Fitted:
    for module in entry.model.modules:
        if importlib.util.find_spec(module.partition(".")[0]) is None:
            pytest.skip(f"{entry.label} is not installed; the extra 'bench' brings it")
    model = replace(entry.model, settings={"max_rounds": 100}) if isinstance(entry.model, EBM) else entry.model
    return model.fit(split, SMALL)


def error(split: Split, fitted: Fitted) -> float:
    found = fitted.predict(split.test.X)
    if split.dataset.task == "regression":
        return float(np.mean((found - split.test.y) ** 2) / np.var(split.test.y))
    assert found.shape == (len(split.test), split.n_classes)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    return float(np.mean(found.argmax(axis=1) != split.test.y)) / (1 - 1 / split.n_classes)


def every_peer_on_every_task() -> Iterator[Any]:
    for entry in PEERS:
        for task in TASKS:
            is_slow = isinstance(entry.model, EBM) and (entry.model.has_pairs or task != "regression")
            marks = [pytest.mark.slow] if is_slow else []
            yield pytest.param(entry, task, marks=marks, id=f"{entry.name}-{task}")


# EBM says that it will not draw the pairs of several classes; here it only predicts with them.
@pytest.mark.filterwarnings("ignore:For multiclass we cannot currently visualize pairs:UserWarning")
@pytest.mark.parametrize(("entry", "task"), list(every_peer_on_every_task()))
def test_every_peer_learns_from_numbers_categories_and_missing_values(
    entry: Entry, task: Task, splits: dict[Task, Split]
) -> None:
    assert error(splits[task], fit(entry, splits[task])) < 0.9  # 1 is what a constant gets


def test_ours_is_fitted_with_its_defaults_on_training_and_validation_rows(
    splits: dict[Task, Split], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = {}

    @dataclass
    class Recorder:
        parameters: dict[str, object]

        def fit(self, X: object, y: np.ndarray, *, sample_weight: object) -> "Recorder":
            assert sample_weight is None
            seen[len(y)] = self.parameters
            return self

    monkeypatch.setattr("nae.NAERegressor", lambda **parameters: Recorder(parameters), raising=False)
    NAE(additivity=0.9).fit(splits["regression"], Budget(threads=3, seed=7))
    assert seen == {320: {"additivity": 0.9, "n_jobs": 3, "random_state": 7, "device": "cpu", "engine": "auto"}}


def test_a_level_that_training_lacks_is_missing_for_boosted_trees(splits: dict[Task, Split]) -> None:
    pytest.importorskip("xgboost", reason="XGBoost is not installed; the extra 'bench' brings it")
    split = splits["regression"]
    fitted = XGBoost().fit(split, SMALL)
    strange = split.test.X.assign(colour="ultraviolet")
    np.testing.assert_array_equal(fitted.predict(strange), fitted.predict(split.test.X.assign(colour=None)))


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost"])
def test_trees_grown_again_on_all_rows_are_as_many_and_others(name: str, splits: dict[Task, Split]) -> None:
    split = splits["regression"]
    first, again = (fit(entry_named(entry), split) for entry in (name, f"{name}-refitted"))
    assert not np.array_equal(first.predict(split.test.X), again.predict(split.test.X))
    assert error(split, again) < 1.2 * error(split, first)


def test_splines_beat_lines_on_a_wave(splits: dict[Task, Split]) -> None:
    split = splits["regression"]
    plain, curved = (error(split, Linear(has_splines=has).fit(split, SMALL)) for has in (False, True))
    assert curved < 0.6 * plain


def test_names_are_unique_and_ours_comes_first() -> None:
    assert len({entry.name for entry in ALL}) == len(ALL)
    assert MODELS[0].name == models.OURS


def test_the_rows_of_the_paper_carry_its_names_and_its_complexities() -> None:
    rows = [entry_named(name) for name in PAPER]
    assert {entry.paper_label for entry in rows} == {entry.paper_label for entry in ALL if entry.paper_label}
    assert [entry.paper_label for entry in rows if not entry.is_interpretable] == ["MLP", "NODE", "XGBoost"]
    assert [entry.paper_label for entry in rows if entry.complexity == "O(n²)"] == ["EB²M", "NA²M", "NB²M", "NODE-GA²M"]
    assert isinstance(entry_named("ebm").model, EBM)
    assert [entry_named(name).paper_label for name in ("ebm", "ebm-additive")] == ["EB²M", "EBM"]
    assert all(entry.is_additive for entry in rows if entry.complexity == "O(n)" and entry.name != models.OURS)


def test_the_suite_compares_no_network_unless_it_is_asked_to() -> None:
    assert not set(MODELS) & set(NETWORKS)
    assert [config.model for config in plan("concrete", "nam,linear", threads=1)] == ["linear", "nam"]
    assert {config.model for config in plan("concrete", None, threads=1)} == {entry.name for entry in MODELS}


def test_an_unknown_model_gets_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'lightgbm'"):
        entry_named("lightgmb")


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost"])
def test_rows_of_weight_zero_teach_nothing(name: str, splits: dict[Task, Split]) -> None:
    whole = splits["regression"]
    is_wrong = {key: np.arange(len(getattr(whole, key))) % 2 == 0 for key in ("train", "validation")}
    parts = {
        key: Part(getattr(whole, key).X, np.where(wrong, 1e3, getattr(whole, key).y), 1.0 - wrong)
        for key, wrong in is_wrong.items()
    }
    split = replace(whole, **parts)
    assert error(split, fit(entry_named(name), split)) < 0.9
    assert len(split.all_train.weight) == len(split.all_train)


def test_settings_replace_those_of_the_suite(splits: dict[Task, Split]) -> None:
    pytest.importorskip("xgboost", reason="XGBoost is not installed; the extra 'bench' brings it")
    fitted = XGBoost(settings={"max_depth": 1, "monotone_constraints": (1, 0, 0, 0)}).fit(splits["regression"], SMALL)
    assert fitted.estimator.max_depth == 1
    assert fitted.estimator.learning_rate == 0.03
