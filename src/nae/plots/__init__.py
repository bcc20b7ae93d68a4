"""Pictures of explanations, drawn by matplotlib (the default) or plotly from the same numbers.

Every function takes an explanation, never a model. It takes and returns ``ax``, or returns a figure if there are
several panels, and shows nothing by itself. With ``backend='plotly'``, every function returns a plotly figure.
"""

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from nae._optional import require
from nae.errors import ConfigError, UserError
from nae.explanation.interaction import InteractionExplanation
from nae.explanation.local import LocalExplanation
from nae.explanation.shapes import GlobalExplanation
from nae.explanation.strength import InteractionStrength
from nae.plots.layouts.bars import lay_out_importance, lay_out_waterfall
from nae.plots.layouts.lines import FrontierPoint, lay_out_compare, lay_out_frontier, lay_out_training
from nae.plots.layouts.maps import lay_out_map, lay_out_matrix, lay_out_panels
from nae.plots.layouts.reliability import lay_out_reliability
from nae.plots.layouts.shape import lay_out_shape, lay_out_shapes
from nae.quality import Reliability

__all__ = [
    "FrontierPoint",
    "compare",
    "frontier",
    "importance",
    "interaction_matrix",
    "pair",
    "reliability",
    "shape",
    "shapes",
    "three_way",
    "training",
    "waterfall",
]


_EXTRAS = {"matplotlib": "plots", "plotly": "plotly"}  # the extra that installs each backend


def shape(
    explanation: GlobalExplanation,
    feature: str,
    *,
    output: str | int | None = None,
    unit: str | None = None,
    max_levels: int = 40,
    ax: Any = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw the effect of one feature: mean, guaranteed band, actual contributions, density, missing and unseen.

    Parameters
    ----------
    explanation
        The result of ``explain_global()``. If rows were given there, their contributions are drawn as dots.
    feature
        The name of the feature.
    output
        The class or target to draw if there are several, by name or position.
    unit
        The unit of the target, for the label.
    max_levels
        The largest number of levels of a category to show. The rarest levels are left out.
    ax
        The axes to draw on. If None, new axes are created.
    backend
        'matplotlib' or 'plotly'.
    """
    _check(explanation, GlobalExplanation, "explain_global()")
    layout = lay_out_shape(explanation, feature, output=output, unit=unit, max_levels=max_levels)
    return _draw("shape", "draw_shape", backend, layout, ax=ax)


def shapes(
    explanation: GlobalExplanation,
    *,
    features: Sequence[str] | None = None,
    output: str | int | None = None,
    unit: str | None = None,
    max_levels: int = 12,
    share_scale: bool = True,
    n_columns: int = 3,
    title: str = "",
    figure: Any = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw a page of features, the most important first, on one scale unless ``share_scale=False``."""
    _check(explanation, GlobalExplanation, "explain_global()")
    names = None if features is None else tuple(features)
    layouts = lay_out_shapes(
        explanation, features=names, output=output, unit=unit, max_levels=max_levels, share_scale=share_scale
    )
    return _draw("shape", "draw_shapes", backend, layouts, figure=figure, title=title, n_columns=n_columns)


def importance(
    explanation: GlobalExplanation,
    *,
    output: str | int | None = None,
    unit: str | None = None,
    max_features: int = 20,
    title: str = "Importance",
    ax: Any = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw how much every feature's contribution varies, and how much of that its own value explains."""
    _check(explanation, GlobalExplanation, "explain_global()")
    layout = lay_out_importance(explanation, output=output, unit=unit, max_features=max_features)
    return _draw("bars", "draw_importance", backend, layout, ax=ax, title=title)


def waterfall(
    explanation: LocalExplanation,
    row: int = 0,
    *,
    output: str | int | None = None,
    unit: str | None = None,
    max_features: int = 10,
    ax: Any = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw one row from intercept to score: every contribution with its bounds, own effect and context."""
    _check(explanation, LocalExplanation, "explain_local(X)")
    layout = lay_out_waterfall(explanation, row, output=output, unit=unit, max_features=max_features)
    return _draw("bars", "draw_waterfall", backend, layout, ax=ax)


def pair(
    explanation: InteractionExplanation,
    *,
    output: str | int | None = None,
    unit: str | None = None,
    effect: str = "total",
    kind: str = "auto",
    ax: Any = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw what two features do together.

    Parameters
    ----------
    explanation
        The result of ``explain_interaction(first, second)``. If rows were given there, places without rows are grey.
    output, unit
        As in :func:`shape`.
    effect
        'total' draws the sum of both contributions, 'pure' the interaction without the effect of each feature alone.
    kind
        'map', 'lines' (one line per value of the feature with few values), or 'auto'.
    ax, backend
        As in :func:`shape`.
    """
    _check(explanation, InteractionExplanation, "explain_interaction(first, second)")
    layout = lay_out_map(explanation, output=output, unit=unit, effect=effect, kind=kind)
    return _draw("maps", "draw_map", backend, layout, ax=ax)


def three_way(
    explanation: InteractionExplanation,
    *,
    output: str | int | None = None,
    unit: str | None = None,
    effect: str = "total",
    n_columns: int = 3,
    title: str = "",
    figure: Any = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw what three features do together: one map of the first two per value of the third."""
    _check(explanation, InteractionExplanation, "explain_interaction(first, second, third)")
    layouts = lay_out_panels(explanation, output=output, unit=unit, effect=effect)
    return _draw("maps", "draw_panels", backend, layouts, figure=figure, title=title, n_columns=n_columns)


def interaction_matrix(
    strength: InteractionStrength,
    *,
    output: str | None = None,
    unit: str | None = None,
    max_features: int = 20,
    ax: Any = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw which features change each other's effect, from ``interaction_strength()``."""
    _check(strength, InteractionStrength, "interaction_strength()")
    layout = lay_out_matrix(strength, output=output, unit=unit, max_features=max_features)
    return _draw("maps", "draw_matrix", backend, layout, ax=ax)


def reliability(found: Reliability, *, title: str = "Reliability", ax: Any = None, backend: str = "matplotlib") -> Any:
    """Draw how often a class happens among rows with similar probabilities of it, from ``nae.quality.reliability``."""
    if not isinstance(found, Reliability):
        given = type(found).__name__
        raise UserError(f"This picture takes Reliability; got {given}. Use nae.quality.reliability(model, X, y).")
    return _draw("reliability", "draw_reliability", backend, lay_out_reliability(found), ax=ax, title=title)


def frontier(
    points: Iterable[Any],
    *,
    score_label: str | None = None,
    additivity_label: str | None = None,
    is_lower_better: bool = True,
    title: str = "Score against additivity",
    ax: Any = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw what additivity costs: an estimator's ``additivity_path_``, or :class:`FrontierPoint` objects."""
    layout = lay_out_frontier(
        points, score_label=score_label, additivity_label=additivity_label, is_lower_better=is_lower_better
    )
    return _draw("lines", "draw_frontier", backend, layout, ax=ax, title=title)


def training(history: Any, *, title: str = "Training", ax: Any = None, backend: str = "matplotlib") -> Any:
    """Draw a training history: ``model.history_``, or its ``to_dict()``."""
    return _draw("lines", "draw_training", backend, lay_out_training(history), ax=ax, title=title)


def compare(
    first: GlobalExplanation,
    second: GlobalExplanation,
    *,
    features: Sequence[str] | None = None,
    output: str | int | None = None,
    unit: str | None = None,
    names: tuple[str, str] = ("first", "second"),
    n_columns: int = 3,
    figure: Any = None,
    backend: str = "matplotlib",
) -> Any:
    """Draw the effects of two models over each other, feature by feature."""
    for explanation in (first, second):
        _check(explanation, GlobalExplanation, "explain_global()")
    layouts = lay_out_compare(first, second, features=features, output=output, unit=unit, names=names)
    return _draw("shape", "draw_compare", backend, layouts, figure=figure, n_columns=n_columns)


def _check(given: Any, kind: type, source: str) -> None:
    """Check the type of the explanation; passing a model is the most likely mistake."""
    if not isinstance(given, kind):
        raise UserError(f"This picture takes {kind.__name__}; got {type(given).__name__}. Use the model's {source}.")


def _draw(module: str, function: str, backend: str, layout: Any, **options: Any) -> Any:
    """Draw a layout with one of the two backends; plotly makes its own figures."""
    if backend not in _EXTRAS:
        raise ConfigError(f"backend must be 'matplotlib' or 'plotly'; got {backend!r}.")
    require(backend, extra=_EXTRAS[backend])
    if backend == "plotly":
        given = [name for name in ("ax", "figure") if options.pop(name, None) is not None]
        if given:
            raise ConfigError(f"plotly makes a figure of its own; leave out {given[0]}=.")
    return getattr(import_module(f"nae.plots.{backend}.{module}"), function)(layout, **options)
