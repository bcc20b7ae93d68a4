import pytest

from nae import NAEClassifier, NAERegressor, presets
from nae.errors import ConfigError
from nae.estimators.settings import resolve
from nae.parameters import Parameters


@pytest.mark.parametrize("name", presets.PAPER)
def test_a_preset_is_a_set_of_valid_parameters_of_both_estimators(name: str) -> None:
    for estimator in (NAERegressor, NAEClassifier):
        parameters = estimator(**presets.paper(name)).get_params()
        settings = resolve(Parameters.read(parameters), n_rows=10_000, n_features=8)
        assert settings.network.encoder == "mlp"
        assert settings.network.gate == "additive"
        assert (settings.network.n_experts, settings.network.n_active, settings.network.n_members) == (4, 4, 1)
        assert (settings.network.n_blocks, settings.network.hidden_dim) == (4, 128)


def test_the_housing_preset_has_the_figures_of_the_paper() -> None:
    found = presets.paper("housing")
    expected = {
        "batch_size": 2048,
        "max_epochs": 1000,
        "learning_rate": 5.97e-4,
        "weight_decay": 5.29e-5,
        "encoder_dropout": 0.1,
        "expert_dropout": 0.2,
        "output_penalty": 1.97e-5,
        "variation_penalty": 0.1,
        "normalization": "layer",
    }
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("name", presets.PAPER)
def test_a_preset_stops_after_a_quarter_of_its_epochs_without_progress(name: str) -> None:
    found = presets.paper(name)
    assert found["early_stopping_rounds"] == found["max_epochs"] // 4


def test_credit_alone_normalises_by_batch() -> None:
    assert [name for name in presets.PAPER if presets.paper(name)["normalization"] == "batch"] == ["credit"]


def test_a_preset_may_be_changed_without_changing_the_next_one() -> None:
    presets.paper("year")["batch_size"] = 1
    assert presets.paper("year")["batch_size"] == 512


def test_an_unknown_preset_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError, match=r"must be one of .*; got 'hosing'\. Did you mean 'housing'\?"):
        presets.paper("hosing")
