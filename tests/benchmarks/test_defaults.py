"""Other settings against the defaults: how they are read, fitted once and compared."""

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.defaults import Trial, changes, read_setting, render_changes
from benchmarks.trials import Result
from tests.benchmarks.generated import make_table, write_table


def result(setting: str, error: float, dataset: str = "magic", seed: int = 0) -> Result:
    return Result(Trial(dataset, 0, seed, setting, "cpu", "1.0"), error, 1.0)


def test_a_setting_names_parameters_of_the_estimator_and_of_its_training() -> None:
    found = read_setting("n_experts=16,gate=deep,training.cooldown=0.5")
    assert found == ({"n_experts": 16, "gate": "deep"}, {"cooldown": 0.5})
    assert read_setting("") == ({}, {})


def test_errors_are_compared_with_the_defaults_on_the_same_rows_and_seed() -> None:
    results = [
        result("", 0.10), result("", 0.20, seed=1), result("", 4.0, "concrete"),
        result("n_experts=16", 0.11), result("n_experts=16", 0.19, seed=1), result("n_experts=16", 3.8, "concrete"),
        result("n_experts=16", 0.5, seed=2),  # nothing to compare it with
    ]  # fmt: skip
    found = changes(results)
    assert list(found) == ["n_experts=16"]
    assert found["n_experts=16"]["magic"] == pytest.approx([10.0, -5.0])
    page = render_changes(results)
    assert "| error, % of the defaults' | Magic | Concrete | mean |" in page
    assert "| `n_experts=16` | +2.5 ± 7.5 | -5.0 | -1.25 |" in page


@pytest.mark.slow
def test_the_command_fits_what_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NAE_DATA", str(tmp_path))
    for name, task in (("concrete", "regression"), ("magic", "binary")):
        write_table(tmp_path, name, make_table(task))
    small = "n_members=2,max_epochs=1"
    command = ["defaults", small, "--splits", "1", "--seeds", "1", "--store", str(tmp_path / "runs/d.jsonl")]
    main([*command, "--datasets", "concrete"])
    assert capsys.readouterr().out.count(" s  ") == 2  # the defaults, and the setting
    main([*command, "--datasets", "concrete,magic"])
    printed = capsys.readouterr().out
    assert printed.count(" s  ") == 2  # Magic only
    assert f"| `{small}` |" in printed
    monkeypatch.setattr("benchmarks.defaults.own_version", lambda: "2.0")
    main([*command, "--datasets", "concrete"])
    assert capsys.readouterr().out.count(" s  ") == 2  # another version has other defaults


def test_a_parameter_that_is_none_is_named() -> None:
    with pytest.raises(SystemExit, match=r"'n_expert' is not one\. Did you mean 'n_experts'"):
        main(["defaults", "n_expert=3"])
