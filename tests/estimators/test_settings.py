"""From flat parameters to configurations: defaults, combinations, and what is refused."""

import numpy as np
import pytest

from nae import NAEClassifier, NAERegressor
from nae.errors import ConfigError
from nae.estimators.settings import Settings, resolve
from nae.parameters import Parameters
from nae.recipes import NUMBERS

SMALL = NUMBERS.small_rows
DEFAULTS = NAERegressor().get_params()


def settings(n_rows: int = 10_000, n_features: int = 10, *, is_classes: bool = False, **params: object) -> Settings:
    return resolve(Parameters.read(DEFAULTS | params), n_rows=n_rows, n_features=n_features, is_classes=is_classes)


def test_few_rows_are_trained_whole_in_every_step_and_without_noise():
    noise = {"expert_dropout": 0.1, "encoder_dropout": 0.1, "encoder": "mlp"}
    few, many = settings(SMALL, **noise), settings(SMALL + 1, **noise)
    assert (few.is_small, many.is_small) == (True, False)
    assert few.training.batch_size == SMALL
    assert (few.network.expert_dropout, few.network.encoder_dropout) == (0, 0)
    assert (many.network.expert_dropout, many.network.encoder_dropout) == (0.1, 0.1)
    assert settings(SMALL, variant="nae-d").network.routing == "softmax"


def test_variants_are_combinations_of_gate_and_routing():
    found = {variant: settings(variant=variant).network for variant in ("nae", "nae-e", "nae-d")}
    assert [one.routing for one in found.values()] == ["softmax", "equal", "gumbel"]
    assert [one.gate for one in found.values()] == ["additive", "additive", "diagonal"]
    assert [one.n_experts for one in found.values()] == [8, 8, 64]
    assert [one.n_active for one in found.values()] == [8, 4, 64]


def test_the_cheaper_gate_is_taken():
    assert settings(n_features=10).network.gate == "additive"
    assert settings(n_features=100).network.gate == "low-rank"
    assert settings(n_features=100, gate="additive").network.gate == "additive"
    assert settings(gate="deep").network.gate == "deep"


def test_numbers_have_more_experts_where_additivity_is_asked_for():
    found = [settings(n_rows=5000, additivity=0.9, is_classes=flag) for flag in (False, True)]
    assert [each.network.n_experts for each in found] == [16, 8]
    assert settings(additivity=0.9, n_features=65).network.n_experts == 8
    assert settings(additivity=0.9, encoder="mlp").network.n_experts == 8
    assert settings(additivity=0.9, n_experts=5).network.n_experts == 5


@pytest.mark.parametrize("is_classes", [False, True])
@pytest.mark.parametrize("n_rows", [5_000, 40_000])
@pytest.mark.parametrize("n_features", [10, 65])
def test_auto_asks_for_additivity_too_and_has_as_many_experts(n_rows: int, n_features: int, is_classes: bool):
    sizes = {"n_rows": n_rows, "n_features": n_features, "is_classes": is_classes}
    auto, asked = settings(additivity="auto", **sizes), settings(additivity=0.9, **sizes)
    assert auto.network == asked.network
    assert auto.training.additivity is None  # the path begins with the flexible model


def test_full_additivity_is_one_expert_and_no_dial():
    found = settings(additivity=1.0)
    assert (found.network.n_experts, found.network.n_active) == (1, 1)
    assert found.training.additivity is None


def test_the_dial_goes_without_expert_dropout():
    found = settings(additivity=0.9, expert_dropout=0.1)
    assert found.training.additivity == 0.9
    assert found.network.expert_dropout == 0


def test_given_sizes_are_kept():
    found = settings(n_experts=5, n_active=2, n_members=3, hidden_dim=7, n_blocks=1, batch_size=99, max_epochs=4)
    network, training = found.network, found.training
    assert (network.n_experts, network.n_active, network.n_members) == (5, 2, 3)
    assert (network.hidden_dim, network.n_blocks) == (7, 1)
    assert (training.batch_size, training.max_epochs) == (99, 4)


def test_wide_tables_have_fewer_knots_and_as_many_levels():
    assert (settings(n_features=10).n_knots, settings(n_features=10).n_levels) == (128, 128)
    assert (settings(n_features=280).n_knots, settings(n_features=280).n_levels) == (32, 128)
    assert (settings(n_features=280, n_knots=50).n_knots, settings(n_features=280, n_knots=50).n_levels) == (50, 50)


def test_an_additive_model_of_many_rows_has_finer_curves_and_more_patience():
    fine, coarse, flexible = (
        settings(n_rows=20_000, additivity=1.0),
        settings(n_rows=5_000, additivity=1.0),
        settings(n_rows=20_000),
    )
    assert [each.n_knots for each in (fine, coarse, flexible)] == [256, 128, 128]
    assert [each.n_ramps for each in (fine, coarse, flexible)] == [64, 48, 48]
    assert fine.n_levels == 128
    assert [each.training.patience for each in (fine, flexible)] == [16, 12]


def test_large_tables_get_more_experts_and_width_where_the_paper_does_not():
    found = settings(n_rows=32_000).network
    assert (found.n_experts, found.hidden_dim) == (16, 64)
    for other in (
        settings(n_rows=31_999),
        settings(n_rows=32_000, n_features=65),
        settings(n_rows=32_000, encoder="mlp"),
    ):
        assert (other.network.n_experts, other.network.hidden_dim) == (8, 32)


def test_classifiers_are_large_earlier_judge_means_of_weights_and_cool_down_faster():
    sizes = [settings(n_rows, is_classes=True).network for n_rows in (9_999, 10_000)]
    assert [(one.n_experts, one.hidden_dim) for one in sizes] == [(8, 32), (16, 64)]
    assert [settings(20_000, is_classes=flag).training.patience for flag in (False, True)] == [12, 8]
    assert [settings(is_classes=flag).training.cooldown for flag in (False, True)] == [0.5, 0.25]
    assert [settings(is_classes=flag).training.averaged_steps for flag in (False, True)] == [None, 32]
    assert settings(is_classes=True, encoder="mlp").training.averaged_steps is None
    for other in (settings(SMALL, is_classes=True), settings(is_classes=True, encoder="mlp")):
        assert other.network.expert_dropout == 0


def test_classes_are_learned_with_dropout_unless_something_is_said_against_it():
    assert [settings(is_classes=flag).network.expert_dropout for flag in (False, True)] == [0, 0.1]
    against = ({"expert_dropout": 0.0}, {"additivity": 0.9}, {"additivity": 1.0}, {"additivity": "auto"})
    for given in (*against, {"variant": "nae-e"}, {"n_experts": 1}):
        assert settings(is_classes=True, **given).network.expert_dropout == 0


@pytest.mark.parametrize(("kind", "cooldown"), [(NAERegressor, 0.5), (NAEClassifier, 0.25)])
def test_an_estimator_says_whether_it_learns_classes(kind: type[NAERegressor | NAEClassifier], cooldown: float):
    assert kind()._given([], []).settle(500, total=None, n_features=3).training.cooldown == cooldown


def test_weight_decay_grows_with_the_pairs_of_features_per_row():
    assert settings(n_rows=16_000, n_features=8).training.weight_decay == 0.1
    assert settings(n_rows=4_330, n_features=30).training.weight_decay == pytest.approx(0.156, abs=0.001)
    assert settings(n_rows=300, n_features=500).training.weight_decay == 1.0
    assert settings(n_rows=300, n_features=500, weight_decay=0.5).training.weight_decay == 0.5


def test_a_level_needs_twenty_rows_or_a_hundredth_of_them():
    assert settings(n_rows=5000).least_share * 5000 == pytest.approx(20)
    assert settings(n_rows=500).least_share * 500 == pytest.approx(5)
    assert settings(n_rows=5000, encoder="mlp").least_share == 0


def test_numbers_of_numpy_are_numbers():
    found = settings(n_experts=np.int64(5), learning_rate=np.float32(0.5))
    assert (found.network.n_experts, found.training.learning_rate) == (5, 0.5)


WRONG = {
    "variant": ("naee", r"variant must be one of \['nae', 'nae-e', 'nae-d'\]; got 'naee'. Did you mean"),
    "encoder": ("lstm", r"encoder must be one of \['piecewise', 'mlp'\]; got 'lstm'"),
    "gate": ("lowrank", r"gate must be one of .*; got 'lowrank'. Did you mean 'low-rank'"),
    "normalization": ("none", r"normalization must be one of \['layer', 'batch'\]; got 'none'"),
    "n_members": (0, r"n_members must be a whole number in \[1, ∞\); got 0"),
    "n_blocks": (1.5, r"n_blocks must be a whole number in \[1, ∞\); got 1.5"),
    "hidden_dim": (0, r"hidden_dim must be a whole number in \[1, ∞\) or None; got 0"),
    "n_ramps": (True, r"n_ramps must be a whole number in \[1, ∞\) or None; got True"),
    "gate_rank": (-1, r"gate_rank must be a whole number in \[1, ∞\); got -1"),
    "n_experts": (0, r"n_experts must be a whole number in \[1, ∞\) or None; got 0"),
    "n_active": (9, r"n_active must be in \[1, n_experts=8\]; got 9"),
    "n_knots": (1, r"n_knots must be a whole number in \[2, ∞\) or None; got 1"),
    "batch_size": ("all", r"batch_size must be a whole number in \[1, ∞\) or None; got 'all'"),
    "max_epochs": (0, r"max_epochs must be a whole number in \[1, ∞\) or None; got 0"),
    "early_stopping_rounds": (0, r"early_stopping_rounds must be a whole number in \[1, ∞\) or None; got 0"),
    "learning_rate": (0, r"learning_rate must be a number in \(0, ∞\); got 0"),
    "variation_penalty": (-0.1, r"variation_penalty must be a number in \[0, ∞\).*; got -0.1"),
    "output_penalty": (float("nan"), r"output_penalty must be a number in \[0, ∞\).*; got nan"),
    "weight_decay": ("no", r"weight_decay must be a number in \[0, ∞\).*; got 'no'"),
    "context_penalty": (-1, r"context_penalty must be a number in \[0, ∞\) or None; got -1"),
    "expert_dropout": (1.0, r"expert_dropout must be a number in \[0, 1\).*; got 1.0"),
    "encoder_dropout": (-0.5, r"encoder_dropout must be a number in \[0, 1\).*; got -0.5"),
    "additivity": (1.1, r"additivity must be a number in \[0, 1\], 'auto' or None; got 1.1"),
    "time_limit": (0, r"time_limit must be a number in \(0, ∞\) or None; got 0"),
    "validation_size": (1.0, r"validation_size must be a number in \(0, 1\); got 1.0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_parameter_that_makes_no_sense_is_an_error_that_says_why(name):
    value, match = WRONG[name]
    with pytest.raises(ConfigError, match=match):
        NAERegressor(**{name: value}).fit([[1.0], [2.0]], [1.0, 2.0])


def test_a_gate_its_variant_does_not_have_is_an_error():
    with pytest.raises(ConfigError, match=r"variant='nae-d' has a diagonal gate; got gate='deep'. Leave gate='auto'"):
        settings(variant="nae-d", gate="deep")
    assert settings(variant="nae-d", gate="diagonal").network.gate == "diagonal"


@pytest.mark.parametrize("variant", ["nae", "nae-e", "nae-d"])
@pytest.mark.parametrize("encoder", ["piecewise", "mlp"])
@pytest.mark.parametrize("n_rows", [100, 300])
def test_every_variant_and_encoder_is_fitted_within_its_bounds(variant, encoder, n_rows):
    X = np.random.default_rng(0).uniform(-1, 1, (n_rows, 3))
    y = X[:, 0] * np.sign(X[:, 1])
    model = NAERegressor(
        variant=variant, encoder=encoder, n_experts=4, n_members=2, hidden_dim=8, max_epochs=4, random_state=0
    ).fit(X, y)
    found = model.contributions(X)
    assert np.all((found.lower <= found.values) & (found.values <= found.upper))
    assert model.model_.routing.name == ("equal" if variant == "nae-e" else "softmax")
    assert (model.table_error_ > 0) == (encoder == "mlp")


def test_the_papers_encoder_is_tabulated_with_a_small_error():
    X = np.random.default_rng(1).uniform(-1, 1, (300, 2))
    y = X[:, 0] * np.sign(X[:, 1])
    for normalization in ("layer", "batch"):
        model = NAERegressor(
            encoder="mlp", normalization=normalization, n_members=1, hidden_dim=16, max_epochs=10, random_state=0
        ).fit(X, y)
        assert 0 < model.table_error_ < 0.1
        assert model.model_.training.table_error == model.table_error_
        assert len(model.model_.schema.features[0].knots) > 200


@pytest.mark.parametrize("gate", ["additive", "low-rank", "deep", "diagonal"])
def test_every_gate_learns(gate):
    X = np.random.default_rng(2).uniform(-1, 1, (400, 2))
    y = np.where(X[:, 1] > 0, X[:, 0], -X[:, 0])
    model = NAERegressor(gate=gate, n_members=1, n_experts=4, hidden_dim=16, max_epochs=120, random_state=0)
    model.fit(X[:200], y[:200])
    assert model.model_.gate.kind == gate
    score = model.score(X[200:], y[200:])
    assert score < 0.3 if gate == "diagonal" else score > 0.6  # its own feature alone cannot know the sign


def test_additivity_may_be_a_word_but_only_one():
    with pytest.raises(ConfigError, match=r"a number in \[0, 1\], 'auto' or None; got 'high'"):
        settings(additivity="high")
