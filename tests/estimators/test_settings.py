"""From flat parameters to configurations: defaults, combinations, and what is refused."""

from itertools import pairwise

import numpy as np
import pytest

from nae import NAEClassifier, NAERegressor
from nae.errors import ConfigError
from nae.estimators.settings import Settings, resolve
from nae.parameters import Parameters
from nae.recipes import CLASSES, NUMBERS, PAPER, VARIANTS, ByRows, Recipe

SMALL = NUMBERS.small_rows
DEFAULTS = NAERegressor().get_params()
ROWS = (30, 300, 1_000, 5_000, 20_000, 100_000, 1_000_000)
FEATURES = (1, 10, 50, 100, 280, 1_000)


def settings(n_rows: int = 10_000, n_features: int = 10, *, is_classes: bool = False, **params: object) -> Settings:
    return resolve(Parameters.read(DEFAULTS | params), n_rows=n_rows, n_features=n_features, is_classes=is_classes)


def of_recipe(recipe: Recipe, n_rows: int, n_features: int = 10, **params: object) -> Settings:
    """Return the settings of a table that a recipe is for."""
    encoder = "mlp" if recipe is PAPER else "piecewise"
    return settings(n_rows, n_features, is_classes=recipe is CLASSES, encoder=encoder, **params)


def test_few_rows_are_trained_whole_in_every_step_and_without_noise():
    noise = {"expert_dropout": 0.1, "encoder_dropout": 0.1, "encoder": "mlp"}
    few, many = settings(SMALL, **noise), settings(SMALL + 1, **noise)
    assert (few.is_small, many.is_small) == (True, False)
    assert few.training.batch_size == SMALL
    assert (few.network.expert_dropout, few.network.encoder_dropout) == (0, 0)
    assert (many.network.expert_dropout, many.network.encoder_dropout) == (0.1, 0.1)
    assert settings(SMALL, variant="nae-d").network.routing == "softmax"


def test_variants_are_combinations_of_gate_and_routing():
    found = {variant: settings(variant=variant).network for variant in VARIANTS}
    assert [one.routing for one in found.values()] == ["softmax", "equal", "gumbel"]
    assert [one.gate for one in found.values()] == ["additive", "additive", "diagonal"]
    sizes = {variant: (one.n_experts, one.n_active) for variant, one in found.items()}
    usual, diagonal = NUMBERS.n_experts.first, NUMBERS.n_diagonal_experts
    assert sizes == {"nae": (usual, usual), "nae-e": (usual, usual // 2), "nae-d": (diagonal, diagonal)}


def test_the_cheaper_gate_is_taken():
    assert settings(n_features=10).network.gate == "additive"
    assert settings(n_features=100).network.gate == "low-rank"
    assert settings(n_features=100, gate="additive").network.gate == "additive"
    assert settings(gate="deep").network.gate == "deep"


@pytest.mark.parametrize("recipe", [NUMBERS, CLASSES, PAPER])
def test_a_narrow_table_has_no_fewer_experts_where_additivity_is_asked_for(recipe: Recipe):
    few = NUMBERS.small_rows + 1
    assert of_recipe(recipe, few, additivity=0.9).network.n_experts == max(
        recipe.n_experts.first, recipe.n_steered_experts
    )
    assert of_recipe(recipe, few, recipe.wide + 1, additivity=0.9).network.n_experts == recipe.n_experts.first
    assert of_recipe(recipe, few, additivity=0.9, n_experts=5).network.n_experts == 5


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


def test_given_knots_are_the_most_knots_and_the_most_levels():
    for n_features in (10, 280):
        found = settings(n_features=n_features, n_knots=50)
        assert (found.n_knots, found.n_levels) == (50, 50)


@pytest.mark.parametrize("recipe", [NUMBERS, CLASSES, PAPER])
def test_more_rows_never_give_fewer_knots_and_more_features_never_more(recipe: Recipe):
    by_rows = [of_recipe(recipe, n_rows).n_knots for n_rows in ROWS]
    by_features = [of_recipe(recipe, 10_000, n_features).n_knots for n_features in FEATURES]
    assert by_rows == sorted(by_rows)
    assert by_features == sorted(by_features, reverse=True)
    assert by_features[-1] < by_features[0] <= recipe.most_knots
    assert by_features[-1] == recipe.narrow_knots
    levels = {of_recipe(recipe, 10_000, n_features).n_levels for n_features in FEATURES}
    assert levels == ({recipe.most_levels} if recipe.most_levels is not None else set(by_features))


@pytest.mark.parametrize("recipe", [NUMBERS, CLASSES])
def test_an_additive_model_of_many_rows_has_finer_curves_and_more_patience(recipe: Recipe):
    many = recipe.fine_rows
    fine, coarse = (of_recipe(recipe, n_rows, additivity=1.0) for n_rows in (many, many - 1))
    flexible = of_recipe(recipe, many)
    for other in (coarse, flexible):
        assert fine.n_knots > other.n_knots
        assert fine.n_ramps > other.n_ramps
        assert fine.training.patience > other.training.patience
        assert fine.n_levels == other.n_levels


@pytest.mark.parametrize("recipe", [NUMBERS, CLASSES, PAPER])
@pytest.mark.parametrize("name", ["n_experts", "hidden_dim"])
def test_a_network_grows_at_the_rows_that_the_recipe_names_unless_the_table_is_wide(recipe: Recipe, name: str):
    sizes: ByRows = getattr(recipe, name)
    for least, size in sizes.steps:
        assert getattr(of_recipe(recipe, max(least, 1)).network, name) == size
        assert getattr(of_recipe(recipe, max(least, 1), recipe.wide).network, name) == size
        assert getattr(of_recipe(recipe, max(least, 1), recipe.wide + 1).network, name) == sizes.first
    for (_, before), (least, _) in pairwise(sizes.steps):
        assert getattr(of_recipe(recipe, least - 1).network, name) == before


@pytest.mark.parametrize("recipe", [NUMBERS, CLASSES, PAPER])
def test_the_target_and_the_encoder_choose_the_recipe(recipe: Recipe):
    found = of_recipe(recipe, 20_000).training
    for name in ("schedule", "cooldown", "averaged_steps", "context_penalty", "learning_rate"):
        assert getattr(found, name) == getattr(recipe, name)
    assert (found.n_folds is not None) == recipe.has_folds


def test_few_classes_and_the_papers_encoder_go_without_the_dropout_of_experts():
    for other in (settings(SMALL, is_classes=True), settings(is_classes=True, encoder="mlp")):
        assert other.network.expert_dropout == 0


def test_classes_are_learned_with_dropout_unless_something_is_said_against_it():
    usual = [settings(is_classes=flag).network.expert_dropout for flag in (False, True)]
    assert usual == [NUMBERS.expert_dropout, CLASSES.expert_dropout]
    assert usual[0] == 0 < usual[1]
    against = ({"expert_dropout": 0.0}, {"additivity": 0.9}, {"additivity": 1.0}, {"additivity": "auto"})
    for given in (*against, {"variant": "nae-e"}, {"n_experts": 1}):
        assert settings(is_classes=True, **given).network.expert_dropout == 0


@pytest.mark.parametrize(("kind", "recipe"), [(NAERegressor, NUMBERS), (NAEClassifier, CLASSES)])
def test_an_estimator_says_whether_it_learns_classes(kind: type[NAERegressor | NAEClassifier], recipe: Recipe):
    assert NUMBERS.cooldown != CLASSES.cooldown
    assert kind()._given([], []).settle(500, total=None, n_features=3).training.cooldown == recipe.cooldown


@pytest.mark.parametrize("recipe", [NUMBERS, CLASSES, PAPER])
def test_weight_decay_grows_with_the_pairs_of_features_per_row(recipe: Recipe):
    by_features = [of_recipe(recipe, 4_000, n_features).training.weight_decay for n_features in FEATURES]
    by_rows = [of_recipe(recipe, n_rows, 100).training.weight_decay for n_rows in ROWS]
    assert by_features == sorted(by_features)
    assert by_rows == sorted(by_rows, reverse=True)
    for found in (by_features, sorted(by_rows)):
        assert (found[0], found[-1]) == (recipe.weight_decay, recipe.most_weight_decay)
    pairs_per_row = [of_recipe(recipe, n, f).training.weight_decay for n, f in ((10_000, 50), (40_000, 100))]
    assert pairs_per_row[0] == pairs_per_row[1]
    assert settings(n_rows=300, n_features=500, weight_decay=0.5).training.weight_decay == 0.5


@pytest.mark.parametrize("recipe", [NUMBERS, CLASSES, PAPER])
@pytest.mark.parametrize("n_rows", ROWS)
def test_a_level_needs_enough_rows_or_a_large_enough_share_of_them(recipe: Recipe, n_rows: int):
    share = of_recipe(recipe, n_rows).least_share
    assert share * n_rows <= recipe.level_rows + 1e-9
    assert share <= recipe.level_share
    assert share * n_rows == pytest.approx(recipe.level_rows) or share == recipe.level_share


def test_numbers_of_numpy_are_numbers():
    found = settings(n_experts=np.int64(5), learning_rate=np.float32(0.5))
    assert (found.network.n_experts, found.training.learning_rate) == (5, 0.5)


WRONG = {
    "variant": ("naee", r"variant must be one of \['nae', 'nae-e', 'nae-d'\]; got 'naee'. Did you mean"),
    "encoder": ("lstm", r"encoder must be one of \['piecewise', 'mlp'\]; got 'lstm'"),
    "gate": ("lowrank", r"gate must be one of .*; got 'lowrank'. Did you mean 'low-rank'"),
    "normalization": ("none", r"normalization must be one of \['layer', 'batch'\]; got 'none'"),
    "n_members": (0, r"n_members must be a whole number in \[1, ∞\) or None; got 0"),
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


@pytest.mark.parametrize("is_classes", [False, True])
def test_more_effort_takes_more_members_patience_and_larger_networks(is_classes: bool) -> None:
    for n_rows in ROWS:
        quick, normal, best = (
            settings(n_rows, effort=one, is_classes=is_classes) for one in ("quick", "normal", "best")
        )
        assert normal == settings(n_rows, is_classes=is_classes)
        assert quick.network.n_members < normal.network.n_members < best.network.n_members
        assert (quick.training.patience or 0) <= (normal.training.patience or 0) <= (best.training.patience or 0)
        assert quick.network.hidden_dim <= normal.network.hidden_dim <= best.network.hidden_dim
        assert quick.network.n_experts <= normal.network.n_experts <= best.network.n_experts
    assert settings(5_000_000, effort="best", is_classes=is_classes).training.patience


def test_patience_follows_effort_where_it_is_a_share_of_the_epochs() -> None:
    quick, normal, best = (
        settings(20_000, effort=one, encoder="mlp", max_epochs=400).training.patience
        for one in ("quick", "normal", "best")
    )
    assert (quick, normal, best) == (50, 100, 200)


def test_what_is_given_is_not_changed_by_effort() -> None:
    given = {"n_members": 3, "n_experts": 5, "hidden_dim": 9, "early_stopping_rounds": 7}
    found = settings(20_000, effort="best", **given)
    assert (found.network.n_members, found.network.n_experts, found.network.hidden_dim) == (3, 5, 9)
    assert found.training.patience == 7
    with pytest.raises(ConfigError, match=r"effort must be one of \['quick', 'normal', 'best'\]; got 'bset'.*best"):
        NAERegressor(effort="bset").fit(np.zeros((3, 1)), np.arange(3.0))
