from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nae._typing import Array
from nae.encoding import Columns, Number, Schema
from nae.errors import ConfigError, UserError
from nae.explanation import with_statistics
from nae.links import LINKS
from nae.plots.layouts.bars import lay_out_importance, lay_out_waterfall
from nae.plots.layouts.lines import FrontierPoint, lay_out_compare, lay_out_frontier, lay_out_training
from nae.plots.layouts.maps import lay_out_map, lay_out_matrix, lay_out_panels
from nae.plots.layouts.shape import ShapeLayout, lay_out_shape, lay_out_shapes, value_range
from nae.tables import GateTables, SoftmaxRouting, TableModel
from nae.training.history import Epoch, History
from tests.laws.models import make_model
from tests.plots.explained import NAMES, explained, global_of, interaction_of, local_of, model_of, rows_of, strength_of

INCOME, ROOMS, NEW, FORTY, LONG = NAMES


def test_the_curve_of_a_number_is_its_mean_effect_between_its_bounds() -> None:
    explanation = explained()
    layout, shape = lay_out_shape(explanation, INCOME, unit="USD"), explanation.feature(INCOME)
    assert layout.is_number
    np.testing.assert_array_equal(layout.x, shape.numbers[:-2])
    np.testing.assert_array_equal(layout.mean, shape.mean[:-2, 0])
    np.testing.assert_array_equal(layout.lower, shape.lower[:-2, 0])
    np.testing.assert_array_equal(layout.upper, shape.upper[:-2, 0])
    assert layout.effect_label == "effect on prediction (USD)"


@pytest.mark.parametrize("name", [INCOME, ROOMS])
def test_most_effects_lie_between_the_bounds(name: str) -> None:
    layout = lay_out_shape(explained(), name)
    assert np.all((layout.lower <= layout.low) & (layout.low <= layout.high) & (layout.high <= layout.upper))


def test_where_a_knot_has_rows_enough_most_effects_are_its_own() -> None:
    layout, shape = lay_out_shape(explained(), ROOMS), explained().feature(ROOMS)
    np.testing.assert_allclose(layout.low, shape.quantiles[0, :-2, 0], atol=1e-12)
    np.testing.assert_allclose(layout.high, shape.quantiles[-1, :-2, 0], atol=1e-12)


def test_most_effects_are_most_of_the_rows_although_every_knot_has_few() -> None:
    random = np.random.default_rng(0)
    knots, slope = np.linspace(0, 1, 100), np.array([[-1.0], [1.0]])
    experts = np.concatenate([knots[:, None] + slope.T, np.zeros((2, 2)), np.zeros((4, 2))])[..., None, None]
    schema = Schema((Number("x", knots), Number("z", np.array([0.0, 1.0]))))
    terms = np.zeros((schema.n_slots, 4, 1))
    terms[schema.slots(1).start + 1, 0] = 4.0  # z moves x to its lower expert
    gate = GateTables("additive", terms, np.zeros((4, 1)))
    model = TableModel(schema, experts, gate, SoftmaxRouting(2), np.zeros(1), LINKS["identity"], outputs=("score",))
    rows = Columns((random.uniform(size=300), random.uniform(size=300)), ("x", "z"))
    explanation = with_statistics(model, rows).explain_global()
    layout, shape = lay_out_shape(explanation, "x"), explanation.feature("x")
    values = model.contributions(rows).values[:, 0]

    def share_between(low: np.ndarray, high: np.ndarray) -> float:
        at = rows.arrays[0]
        return float(np.mean((values >= np.interp(at, knots, low)) & (values <= np.interp(at, knots, high))))

    assert 0.85 < share_between(layout.low, layout.high) < 0.95
    assert share_between(shape.quantiles[0, :-2, 0], shape.quantiles[-1, :-2, 0]) < 0.8  # three rows are too few
    width, own = layout.high - layout.low, shape.quantiles[-1, :-2, 0] - shape.quantiles[0, :-2, 0]
    assert np.abs(np.diff(width)).sum() < 0.3 * np.abs(np.diff(own)).sum()


def test_missing_stands_beside_a_number_and_unseen_does_not() -> None:
    explanation = explained()
    layout, shape = lay_out_shape(explanation, INCOME), explanation.feature(INCOME)
    assert [level.label for level in layout.levels] == ["missing"]
    assert layout.levels[0].mean == shape.mean[-2, 0]
    assert layout.levels[0].upper == shape.upper[-2, 0]
    assert layout.levels[0].share == pytest.approx(4 / 400)
    assert lay_out_shape(explanation, ROOMS).levels == ()  # never missing


def test_a_long_tail_is_cut_and_said() -> None:
    layout = lay_out_shape(explained(), INCOME)
    assert layout.x_range[1] < 5
    assert "values reach 500" in layout.note
    assert "stability" in layout.note
    assert value_range(np.array([0.0, 1.0, 2.0]), np.ones(3)) == (0.0, 2.0)
    assert value_range(np.array([3.0]), np.ones(1)) == (2.5, 3.5)


def test_density_bars_hold_the_share_of_the_rows() -> None:
    layout, shape = lay_out_shape(explained(), ROOMS), explained().feature(ROOMS)
    heights = [bar.height for bar in layout.density]
    np.testing.assert_allclose(heights, shape.weight[:6] / shape.weight[:6].max())
    assert [(bar.left + bar.right) / 2 for bar in layout.density] == pytest.approx([0, 1, 2, 3, 4, 5])
    histogram = lay_out_shape(explained(), INCOME).density
    assert len(histogram) == 40
    assert max(bar.height for bar in histogram) == 1.0
    assert histogram[0].left == lay_out_shape(explained(), INCOME).x_range[0]


def test_few_values_are_marked_one_by_one_with_room_for_their_bars() -> None:
    layout = lay_out_shape(explained(), ROOMS)
    assert layout.ticks == (0, 1, 2, 3, 4, 5)
    assert layout.x_range == (-0.5, 5.5)
    assert "values reach" not in layout.note
    assert lay_out_shape(explained(), INCOME).ticks == ()


def shape_of(knots: Array, values: Array, *, has_rows: bool = True) -> ShapeLayout:
    """Return the layout of a whole number that has these knots and these values."""
    model = make_model(np.random.default_rng(0), features=(Number("x", knots, integral=True),))
    model = with_statistics(model, {"x": values})
    return lay_out_shape(model.explain_global({"x": values} if has_rows else None), "x", output=0)


@pytest.mark.parametrize("has_rows", [False, True])
def test_values_up_to_the_days_of_a_month_have_one_bar_each(has_rows: bool) -> None:
    days = np.arange(1.0, 32.0)
    layout = shape_of(days, np.repeat(days, 2), has_rows=has_rows)
    assert layout.is_few
    assert [(bar.left + bar.right) / 2 for bar in layout.density] == pytest.approx(days)
    assert {round(bar.height, 6) for bar in layout.density} == {1}
    assert {round(bar.right - bar.left, 6) for bar in layout.density} == {0.8}


def test_a_flag_is_two_values_and_no_slope() -> None:
    layout = shape_of(np.array([0.0, 1.0]), np.array([0.0, 0, 0, 1]))
    assert not layout.is_number
    assert [(level.label, level.share) for level in layout.levels] == [("0", 0.75), ("1", 0.25)]
    assert layout.dots_at.tolist() == [0, 0, 0, 1]


def test_knots_of_a_number_with_more_values_are_not_its_values() -> None:
    layout = shape_of(np.arange(0.0, 60.0, 6.0), np.arange(55.0))
    assert not layout.is_few
    assert len(layout.density) == 40


def test_values_too_near_each_other_to_be_written_leave_the_ticks_to_the_backend() -> None:
    ages = np.array([1.0, 3, 7, 14, 28, 90, 365])
    layout = shape_of(ages, ages)
    assert layout.is_few
    assert layout.ticks == ()


def test_forty_levels_are_shown_and_rarer_ones_hidden_on_request() -> None:
    every = lay_out_shape(explained(), FORTY)
    assert not every.is_number
    assert len(every.levels) == 42  # missing and unseen
    assert [level.role for level in every.levels[-2:]] == ["missing", "unseen"]
    assert every.hidden == 0
    few = lay_out_shape(explained(), FORTY, max_levels=5)
    assert len(few.levels) == 7
    assert few.hidden == 35
    assert "35 rare ones hidden" in few.note
    assert {level.label for level in few.levels[:5]} <= {level.label for level in every.levels}
    assert min(level.share for level in few.levels[:5]) >= sorted(level.share for level in every.levels[:40])[-5]


def test_dots_stand_where_their_values_are() -> None:
    explanation = global_of()
    number = lay_out_shape(explanation, INCOME)
    assert len(number.dots) == 396  # four are missing
    assert np.isfinite(number.dots_at).all()
    boolean = lay_out_shape(explanation, NEW)
    assert set(boolean.dots_at) == {0.0, 1.0}
    few = lay_out_shape(explanation, FORTY, max_levels=5)
    assert set(few.dots_at) <= set(range(7))
    shape = explanation.feature(FORTY)
    assert shape.dots_at is not None
    label = few.levels[2].label
    assert (few.dots_at == 2).sum() == (shape.dots_at == shape.labels.index(label)).sum()
    assert len(lay_out_shape(explained(), INCOME).dots) == 0


def test_the_range_of_effects_holds_everything_shown() -> None:
    for name in NAMES:
        layout = lay_out_shape(global_of(), name)
        inside = (layout.x >= layout.x_range[0]) & (layout.x <= layout.x_range[1])
        ends = [*layout.lower[inside], *layout.upper[inside], *(level.upper for level in layout.levels)]
        assert layout.y_range[0] < min(ends)
        assert layout.y_range[1] > max(ends)


def test_a_page_goes_from_the_most_important_on_one_scale() -> None:
    layouts = lay_out_shapes(explained())
    assert [layout.title for layout in layouts] == [shape.name for shape in explained().ranked(0)]
    assert len({layout.y_range for layout in layouts}) == 1
    apart = lay_out_shapes(explained(), share_scale=False, features=(ROOMS, NEW))
    assert [layout.title for layout in apart] == [ROOMS, NEW]
    assert apart[0].y_range != apart[1].y_range


def test_classes_must_be_chosen_and_are_named() -> None:
    with pytest.raises(UserError, match=r"This explanation has 3 outputs .*; pass output= one of them\."):
        lay_out_shape(explained(3), ROOMS)
    with pytest.raises(UserError, match=r"No output is called 'class 4'\. Did you mean"):
        lay_out_shape(explained(3), ROOMS, output="class 4")
    with pytest.raises(UserError, match=r"An output's position must be in \[0, 2\]; got 3\."):
        lay_out_shape(explained(3), ROOMS, output=3)
    layout = lay_out_shape(explained(3), ROOMS, output="class 1")
    np.testing.assert_array_equal(layout.mean, explained(3).feature(ROOMS).mean[:-2, 1])
    assert layout.effect_label == "effect on score of class class 1"
    assert lay_out_shape(explained(2), ROOMS, output=1).effect_label == "effect on down"


@pytest.mark.parametrize(
    ("link", "label"),
    [("logit", "log-odds of score"), ("log", "log of the prediction"), ("identity", "prediction")],
)
def test_the_label_says_what_a_contribution_adds_to(link: str, label: str) -> None:
    assert lay_out_shape(replace(explained(), link=link), ROOMS).effect_label == f"effect on {label}"


def test_importance_is_split_by_additivity() -> None:
    layout = lay_out_importance(explained())
    assert [bar.name for bar in layout.bars] == [shape.name for shape in explained().ranked()]
    for bar in layout.bars:
        shape = explained().feature(bar.name)
        assert bar.importance == pytest.approx(shape.importance[0])
        assert bar.own == pytest.approx(shape.importance[0] * shape.additivity[0])
        assert shape.stability is not None
        assert bar.stability == pytest.approx(shape.stability[0])
    assert layout.rest == (0, 0.0)
    assert layout.note.startswith(f"weighted additivity {explained().additivity_weighted:.2f}")
    few = lay_out_importance(explained(), max_features=2)
    assert few.rest == (3, layout.bars[2].importance)


def test_the_importance_of_classes_is_over_all_of_them_or_one() -> None:
    every = {bar.name: bar for bar in lay_out_importance(explained(3)).bars}
    one = {bar.name: bar for bar in lay_out_importance(explained(3), output="class 2").bars}
    shape = explained(3).feature(ROOMS)
    assert every[ROOMS].importance == pytest.approx(np.sqrt(np.mean(shape.importance**2)))
    assert one[ROOMS].importance == pytest.approx(shape.importance[2])
    assert one[ROOMS].additivity == pytest.approx(shape.additivity[2])


def test_a_waterfall_leads_from_the_intercept_to_the_score() -> None:
    local = local_of()
    layout = lay_out_waterfall(local, 2)
    assert layout.steps[0].start == layout.base == local.intercept[0]
    assert layout.steps[-1].end == pytest.approx(local.score[2, 0])
    for one, two in zip(layout.steps, layout.steps[1:], strict=False):
        assert one.end == pytest.approx(two.start)
    sizes = [abs(step.end - step.start) for step in layout.steps]
    assert sizes == sorted(sizes, reverse=True)
    for step in layout.steps:
        assert step.lower <= step.end + 1e-12
        assert step.end <= step.upper + 1e-12
        assert layout.x_range[0] < step.lower
        assert step.upper < layout.x_range[1]
    assert layout.title.endswith("actual: 2")
    assert "stability of the attributions shown" in layout.note


def test_a_step_says_own_effect_context_and_cause() -> None:
    local = local_of()
    layout = lay_out_waterfall(local, 0)
    step = layout.steps[0]
    i = int(np.argmax(np.abs(local.values[0, :, 0])))
    assert step.label.startswith(local.feature_names[i])
    assert step.own_end - step.start == pytest.approx(local.own[0, i, 0])
    shift = local.values[0, i, 0] - local.own[0, i, 0]
    most = int(np.argmax(local.parts[0, i, 0] * np.sign(shift)))
    assert step.cause.startswith(local.feature_names[int(local.causes[0, i, 0, most])])
    assert float(step.contribution.replace("−", "-")) == pytest.approx(local.values[0, i, 0], abs=0.006)


def test_a_cause_too_small_to_be_written_is_none() -> None:
    local = local_of()
    small = replace(local, parts=np.full_like(local.parts, 0.0049))
    assert [step.cause for step in lay_out_waterfall(small, 0).steps] == [""] * 5
    shift = (local.values - local.own)[..., None]
    seen = replace(local, parts=np.broadcast_to(0.006 * np.sign(shift), local.parts.shape))
    moved = [step for step in lay_out_waterfall(seen, 0).steps if step.shift not in ("0.00", "−0.00")]
    assert moved
    assert all(step.cause for step in moved)


def test_a_shift_is_not_put_down_to_what_worked_against_it() -> None:
    local = local_of()
    i = int(np.argmax(np.abs(local.values[0, :, 0] - local.own[0, :, 0])))
    sign = np.sign(local.values[0, i, 0] - local.own[0, i, 0])
    parts = np.zeros_like(local.parts)
    parts[0, i, 0, :3] = -2.0 * sign, 1.0 * sign, 0.5 * sign  # the largest part is against it
    named = {step.label.split(" = ")[0]: step for step in lay_out_waterfall(replace(local, parts=parts), 0).steps}
    second = local.feature_names[int(local.causes[0, i, 0, 1])]
    assert named[local.feature_names[i]].cause == f"{second} {'+' if sign > 0 else '−'}1.00"


@pytest.mark.parametrize("shift", [1.0, -1.0, -3.0])
def test_own_effect_and_context_are_whole_bars_in_lanes_of_their_own(shift: float) -> None:
    layout = lay_out_waterfall(local_of(), 0)
    step = replace(layout.steps[0], start=0.0, own_end=2.0, end=2.0 + shift)
    own, context = layout.parts(step)
    assert (own.start, own.end, own.is_context) == (0.0, 2.0, False)
    assert (context.start, context.end, context.is_context) == (2.0, 2.0 + shift, True)
    assert own.middle + own.height / 2 < context.middle - context.height / 2  # neither hides the other
    assert context.middle + context.height / 2 < 0.5 < 1 + own.middle - own.height / 2  # nor the next step


def test_an_additive_model_has_one_lane_and_no_bounds() -> None:
    layout = lay_out_waterfall(model_of(n_experts=1).explain_local(rows_of().take(np.arange(10))), 0)
    assert (layout.has_context, layout.has_bounds) == (False, False)
    [part] = layout.parts(layout.steps[0])
    assert (part.start, part.end, part.middle) == (layout.steps[0].start, layout.steps[0].end, 0.0)
    usual = lay_out_waterfall(local_of(), 0)
    assert (usual.has_context, usual.has_bounds) == (True, True)


def test_the_weakest_features_of_a_row_are_summed() -> None:
    local = local_of()
    layout = lay_out_waterfall(local, 1, max_features=3)
    assert len(layout.steps) == 3
    assert layout.steps[-1].label == "3 other features"
    assert layout.steps[-1].is_rest
    assert layout.steps[-1].end == pytest.approx(local.score[1, 0])


def test_missing_values_and_booleans_are_written_out() -> None:
    labels = {step.label for step in lay_out_waterfall(local_of(), 6).steps}
    assert f"{INCOME} = missing" in labels
    assert {f"{NEW} = True", f"{NEW} = False"} & labels


def test_of_several_classes_the_predicted_one_is_shown() -> None:
    local = local_of(3)
    best = int(local.score[0].argmax())
    assert lay_out_waterfall(local, 0).label == f"score of class class {best}"
    assert lay_out_waterfall(local, 0).title.startswith(f"probability of class {best}: ")
    assert lay_out_waterfall(local, 0, output=1).label == "score of class class 1"
    with pytest.raises(UserError, match=r"row must be in \[0, 9\]; got 10\."):
        lay_out_waterfall(local, 10)


def test_a_map_holds_the_total_effect_and_grey_where_no_rows_lie() -> None:
    found = interaction_of(INCOME, FORTY, has_rows=True)
    layout = lay_out_map(found, unit="USD")
    np.testing.assert_array_equal(without_gap(layout.values), found.total[..., 0].T)
    assert found.support is not None
    np.testing.assert_array_equal(without_gap(layout.has_data), found.support.T > 0)
    assert not layout.has_data.all()
    assert layout.limit == np.abs(layout.values[layout.has_data]).max()
    assert layout.label == "effect on prediction (USD)"
    pure = lay_out_map(found, effect="pure")
    np.testing.assert_array_equal(without_gap(pure.values), found.pure[..., 0].T)
    assert without_gap(lay_out_map(interaction_of(INCOME, FORTY)).has_data).all()


def without_gap(values: Any) -> Any:
    """Return a map without the empty column before *missing*."""
    return np.delete(values, -2, axis=1)


def test_missing_stands_apart_from_the_numbers_of_a_map() -> None:
    found = interaction_of(INCOME, FORTY)
    side = lay_out_map(found).x
    n_numbers = len(found.axes[0].numbers) - 1
    assert found.axes[0].labels[-1] == "missing"
    assert side.is_number
    np.testing.assert_array_equal(side.centres[:n_numbers], found.axes[0].numbers[:-1])
    assert (np.diff(side.edges) > 0).all()
    assert len(side.edges) == len(side.centres) + 1 == len(side.ticks) + 1 == n_numbers + 3
    *marks, (place, word) = side.marks
    assert (place, word) == (side.centres[-1], "missing")
    assert side.ticks[-2:] == ("", "missing")
    assert all(side.edges[0] <= at < side.centres[-1] for at, _ in marks)
    assert len(marks) >= 2
    assert not lay_out_map(found).has_data[:, -2].any()  # nothing joins it to the numbers


def test_lines_do_not_run_on_to_missing() -> None:
    layout = lay_out_map(interaction_of(INCOME, NEW))
    assert layout.is_lines
    assert layout.x.has_gap
    assert layout.has_data[:, [-3, -1]].all()
    assert not layout.has_data[:, -2].any()


def test_missing_as_a_line_of_its_own_needs_no_gap() -> None:
    layout = lay_out_map(model_of().explain_interaction(ROOMS, INCOME, resolution=5), kind="lines")
    assert layout.x.label == ROOMS
    assert not layout.y.has_gap
    assert layout.y.ticks[-1] == "missing"
    assert len(layout.values) == len(layout.y.ticks) == 6


def test_cells_of_a_map_touch_and_surround_their_values() -> None:
    layout = lay_out_map(interaction_of(ROOMS, FORTY), kind="map")
    np.testing.assert_allclose(layout.x.edges, [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
    assert layout.x.is_number
    assert not layout.y.is_number
    assert len(layout.y.edges) == len(layout.y.ticks) + 1


def test_a_feature_of_few_values_makes_lines_along_the_other() -> None:
    layout = lay_out_map(interaction_of(NEW, ROOMS))
    assert layout.is_lines
    assert layout.x.label == ROOMS  # lines run along the number
    assert layout.y.ticks == ("False", "True")
    np.testing.assert_array_equal(layout.values, interaction_of(NEW, ROOMS).total[..., 0])
    assert not lay_out_map(interaction_of(NEW, ROOMS), kind="map").is_lines


def test_panels_share_one_scale_and_name_their_value() -> None:
    found = interaction_of(INCOME, FORTY, ROOMS, has_rows=True)
    layouts = lay_out_panels(found)
    assert [layout.title for layout in layouts] == ["rooms = 0", "rooms = 1", "rooms = 3", "rooms = 4", "rooms = 5"]
    assert len({layout.limit for layout in layouts}) == 1
    np.testing.assert_array_equal(without_gap(layouts[1].values), found.total[:, :, 1, 0].T)


def test_the_wrong_number_of_features_is_said() -> None:
    with pytest.raises(UserError, match="A pair map takes two features"):
        lay_out_map(interaction_of(INCOME, ROOMS, NEW))
    with pytest.raises(UserError, match="Panels take three features"):
        lay_out_panels(interaction_of(INCOME, ROOMS))
    with pytest.raises(ConfigError, match="kind must be 'auto', 'map' or 'lines'; got 'bars'"):
        lay_out_map(interaction_of(INCOME, ROOMS), kind="bars")
    with pytest.raises(ConfigError, match="effect must be 'total' or 'pure'; got 'half'"):
        lay_out_map(interaction_of(INCOME, ROOMS), effect="half")


def test_the_matrix_keeps_the_strongest_features_in_their_order() -> None:
    matrix = strength_of().matrix()
    every = lay_out_matrix(strength_of())
    np.testing.assert_array_equal(every.values, matrix)
    assert every.names == NAMES
    few = lay_out_matrix(strength_of(), max_features=2, unit="USD")
    assert few.hidden == 3
    assert few.label == "typical change of the contribution (USD)"
    part = (matrix**2).sum(axis=0) + (matrix**2).sum(axis=1)
    assert set(few.names) == {NAMES[i] for i in np.argsort(-part)[:2]}


def test_a_frontier_sorts_its_points_by_series_and_additivity() -> None:
    other = SimpleNamespace(additivity=0.7, score=0.44, target=0.75, is_chosen=True)
    points = [FrontierPoint(0.9, 0.5, series="dial"), FrontierPoint(0.4, 0.43, series="dial"), other]
    layout = lay_out_frontier(points, score_label="RMSE")
    assert [name for name, _ in layout.series] == ["dial", ""]
    assert [point.additivity for point in layout.series[0][1]] == [0.4, 0.9]
    assert layout.series[1][1][0] == FrontierPoint(0.7, 0.44, label="asked for 0.75", is_chosen=True)
    assert layout.note.startswith("lower is better")
    path = [SimpleNamespace(additivity=0.5, validation=0.2, standard_error=0.01, target=None, is_chosen=False)]
    found = lay_out_frontier(path)
    assert found.y_label == "validation loss"
    assert (layout.x_label, found.x_label) == ("additivity", "additivity, mean over features")
    assert lay_out_frontier(points, additivity_label="weighted additivity").x_label == "weighted additivity"
    assert found.series[0][1][0] == FrontierPoint(0.5, 0.2, 0.01, "flexible")
    with pytest.raises(UserError, match="A frontier needs at least one point"):
        lay_out_frontier([])


def test_training_curves_come_from_a_history_or_its_dictionary() -> None:
    epochs = [Epoch(1, 2.0, 1.5, None, 0.5), Epoch(2, 1.0, None, 0.8, 0.75)]
    history = History(epochs, best_epoch=1, stopped="ran all epochs")
    for source in (history, history.to_dict()):
        layout = lay_out_training(source)
        assert layout.loss.tolist() == [2.0, 1.0]
        np.testing.assert_array_equal(layout.validation, [1.5, np.nan])
        np.testing.assert_array_equal(layout.additivity, [np.nan, 0.8])
        assert layout.note == "ran all epochs · best epoch 1 of 2 · 0.75 s"
    with pytest.raises(UserError, match="Training curves need at least one epoch"):
        lay_out_training(History())


def test_two_models_are_compared_on_what_they_share() -> None:
    one = explained()
    two = replace(one, features=tuple(reversed(one.features[:3])))
    layouts = lay_out_compare(one, two, names=("old", "new"))
    assert {layout.first.title for layout in layouts} == set(NAMES[:3])
    assert len({layout.y_range for layout in layouts}) == 1
    for layout in layouts:
        np.testing.assert_array_equal(layout.first.mean, layout.second.mean)
        assert layout.importances[0] == layout.importances[1]
    with pytest.raises(UserError, match="these share none"):
        lay_out_compare(one, replace(one, features=()))
    with pytest.raises(UserError, match="compared on the same outputs"):
        lay_out_compare(one, explained(3), output=0)


def test_the_example_rows_are_what_the_tests_assume() -> None:
    assert model_of().statistics is not None
    assert len(local_of()) == 10
