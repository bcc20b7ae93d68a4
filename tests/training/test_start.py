"""Where small tables start: lines and waves as strong as held-out rows reward, for every loss."""

import numpy as np
import pytest

from nae.encoding import Cells, Columns, build_schema, infer_kinds
from nae.engines.torch import TorchEngine
from nae.engines.torch.scores import score_cells
from nae.network import Network, draw_network, piecewise_inputs
from nae.training import Job, TrainingRows, make_loss
from nae.training.assemble import padded_slots
from nae.training.shrinkage import keep_share
from nae.training.start import fit_start
from tests.configs import network_config, training_config

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
        Cells(padded_slots(schema)[cells.slot], cells.fraction),
        target[order],
        counts / counts.mean(),
        None,
        order % N_FOLDS,
    )


def start_of(loss: str, target: np.ndarray, **given) -> tuple[np.ndarray, np.ndarray]:
    """Return the start and the scores it gives the rows, (B, O, M)."""
    schema, rows = rows_of(target, **given)
    n_slots = max(feature.n_slots for feature in schema.features)
    if loss in {"poisson", "gamma", "tweedie", "logistic"}:
        rows = TrainingRows(rows.cells, rows.target, rows.weight, np.zeros((len(rows), 1)), rows.fold)
    if loss == "cross-entropy":
        rows = TrainingRows(rows.cells, rows.target, rows.weight, np.zeros((len(rows), 3)), rows.fold)
    found = fit_start(rows, schema, make_loss(loss), own_fold=np.arange(N_FOLDS), n_slots=n_slots)
    fraction = rows.cells.fraction[..., None, None]
    each = (1 - fraction) * found[rows.cells.slot] + fraction * found[rows.cells.upper]
    return found, each.sum(axis=1) + found[-1]


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
    own = score[np.arange(N_ROWS), :, np.arange(N_ROWS) % N_FOLDS]
    along = own[:, -1] - own[:, 0] if loss == "cross-entropy" else own[:, 0]
    assert np.corrcoef(along, LINE)[0, 1] > 0.9


@pytest.mark.parametrize("loss", LOSSES)
def test_of_noise_nothing_is_left(loss):
    random = np.random.default_rng(2)
    target = target_of(loss)[random.permutation(N_ROWS)]
    _, score = start_of(loss, target)
    _, signal = start_of(loss, target_of(loss))
    assert score.std(axis=0).max() < 0.2 * signal.std(axis=0).max()


def test_a_curve_is_bent_where_held_out_rows_reward_it():
    _, score = start_of("squared", np.cos(3 * X)[:, None])
    assert np.corrcoef(score.mean(axis=-1)[:, 0], np.cos(3 * X))[0, 1] > 0.99


def test_a_member_does_not_see_the_rows_it_holds_out():
    target = target_of("squared")
    wild = target.copy()
    wild[1::N_FOLDS] += 50 * LINE[1::N_FOLDS, None]
    for member, is_same in ((1, True), (0, False)):
        schema, _ = rows_of(target)
        n_slots = max(feature.n_slots for feature in schema.features)
        one = np.array([member])
        plain, other = (
            fit_start(rows_of(each)[1], schema, make_loss("squared"), own_fold=one, n_slots=n_slots)
            for each in (target, wild)
        )
        assert np.allclose(plain, other, atol=1e-8) == is_same


@pytest.mark.parametrize("loss", ["squared", "poisson", "logistic", "cross-entropy"])
def test_weights_count_as_repeated_rows_in_any_order(loss):
    counts = np.random.default_rng(3).integers(1, 4, N_ROWS)
    repeated = np.random.default_rng(4).permutation(np.repeat(np.arange(N_ROWS), counts))
    weighted, _ = start_of(loss, target_of(loss), weight=counts.astype(float))
    plain, _ = start_of(loss, target_of(loss), order=repeated)
    np.testing.assert_allclose(weighted, plain, rtol=1e-6, atol=1e-7)


def network_at(start: float) -> Network:
    schema, _ = rows_of(target_of("squared"))
    shape = network_config(n_experts=3, n_active=3, n_members=2, hidden_dim=4)
    inputs = piecewise_inputs(schema, 4)
    network = draw_network(shape, inputs, 1, random=np.random.default_rng(0), dtype=np.float64)
    return network.begin_at(np.full((inputs.shape[0] * inputs.shape[1] + 1, 1, 2), start))


def engine_at(start: float) -> TorchEngine:
    _, rows = rows_of(target_of("squared"))
    config = training_config()
    return TorchEngine(Job(network_at(start), rows, None, make_loss("squared"), config, np.random.default_rng(0)))


def test_the_start_is_added_to_every_expert_and_to_the_intercept():
    at, zero = network_at(0.5), network_at(0.0)
    schema, rows = rows_of(target_of("squared"))
    tables = [network.to_tables(padded_slots(schema)) for network in (at, zero)]
    np.testing.assert_allclose(tables[0][0], tables[1][0] + 0.5)
    np.testing.assert_allclose(tables[0][2], tables[1][2] + 0.5)
    shift = score_cells(at, rows.cells) - score_cells(zero, rows.cells)
    np.testing.assert_allclose(shift, 0.5 * 3 + 0.5)


def size_of(engine: TorchEngine) -> float:
    return float(np.linalg.norm(engine.snapshot()["expert_weight"]))


@pytest.mark.parametrize(("best", "expected"), [(0.0, 0.0), (0.3, 0.25), (1.0, 1.0)])
def test_the_share_that_validates_best_is_kept(best, expected):
    engine = engine_at(0.0)
    full = size_of(engine)

    def share_of() -> float:
        return size_of(engine) / full

    share, loss = keep_share(engine, lambda: abs(share_of() - best))
    assert (share, loss) == (expected, pytest.approx(abs(expected - best)))
    assert share_of() == pytest.approx(expected)


def test_more_is_kept_only_where_it_gains_enough():
    engine = engine_at(0.0)
    falling = iter([1.0, 0.9999, 0.9998, 0.9997, 0.9996])
    assert keep_share(engine, lambda: next(falling), least_gain=0.01)[0] == 0.0


def test_without_rows_to_judge_by_all_is_kept():
    engine = engine_at(0.0)
    before = engine.snapshot()
    assert keep_share(engine, lambda: None) == (1.0, None)
    after = engine.snapshot()
    assert all(np.array_equal(array, after[name]) for name, array in before.items())
