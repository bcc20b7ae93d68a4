from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nae._typing import Array
from nae.encoding import Cells, Number
from nae.errors import ConfigError, UserError
from nae.explanation import InteractionExplanation, with_statistics
from nae.tables import TableModel, load, save
from tests.explanation.examples import explained_model
from tests.laws.models import make_model, make_table


def point(model: TableModel, i: int, axis: int, found: InteractionExplanation, at: int) -> tuple[int, int, float]:
    """Return lower slot, upper slot and fraction of one value of an axis."""
    label, number = found.axes[axis].labels[at], found.axes[axis].numbers[at]
    feature, start = model.schema.features[i], int(model.schema.offsets[i])
    column = np.array([None if label == "missing" else label], dtype=object)
    if feature.kind != "category":
        column = np.array([number])
    slot, fraction = feature.locate(column)
    cells = Cells(slot[:, None] + start, fraction[:, None])
    return int(cells.slot[0, 0]), int(cells.upper[0, 0]), float(fraction[0])


def oracle(model: TableModel, found: InteractionExplanation, names: tuple[str, ...], place: tuple[int, ...]) -> Array:
    """Return the contributions of the named features at one point from the definition, (feature, output)."""
    assert model.statistics is not None
    chosen = [model.schema.index(name) for name in names]
    points = [point(model, i, axis, found, at) for axis, (i, at) in enumerate(zip(chosen, place, strict=True))]

    def read(table: Array, axis: int) -> Array:
        low, high, fraction = points[axis]
        return table[low] * (1 - fraction) + table[high] * fraction

    out = np.zeros((len(chosen), model.n_outputs))
    for at, i in enumerate(chosen):
        for m in range(model.n_members):
            if found.isolation == "mean":
                hidden = model.gate.bias[:, m].copy()
                for j in range(model.n_features):
                    is_named = j in chosen
                    hidden += (
                        read(model.gate.terms, chosen.index(j))[:, m]
                        if is_named
                        else model.statistics.gate_mean[j, :, m]
                    )
            else:
                hidden = sum(read(model.gate.terms, axis)[:, m] for axis in range(len(chosen)) if axis != at)
            logits = hidden
            if model.gate.mix is not None and model.gate.mix_bias is not None:
                logits = hidden @ model.gate.mix[m]
                logits = logits + model.gate.mix_bias[:, m] if found.isolation == "mean" else logits
            own = logits.reshape(model.n_experts, model.n_features)[:, i]
            weights = np.exp(own - own.max())
            out[at] += weights / weights.sum() @ read(model.experts, at)[:, :, m] / model.n_members
    return out


@pytest.mark.parametrize("gate", ["additive", "low-rank"])
@pytest.mark.parametrize("isolation", ["mean", "paper"])
@pytest.mark.parametrize("names", [("f3", "f1"), ("f0", "f4", "f2")])
def test_the_contributions_are_those_of_the_definition(gate: str, isolation: str, names: tuple[str, ...]) -> None:
    model, _ = explained_model(5, n_features=6, gate=gate, n_members=2, n_outputs=2)
    found = model.explain_interaction(*names, isolation=isolation, resolution=4)
    shape = tuple(len(axis.labels) for axis in found.axes)
    assert found.contributions.shape == (len(names), *shape, 2)
    assert found.is_exact
    random = np.random.default_rng(0)
    for _ in range(10):
        place = tuple(int(random.integers(n)) for n in shape)
        np.testing.assert_allclose(found.contributions[(slice(None), *place)], oracle(model, found, names, place))
    np.testing.assert_allclose(found.total, found.contributions.sum(axis=0))


def test_the_mean_reading_does_not_see_where_a_constant_sits() -> None:
    model, _ = explained_model(6, n_features=4)
    assert model.statistics is not None
    moved = model.gate.terms.copy()
    moved[model.schema.slots(1)] += 3.0
    means = model.statistics.gate_mean.copy()
    means[1] += 3.0
    other = replace(
        model,
        gate=replace(model.gate, terms=moved, bias=model.gate.bias - 3.0),
        statistics=replace(model.statistics, gate_mean=means),
    )
    one, two = (m.explain_interaction("f0", "f2").contributions for m in (model, other))
    np.testing.assert_allclose(one, two)
    one, two = (m.explain_interaction("f0", "f1").contributions for m in (model, other))
    np.testing.assert_allclose(one, two)


def test_a_diagonal_gate_has_no_interaction() -> None:
    model, _ = explained_model(7, n_features=4, gate="diagonal")
    found = model.explain_interaction("f0", "f2")
    np.testing.assert_allclose(found.pure, 0.0, atol=1e-12)
    assert np.ptp(found.total) > 0.1


def test_a_deep_gate_is_averaged_and_says_so() -> None:
    model, table = explained_model(8, n_features=4, gate="deep", n_experts=2)
    found = model.explain_interaction("f0", "f1", resolution=3)
    assert not found.is_exact
    assert "averaged over 128 contexts of the other features, drawn from their training frequencies" in found.note
    again = model.explain_interaction("f0", "f1", resolution=3)
    np.testing.assert_array_equal(found.contributions, again.contributions)
    with_rows = model.explain_interaction("f0", "f1", resolution=3, X=table)
    assert "drawn from the given rows" in with_rows.note
    assert "one slice of it" in model.explain_interaction("f0", "f1", isolation="paper").note


def test_averaging_over_rows_gives_the_mean_contribution_of_those_rows() -> None:
    model, _ = explained_model(9, n_features=3, gate="deep", n_experts=3)
    rows = make_table(np.random.default_rng(1), model.schema, 128)
    found = model.explain_interaction("f0", "f1", resolution=3, X=rows)
    first, second = found.axes
    column = np.full(128, second.numbers[0])
    assert second.kind == "number"
    arrays = (np.full(128, first.numbers[1]), column, rows.arrays[2])
    expected = model.contributions(replace(rows, arrays=arrays)).values.mean(axis=0)
    np.testing.assert_allclose(found.contributions[:, 1, 0, 0], expected[:2])


def test_the_pure_interaction_averages_zero_along_every_axis() -> None:
    model, _ = explained_model(5, n_features=6)
    for names in (("f0", "f2"), ("f0", "f2", "f4")):
        found = model.explain_interaction(*names)
        for at, axis in enumerate(found.axes):
            assert axis.weight.sum() == pytest.approx(1.0)
            np.testing.assert_allclose(np.tensordot(axis.weight, found.pure, axes=(0, at)), 0.0, atol=1e-9)


def test_rows_show_where_data_lies() -> None:
    model, table = explained_model(5, n_features=6)
    found = model.explain_interaction("f0", "f2", X=table)
    assert found.support is not None
    assert found.support.shape == found.total.shape[:2]
    assert found.support.sum() == 12
    assert model.explain_interaction("f0", "f2").support is None


def test_a_number_of_many_knots_is_shown_at_evenly_spread_values() -> None:
    model, _ = explained_model(5, n_features=6)
    index = next(i for i, f in enumerate(model.schema.features) if f.kind == "number" and f.n_values > 4)
    names = (f"f{index}", f"f{(index + 1) % 6}")
    axis = model.explain_interaction(*names, resolution=3).axes[0]
    values = axis.numbers[~np.isnan(axis.numbers)]
    assert len(values) == 3
    assert values[1] - values[0] == pytest.approx(values[2] - values[1])


@pytest.mark.parametrize(
    ("knots", "expected"),
    [
        (np.arange(8.0), [0, 2, 5, 7]),
        (np.array([1.0, 3, 7, 14, 28, 56, 90]), [1, 28, 56, 90]),  # the knot nearest 60 is 56
        (np.append(np.arange(0.0, 40.0), 46.0), [0, 15, 31, 46]),
    ],
)
def test_whole_numbers_are_shown_at_values_that_occur(knots: Array, expected: list[float]) -> None:
    features = (Number("whole", knots, integral=True), Number("other", np.array([0.0, 1.0])))
    model = make_model(np.random.default_rng(0), features=features)
    model = with_statistics(model, {"whole": knots, "other": np.zeros(len(knots))})
    assert model.explain_interaction("whole", "other", resolution=4).axes[0].numbers.tolist() == expected


def test_a_map_survives_json_saving_and_loading(tmp_path: Path) -> None:
    model, table = explained_model(10, n_features=4, n_outputs=3)
    found = model.explain_interaction("f0", "f1", "f2", X=table)
    again = InteractionExplanation.from_json(found.to_json())
    np.testing.assert_array_equal(again.contributions, found.contributions)
    assert again.to_dict() == found.to_dict()
    save(model, tmp_path / "m.nae")
    assert load(tmp_path / "m.nae").explain_interaction("f0", "f1", "f2", X=table).to_json() == found.to_json()


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames_hold_every_point(backend: str) -> None:
    model, _ = explained_model(10, n_features=4, n_outputs=2)
    found = model.explain_interaction("f0", "f1", resolution=3)
    frame = found.to_frame(backend)
    assert len(frame) == found.total.size
    np.testing.assert_array_equal(np.asarray(frame["total"]), found.total.ravel())
    assert list(frame.columns) == [
        "f0",
        "f1",
        "output",
        "contribution of f0",
        "contribution of f1",
        "total",
        "pure",
    ]


def test_what_is_wrong_with_a_call_is_said() -> None:
    model, _ = explained_model()
    with pytest.raises(UserError, match=r"two or three different features; got \['f0'\]"):
        model.explain_interaction("f0")
    with pytest.raises(UserError, match=r"two or three different features; got \['f0', 'f0'\]"):
        model.explain_interaction("f0", "f0")
    with pytest.raises(ConfigError, match="No feature is called 'f8'"):
        model.explain_interaction("f0", "f8")
    with pytest.raises(ConfigError, match="isolation must be 'mean' or 'paper'; got 'none'"):
        model.explain_interaction("f0", "f1", isolation="none")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="resolution must be at least 2; got 1"):
        model.explain_interaction("f0", "f1", resolution=1)
