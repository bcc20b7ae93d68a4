from pathlib import Path
from typing import Any

import pytest

import nae as library
import nae.scale as nae_scale
from nae.cli.app import _with_ray_address
from nae.parameters import Parameters
from nae.tuning import Trial, TuningResult
from tests.cli.conftest import Command


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["fit", "--ray"], ["fit", "--ray", "local"]),
        (["fit", "--ray", "-q"], ["fit", "--ray", "local", "-q"]),
        (["fit", "--ray", "host:6379", "-q"], ["fit", "--ray", "host:6379", "-q"]),
        (["fit", "-q"], ["fit", "-q"]),
    ],
)
def test_ray_without_an_address_is_one_on_this_machine(words: list[str], expected: list[str]) -> None:
    assert _with_ray_address(words) == expected


def test_a_fit_on_a_cluster_gets_what_the_command_line_says(
    nae: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def fit_ray(dataset: Any, target: str, params: Any, **options: Any) -> Any:
        seen.update(options, dataset=dataset, target=target, params=params)
        return library.load(folder / "price.nae")

    monkeypatch.setattr("nae.cli.cluster.fit_ray", fit_ray)
    data, path = folder / "homes.parquet", tmp_path / "m.nae"
    code, _, err = nae(
        "fit",
        data,
        "-t",
        "price",
        "-o",
        path,
        "--ray",
        "h:1",
        "--members",
        3,
        "--ignore",
        "sold",
        "--category",
        "garden",
    )
    assert code == 0, err
    assert "training on the Ray at h:1 with all rows" in err
    assert (seen["dataset"], seen["target"], seen["address"]) == (str(data), "price", "h:1")
    features = {"garden": "category"}
    assert seen["params"] == {
        "effort": "normal",
        "bounds": Parameters.bounds,
        "n_members": 3,
        "random_state": 0,
        "feature_types": features,
    }
    assert (seen["ignore"], seen["task"]) == (["sold"], "regression")
    assert library.load(path).training.target == "price"


def test_two_numbers_are_classes_on_a_cluster_too(
    nae: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def fit_ray(*_: Any, **options: Any) -> Any:
        seen.update(options)
        return library.load(folder / "price.nae")

    monkeypatch.setattr("nae.cli.cluster.fit_ray", fit_ray)
    path = tmp_path / "two.csv"
    path.write_text("size,sold\n" + "".join(f"{row},{row % 2}\n" for row in range(50)))
    code, _, err = nae("fit", path, "-t", "sold", "-o", tmp_path / "m.nae", "--ray")
    assert code == 0, err
    assert "'sold' has 2 classes" in err
    assert seen["task"] == "classification"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-t", "solt"), "The scan has no column 'solt'. Did you mean 'sold'"),
        (("-t", "sold", "--loss", "poisson"), "--loss is for regressions; classes are predicted here"),
    ],
)
def test_a_cluster_is_not_asked_for_what_makes_no_sense(
    nae: Command, tmp_path: Path, words: tuple[str, ...], text: str
) -> None:
    path = tmp_path / "two.csv"
    path.write_text("size,sold\n" + "".join(f"{row},{row % 2}\n" for row in range(50)))
    code, _, err = nae("fit", path, "-o", tmp_path / "m.nae", "--ray", *words)
    assert code == 2
    assert text in err


@pytest.mark.parametrize("data", ["s3://bucket/rows.parquet", "sorted.csv"])
def test_what_cannot_be_seen_from_here_is_left_to_the_cluster(
    nae: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    seen: dict[str, Any] = {}

    def fit_ray(dataset: Any, *_: Any, **options: Any) -> Any:
        seen.update(options, dataset=dataset)
        return library.load(folder / "price.nae")

    monkeypatch.setattr("nae.cli.cluster.fit_ray", fit_ray)
    monkeypatch.chdir(tmp_path)
    Path("sorted.csv").write_text("size,sold\n" + "".join(f"{row},0\n" for row in range(50)))
    code, _, err = nae("fit", data, "-t", "sold", "-o", tmp_path / "m.nae", "--ray")
    assert code == 0, err
    assert (seen["task"], seen["dataset"]) == ("auto", data)


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what is asked of a cluster that trains members; it does so here."""
    seen: dict[str, Any] = {}

    def fit_members(estimator: Any, X: Any, y: Any, *, address: str, **given: Any) -> Any:
        seen.update(address=address, n_rows=len(y), params=estimator.get_params(), **given)
        return estimator.fit(X, y, **given)

    monkeypatch.setattr("nae.cli.cluster.fit_members", fit_members)
    return seen


def test_members_of_one_table_are_trained_by_a_cluster_and_tested_here(
    nae: Command, folder: Path, tmp_path: Path, members: dict[str, Any]
) -> None:
    path = tmp_path / "m.nae"
    words = ("fit", folder / "homes.parquet", "-t", "price", "--ignore", "sold", "-o", path, "--epochs", 2)
    code, out, err = nae(*words, "--members", 2, "--weight", "garden", "--ray", "--by", "members")
    assert code == 0, err
    assert "training the members as jobs of the Ray at local" in err
    assert "RMSE" in out
    assert (members["address"], members["n_rows"]) == ("local", 240)
    assert members["params"]["callbacks"] is None  # they could not travel
    facts = library.load(path).training
    assert (facts.target, facts.n_test_rows) == ("price", 60)


@pytest.mark.parametrize("given", [["--by", "members"], ["--by", "members", "--ray", "--stream"]])
def test_members_are_shared_out_with_a_cluster_and_a_table_in_memory(
    nae: Command, folder: Path, given: list[str]
) -> None:
    code, _, err = nae("fit", folder / "homes.parquet", "-t", "price", *given)
    assert code == 2
    assert "--by members needs --ray and one table that fits in memory" in err


@pytest.mark.parametrize("given", [["--on-bad-rows", "skip"], ["--cache", "."]])
def test_what_a_cluster_cannot_do_is_said(nae: Command, folder: Path, given: list[str]) -> None:
    code, _, err = nae("fit", folder / "homes.parquet", "-t", "price", "--ray", *given)
    assert code == 2
    assert "--on-bad-rows and --cache are for tables read on this machine" in err


@pytest.mark.parametrize("given", [["--test-size", 0.1], ["--device", "cpu"], ["--engine", "torch"]])
def test_what_has_no_effect_on_a_cluster_is_not_taken(nae: Command, folder: Path, given: list[Any]) -> None:
    code, _, err = nae("fit", folder / "homes.parquet", "-t", "price", "--ray", *given)
    assert code == 2
    assert "--test-size, --device and --engine have no effect if a cluster distributes rows" in err


def test_the_chosen_settings_are_fitted_by_the_cluster_that_found_them(
    nae: Command, folder: Path, tmp_path: Path, members: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def tune_ray(estimator: Any, *_: Any, **__: Any) -> TuningResult:
        params = {"learning_rate": 0.004, "n_members": 1}
        trial = Trial(0, params, loss=0.1, standard_error=0.01, additivity=0.9, seconds=1.0)
        return TuningResult(type(estimator).__name__, (trial,))

    monkeypatch.setattr(nae_scale, "tune_ray", tune_ray)
    words = ("tune", folder / "homes.parquet", "-t", "price", "-f", tmp_path, "--epochs", 2, "-o", tmp_path / "m.nae")
    code, _, err = nae(*words, "--ray", "h:1")
    assert code == 0, err
    assert members["address"] == "h:1"
    assert members["params"]["learning_rate"] == 0.004
    assert library.load(tmp_path / "m.nae").n_members == 1


def test_a_search_on_a_cluster_gets_what_the_command_line_says(
    nae: Command, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def tune_ray(estimator: Any, X: Any, y: Any, **options: Any) -> TuningResult:
        seen.update(options, n_rows=len(y))
        trial = Trial(0, {"learning_rate": 0.004}, loss=0.1, standard_error=0.01, additivity=0.9, seconds=1.0)
        options["on_trial"](trial)
        return TuningResult(type(estimator).__name__, (trial,))

    monkeypatch.setattr(nae_scale, "tune_ray", tune_ray)
    code, out, err = nae(
        "tune", folder / "homes.parquet", "-t", "price", "-f", tmp_path, "--trials", 5, "--seeds", 3, "--ray"
    )
    assert code == 0, err
    assert "trial 1 of 5: validation 0.1000, weighted additivity 0.90 (1 s)" in err
    assert "NAERegressor(learning_rate=0.004)" in out
    assert (seen["address"], seen["n_trials"], seen["n_seeds"]) == ("local", 5, 3)
    assert (seen["folder"], seen["n_rows"]) == (str(tmp_path), 240)
