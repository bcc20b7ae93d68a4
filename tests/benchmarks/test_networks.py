from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

torch = pytest.importorskip("torch", reason="the extra 'train' brings it")

from benchmarks.datasets import Dataset, Split, Task, split  # noqa: E402
from benchmarks.models import NETWORKS, Budget, Entry, entry_named  # noqa: E402
from benchmarks.models.networks import training  # noqa: E402
from benchmarks.models.networks.sparse import entmax, entmoid  # noqa: E402
from benchmarks.models.networks.trees import Forest, NodeGAM  # noqa: E402
from benchmarks.models.neural import FittedNetwork, Neural  # noqa: E402
from tests.benchmarks.generated import make_split  # noqa: E402

ADDITIVE = [entry for entry in NETWORKS if entry.is_additive]
WITH_PAIRS = [entry for entry in NETWORKS if entry.complexity == "O(n²)"]
BLACK_BOXES = [entry for entry in NETWORKS if not entry.is_interpretable]
Truth = Literal["additive", "product"]


def each(entries: Sequence[Entry]) -> list[Any]:
    """Return networks as parameters of a test, those of many numbers as slow ones."""
    slow = ("nb2m", "node", "node-gam", "node-ga2m")
    return [pytest.param(entry, marks=[pytest.mark.slow] * (entry.name in slow), id=entry.name) for entry in entries]


def toy(truth: Truth, n_rows: int = 1000) -> Split:
    """Return three features of which two matter: by a sum of curves, or only by their product."""
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.uniform(-1, 1, size=(n_rows, 3)), columns=["a", "b", "c"])
    y = np.sin(3 * X["a"]) + X["b"] ** 2 if truth == "additive" else 3 * X["a"] * X["b"]
    return split(Dataset("toy", "regression", "Toy"), X, y.to_numpy() + 0.05 * random.normal(size=n_rows))


def explained(rows: Split, entry: Entry) -> float:
    assert isinstance(entry.model, Neural)
    quick = replace(entry.model, recipe=replace(entry.model.recipe, batch_size=64, max_epochs=20))
    fitted = quick.fit(rows, Budget(threads=1))
    return float(1 - np.mean((fitted.predict(rows.test.X) - rows.test.y) ** 2) / np.var(rows.test.y))


def network_of(entry: Entry, rows: Split) -> FittedNetwork:
    estimator = entry.model.fit(rows, Budget(threads=1, max_epochs=2)).estimator
    assert isinstance(estimator, FittedNetwork)
    return estimator


@pytest.mark.parametrize("entry", each(NETWORKS))
def test_every_network_learns_a_sum_of_curves(entry: Entry) -> None:
    assert explained(toy("additive"), entry) > 0.9


@pytest.mark.parametrize("entry", each([*WITH_PAIRS, *BLACK_BOXES]))
def test_networks_with_pairs_and_black_boxes_learn_a_product(entry: Entry) -> None:
    assert explained(toy("product"), entry) > 0.8


@pytest.mark.parametrize("entry", each(ADDITIVE))
def test_additive_networks_do_not_learn_a_product(entry: Entry) -> None:
    assert explained(toy("product"), entry) < 0.1


@pytest.mark.parametrize("entry", [*ADDITIVE, *WITH_PAIRS], ids=lambda entry: entry.name)
def test_terms_add_up_to_the_prediction(entry: Entry) -> None:
    rows = toy("product", 400)
    network = network_of(entry, rows)
    terms = network.terms(rows.test.X)
    np.testing.assert_allclose(terms.values.sum(axis=1) + terms.intercept, network.scores(rows.test.X), atol=1e-5)
    np.testing.assert_array_equal(network.scores(rows.test.X)[:, 0], network.predict(rows.test.X))


@pytest.mark.parametrize("entry", [*ADDITIVE, *WITH_PAIRS], ids=lambda entry: entry.name)
def test_a_term_moves_with_its_own_features_alone(entry: Entry) -> None:
    rows = toy("product", 400)
    network = network_of(entry, rows)
    before = network.terms(rows.test.X)
    after = network.terms(rows.test.X.assign(b=rows.test.X["b"].to_numpy()[::-1]))
    moved = np.abs(after.values - before.values).max(axis=(0, 2)) > 1e-6
    assert any(moved)
    for name, has_moved in zip(before.names, moved, strict=True):
        assert not has_moved or "b" in name
    assert max(map(len, before.names)) == (2 if entry in WITH_PAIRS else 1)


@pytest.mark.parametrize("task", ["binary", "multiclass"])
@pytest.mark.parametrize("entry", each(NETWORKS))
def test_every_network_takes_classes_categories_and_missing_values(entry: Entry, task: Task) -> None:
    rows = make_split(task)
    shares = entry.model.fit(rows, Budget(threads=1, max_epochs=30)).predict(rows.test.X)
    assert shares.shape == (len(rows.test), rows.n_classes)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.mean(shares.argmax(axis=1) == rows.test.y) > 1.3 / rows.n_classes


@pytest.mark.parametrize("entry", NETWORKS, ids=lambda entry: entry.name)
def test_a_seed_gives_the_same_network_and_leaves_torch_as_it_was(entry: Entry) -> None:
    rows, budget = toy("additive", 300), Budget(threads=1, max_epochs=1)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    first, second = (entry.model.fit(rows, budget).predict(rows.test.X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.get_num_threads() == threads


def test_training_stops_early_and_keeps_the_best_weights() -> None:
    entry = entry_named("mlp")
    assert isinstance(entry.model, Neural)
    rows = toy("additive", 200)
    random = np.random.default_rng(1)  # noise has nothing to be learnt: validation soon gets worse
    noise = split(rows.dataset, rows.all_train.X, random.normal(size=len(rows.all_train)))
    trained = entry.model.fit(noise, Budget(threads=1, max_epochs=200)).estimator.trained
    assert trained.n_epochs < 200
    assert trained.best_epoch == trained.n_epochs - 1 - entry.model.recipe.patience


def test_few_terms_at_once_give_what_all_at_once_give(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = toy("product", 200)
    network = network_of(entry_named("na2m"), rows)
    scores, terms = network.scores(rows.test.X), network.terms(rows.test.X).values
    monkeypatch.setattr(training, "EVALUATED", 40)
    np.testing.assert_allclose(network.scores(rows.test.X), scores, rtol=1e-5)
    np.testing.assert_allclose(network.terms(rows.test.X).values, terms, atol=1e-6)


def test_a_black_box_has_no_terms() -> None:
    rows = toy("additive", 200)
    with pytest.raises(TypeError, match="MLP is not one"):
        network_of(entry_named("mlp"), rows).terms(rows.test.X)


def test_entmax_gives_sparse_shares_with_the_right_gradient() -> None:
    logits = 3 * torch.randn(6, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    shares = entmax(logits)
    torch.testing.assert_close(shares.sum(dim=-1), torch.ones(6, dtype=torch.float64))
    assert (shares == 0).any()
    # The definition: above a threshold that all share, a share is the square of the logit's half above it.
    thresholds = torch.where(shares > 0, logits / 2 - shares.sqrt(), torch.nan)
    assert float((thresholds.nan_to_num(-9).amax(1) - thresholds.nan_to_num(9).amin(1)).max()) < 1e-9
    assert torch.autograd.gradcheck(entmax, (logits.requires_grad_(),))


def test_entmoid_is_entmax_of_two() -> None:
    logits = torch.linspace(-5, 5, 41, dtype=torch.float64)
    torch.testing.assert_close(entmoid(logits), entmax(torch.stack([logits, torch.zeros(41)], dim=1))[:, 0])


def test_node_gam_is_additive_only_after_its_choices_are_made() -> None:
    torch.manual_seed(0)
    network = NodeGAM(3, 1, has_pairs=True, n_trees=8).eval()
    x = torch.randn(20, 3)
    assert not network.settle(0.0)
    assert network.settle(0.9)
    torch.testing.assert_close(network.terms(x).sum(dim=1) + network.intercept, network(x))


def test_a_tree_sends_a_row_to_the_leaf_that_its_answers_name() -> None:
    torch.manual_seed(0)
    forest = Forest(1, 2)
    with torch.no_grad():
        forest.thresholds.zero_()
        forest.leaves[0, :, 0] = torch.tensor([0.0, 1.0, 2.0, 3.0])
    corners = torch.tensor([[-9.0, -9.0, 9.0, 9.0], [-9.0, 9.0, -9.0, 9.0]])[None]  # (tree, level, row)
    torch.testing.assert_close(forest(corners), torch.tensor([[0.0, 1.0, 2.0, 3.0]]))
