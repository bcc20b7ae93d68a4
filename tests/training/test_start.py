"""Where small tables start: lines and waves as strong as held-out rows reward, for every loss."""

import numpy as np
import pytest
import torch

from nae.encoding import Columns, build_schema, infer_kinds
from nae.network import Network, piecewise_inputs
from nae.network.cells import RowCells
from nae.training import TrainingRows, make_loss
from nae.training.assemble import padded_slots
from nae.training.shrinkage import keep_share
from nae.training.start import fit_start
from tests.configs import network_config

N_ROWS = 160
N_FOLDS = 4


def rows_of(target: np.ndarray, *, weight: np.ndarray | None = None, order: np.ndarray | None = None):
    random = np.random.default_rng(0)
    level = random.choice(np.array(["a", "b", "c"], dtype=object), N_ROWS)
    gaps = np.where(random.uniform(size=N_ROWS) < 0.2, np.nan, random.normal(size=N_ROWS))
    columns = Columns((np.linspace(-2, 2, N_ROWS), gaps, level), ("x", "gaps", "level"))
    schema = build_schema(columns, infer_kinds(columns), np.ones(N_ROWS), n_knots=20)
    order = np.arange(N_ROWS) if order is None else order
    cells = schema.locate(columns).take(order)
    counts = np.ones(len(order)) if weight is None else weight
    return schema, TrainingRows(
        RowCells(torch.as_tensor(padded_slots(schema)[cells.slot]), torch.as_tensor(cells.fraction)),
        torch.as_tensor(target[order]),
        torch.as_tensor(counts / counts.mean()),
        None,
        torch.as_tensor(order % N_FOLDS),
    )


def start_of(loss: str, target: np.ndarray, **given) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the start and the scores it gives the rows, (B, O, M)."""
    schema, rows = rows_of(target, **given)
    n_slots = max(feature.n_slots for feature in schema.features)
    if loss in {"poisson", "gamma", "tweedie", "logistic"}:
        rows = TrainingRows(rows.cells, rows.target, rows.weight, torch.zeros(len(rows), 1), rows.fold)
    if loss == "cross-entropy":
        rows = TrainingRows(rows.cells, rows.target, rows.weight, torch.zeros(len(rows), 3), rows.fold)
    found = fit_start(rows, schema, make_loss(loss), own_fold=torch.arange(N_FOLDS), n_slots=n_slots)
    slots, shares = rows.cells.ends()
    return found, (found[slots] * shares[..., None, None]).sum(dim=(1, 2)) + found[-1]


X = np.linspace(-2, 2, N_ROWS)
LINE = (X - X.mean()) / X.std()


def target_of(loss: str) -> np.ndarray:
    random = np.random.default_rng(1)
    mean = np.exp(0.8 * LINE)
    if loss == "logistic":
        return (random.uniform(size=N_ROWS) < 1 / (1 + np.exp(-3 * LINE))).astype(float)[:, None]
    if loss == "cross-entropy":
        return np.digitize(LINE + 0.2 * random.normal(size=N_ROWS), [-0.5, 0.5])
    if loss in {"poisson", "tweedie"}:
        return random.poisson(mean).astype(float)[:, None]
    if loss == "gamma":
        return (mean * random.gamma(5, 0.2, N_ROWS))[:, None]
    return (LINE + 0.1 * random.normal(size=N_ROWS))[:, None]


LOSSES = ["squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie", "logistic", "cross-entropy"]


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_finds_a_line_on_rows_that_were_held_out(loss):
    target = target_of(loss)
    _, score = start_of(loss, target)
    own = score[torch.arange(N_ROWS), :, torch.arange(N_ROWS) % N_FOLDS].numpy()
    along = own[:, -1] - own[:, 0] if loss == "cross-entropy" else own[:, 0]
    assert np.corrcoef(along, LINE)[0, 1] > 0.9


@pytest.mark.parametrize("loss", LOSSES)
def test_of_noise_nothing_is_left(loss):
    random = np.random.default_rng(2)
    target = target_of(loss)[random.permutation(N_ROWS)]
    _, score = start_of(loss, target)
    _, signal = start_of(loss, target_of(loss))
    assert score.std(dim=0).max() < 0.2 * signal.std(dim=0).max()


def test_a_curve_is_bent_where_held_out_rows_reward_it():
    _, score = start_of("squared", np.cos(3 * X)[:, None])
    assert np.corrcoef(score.mean(dim=-1)[:, 0], np.cos(3 * X))[0, 1] > 0.99


def test_a_member_does_not_see_the_rows_it_holds_out():
    target = target_of("squared")
    wild = target.copy()
    wild[1::N_FOLDS] += 50 * LINE[1::N_FOLDS, None]
    for member, is_same in ((1, True), (0, False)):
        schema, _ = rows_of(target)
        n_slots = max(feature.n_slots for feature in schema.features)
        one = torch.tensor([member])
        plain, other = (
            fit_start(rows_of(each)[1], schema, make_loss("squared"), own_fold=one, n_slots=n_slots)
            for each in (target, wild)
        )
        assert torch.allclose(plain, other, atol=1e-8) == is_same


@pytest.mark.parametrize("loss", ["squared", "poisson", "logistic", "cross-entropy"])
def test_weights_count_as_repeated_rows_in_any_order(loss):
    counts = np.random.default_rng(3).integers(1, 4, N_ROWS)
    repeated = np.random.default_rng(4).permutation(np.repeat(np.arange(N_ROWS), counts))
    weighted, _ = start_of(loss, target_of(loss), weight=counts.astype(float))
    plain, _ = start_of(loss, target_of(loss), order=repeated)
    torch.testing.assert_close(weighted, plain, rtol=1e-6, atol=1e-7)


def network_at(start: float) -> Network:
    schema, _ = rows_of(target_of("squared"))
    shape = network_config(n_experts=3, n_active=3, n_members=2, hidden_dim=4)
    inputs = piecewise_inputs(schema, 4)
    network = Network(shape, inputs, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    network.begin_at(torch.full((inputs.shape[0] * inputs.shape[1] + 1, 1, 2), start))
    return network.eval()


def test_the_start_is_added_to_every_expert_and_to_the_intercept():
    at, zero = network_at(0.5), network_at(0.0)
    torch.testing.assert_close(at.evaluate_knots()[0], zero.evaluate_knots()[0] + 0.5)
    _, rows = rows_of(target_of("squared"))
    shift = at(rows.cells).score - zero(rows.cells).score
    torch.testing.assert_close(shift, torch.full_like(shift, 0.5 * 3 + 0.5))


@pytest.mark.parametrize(("best", "expected"), [(0.0, 0.0), (0.3, 0.25), (1.0, 1.0)])
def test_the_share_that_validates_best_is_kept(best, expected):
    network = network_at(0.0)
    full = float(network.expert_weight.detach().norm())

    def share_of() -> float:
        return float(network.expert_weight.detach().norm()) / full

    share, loss = keep_share(network, lambda: abs(share_of() - best))
    assert (share, loss) == (expected, pytest.approx(abs(expected - best)))
    assert share_of() == pytest.approx(expected)


def test_more_is_kept_only_where_it_gains_enough():
    network = network_at(0.0)
    falling = iter([1.0, 0.9999, 0.9998, 0.9997, 0.9996])
    assert keep_share(network, lambda: next(falling), least_gain=0.01)[0] == 0.0


def test_without_rows_to_judge_by_all_is_kept():
    network = network_at(0.0)
    before = network.expert_weight.clone()
    assert keep_share(network, lambda: None) == (1.0, None)
    torch.testing.assert_close(network.expert_weight, before)
