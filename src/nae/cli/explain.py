"""``nae explain``: explain the whole model, one feature, one row or a pair, as text or JSON."""

import math
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from nae.cli.beside import find_beside, note_offset
from nae.cli.columns import align, match_name
from nae.cli.console import digits, make_table, out
from nae.cli.options import Json, ModelFile, OffsetColumns, load_model
from nae.cli.reading import read_file
from nae.cli.reasons import (
    Against,
    AsText,
    NReasons,
    ReasonsAsked,
    ReasonsFile,
    Reference,
    Tolerance,
    Toward,
    reasons_table,
)
from nae.cli.recourse import (
    ChangesOption,
    CostOption,
    DecreasingOption,
    FixedOption,
    IncreasingOption,
    LikeOption,
    RecourseOption,
    Wanted,
)
from nae.decisions import Reasons
from nae.errors import ConfigError, DataError, did_you_mean
from nae.explanation import InteractionExplanation, LocalExplanation
from nae.explanation.local import in_points
from nae.explanation.serial import Serial
from nae.explanation.shapes import NOISE
from nae.tables import TableModel

__all__ = ["explain", "global_table"]

_PAIR_STEPS = 6  # values of a number in a printed map
_MOST_VALUES = 24  # values of a feature in a printed table


def explain(
    model: ModelFile,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[DATA]", help="The table of --row, --reasons or --recourse; - reads stdin.", show_default=False
        ),
    ] = None,
    *,
    row: Annotated[int | None, typer.Option(help="Explain one row of DATA, counted from 1.")] = None,
    feature: Annotated[str | None, typer.Option(help="Show what one feature does, value by value.")] = None,
    pair: Annotated[
        tuple[str, str] | None, typer.Option(help="Show what two features do together.", show_default=False)
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--class", help="The class or target to explain."),
    ] = None,
    unit: Annotated[
        str, typer.Option(help="The unit of --row and --reasons: score, probability or response.")
    ] = "score",
    recourse: RecourseOption = None,
    fixed: FixedOption = None,
    increasing: IncreasingOption = None,
    decreasing: DecreasingOption = None,
    cost: CostOption = None,
    changes: ChangesOption = 3,
    like: LikeOption = None,
    n_reasons: NReasons = None,
    toward: Toward = None,
    against: Against = None,
    reference: Reference = "mean",
    tolerance: Tolerance = None,
    reasons_file: ReasonsFile = None,
    as_text: AsText = False,
    offset: OffsetColumns = None,
    as_json: Json = False,
) -> None:
    """Explain a model: all features, one --feature, one --row or a --pair; or give --reasons, or what must change."""
    if recourse is not None:
        wanted = Wanted(recourse, fixed, increasing, decreasing, cost, like, changes, output)
        wanted.show(model, data, row=row, offset=offset, as_json=as_json)
        return
    asked = ReasonsAsked(
        n_reasons, toward, against, output, reference, tuple(tolerance or ()), reasons_file, unit, as_text
    )
    is_wanted = asked.is_wanted(has_rows=data is not None, is_for_rows=feature is None and pair is None, row=row)
    if is_wanted and data is not None:
        _print_reasons(asked.of(load_model(model), data, row, offset), as_json=as_json, as_text=as_text)
        return
    if sum(given is not None for given in (row, feature, pair)) > 1:
        raise ConfigError("--row, --feature and --pair cannot be combined; give one of them.")
    if (row is None) != (data is None):
        raise ConfigError(
            "--row needs a table, and a table needs --row or --reasons: nae explain m.nae data.csv --row 1."
        )
    if offset and row is None:
        raise ConfigError("--offset is for one row; give --row and a table, or leave it out.")
    tables, at = _choose_output(load_model(model), output)
    found: Serial
    if row is not None and data is not None:
        found = _explain_row(tables, data, row, offset, unit)
        shown = [_row_table(found, at, row)]
    elif pair is not None:
        names = [match_name(name, tables.feature_names) or name for name in pair]
        found = tables.explain_interaction(*names, resolution=48 if as_json else _PAIR_STEPS)
        shown = [_pair_table(found, at)]
    else:
        found = tables.explain_global()
        shown = [_feature_table(tables, feature, at)] if feature is not None else [global_table(tables, at)]
        if feature is None and tables.n_features > 1:
            shown.append(_strength_table(tables))
    console = out()
    if as_json:
        console.print(found.to_json(), soft_wrap=True)
    else:
        console.print(*shown, sep="\n")


def _print_reasons(found: Reasons, *, as_json: bool, as_text: bool) -> None:
    if as_json:
        out().print(found.to_json(), soft_wrap=True)
    elif as_text:
        out().print(found.text, soft_wrap=True)
    else:
        out().print(reasons_table(found))


def _choose_output(model: TableModel, name: str | None) -> tuple[TableModel, int]:
    """Return the model that speaks for a class or target, and the position of that output."""
    if name is None:
        return model, 0
    if len(model.classes) == 2:
        return model.for_class(name), 0
    if name not in model.outputs:
        raise ConfigError(f"This model does not explain {name!r}.{did_you_mean(name, model.outputs)}")
    return model, model.outputs.index(name)


def global_table(model: TableModel, output: int = 0) -> Table:
    """Return a table of all features, the most important first."""
    explanation = model.explain_global()
    ranked = explanation.ranked(output)
    table = make_table(
        f"What matters{_for(model, output)}",
        "feature",
        "kind",
        "importance",
        "",
        "additivity",
        "context",
        "raises by at most",
        "lowers by at most",
    )
    table.columns[3].justify = "left"
    largest = max(float(ranked[0].importance[output]), 1e-300)
    for shape in ranked:
        importance = float(shape.importance[output])
        table.add_row(
            shape.name,
            shape.kind,
            digits(importance),
            "█" * round(12 * importance / largest),
            f"{shape.additivity[output]:.2f}",
            f"{shape.interaction_share[output]:.3f}",
            _rounded_up(float(shape.upper[:, output].max())),
            _rounded_up(-float(shape.lower[:, output].min())),
        )
    table.caption = (
        f"all: weighted additivity {explanation.additivity_weighted:.2f}, "
        f"interaction share {explanation.interaction_share:.2f}, cancellation {explanation.cancellation:.2f}"
    )
    if noise := [shape.name for shape in ranked if shape.is_noise]:
        table.caption += f"\n{NOISE}: {', '.join(noise)}"
    return table


def _for(model: TableModel, output: int) -> str:
    return f" for {model.outputs[output]}" if model.classes or model.n_outputs > 1 else ""


def _strength_table(model: TableModel) -> Table:
    table = make_table("Which features change each other's effect", "pair", "strength", "share of the score")
    for pair in model.top_interactions(8):
        table.add_row(f"{pair.first} × {pair.second}", digits(pair.strength), f"{100 * pair.relative:.1f} %")
    return table


def _feature_table(model: TableModel, name: str, output: int) -> Table:
    shape = model.explain_global().feature(match_name(name, model.feature_names) or name)
    headers = ["value", "rows", "mean effect", "least", "most"]
    band = [end for end in (shape.effect_lower, shape.effect_upper) if end is not None]
    headers += ["90 % sure: from", "to"] if band else []
    table = make_table(f"What {shape.name} does{_for(model, output)}", *headers)
    steps = np.arange(len(shape.labels))
    n_values = len(steps) - 2
    if shape.is_number and n_values > _MOST_VALUES:
        steps = np.concatenate([np.linspace(0, n_values - 1, _MOST_VALUES).round().astype(int), steps[-2:]])
    for at in steps:
        table.add_row(
            shape.labels[at],
            f"{100 * shape.weight[at]:.1f} %",
            digits(shape.mean[at, output], signed=True),
            digits(shape.lower[at, output], signed=True),
            digits(shape.upper[at, output], signed=True),
            *("" if np.isnan(end[at, output]) else digits(end[at, output], signed=True) for end in band),
        )
    return table


def _explain_row(model: TableModel, data: str, row: int, offset: list[str] | None, unit: str) -> LocalExplanation:
    table = read_file(data)
    if not 1 <= row <= table.num_rows:
        raise DataError(f"--row must be in [1, {table.num_rows}]; got {row}.")
    one = table.slice(row - 1, 1)
    base = find_beside(table, offset, None).offset_of(one)
    if base is None:
        note_offset(model)
    return model.explain_local(align(table, model.schema).slice(row - 1, 1), offset=base, n_causes=3, unit=unit)


def _row_table(explanation: LocalExplanation, output: int, row: int) -> Table:
    names, what = explanation.feature_names, explanation.outputs[output]
    explanation = in_points(explanation)
    is_points = explanation.unit == "probability"
    title = f"Row {row}{f', in percentage points for {what}' if is_points else ''}"
    table = make_table(title, "feature", "value", "contribution", "least", "most", "own value", "context", "by")
    table.columns[-1].justify = "left"
    values = explanation.values[0, :, output]
    for i in np.argsort(-np.abs(values), kind="stable"):
        causes = explanation.causes[0, i, output]
        parts = explanation.parts[0, i, output]
        table.add_row(
            names[i],
            _shown(explanation.columns[i][0]),
            digits(values[i], signed=True),
            digits(explanation.lower[0, i, output], signed=True),
            digits(explanation.upper[0, i, output], signed=True),
            digits(explanation.own[0, i, output], signed=True),
            digits(explanation.shift[0, i, output], signed=True),
            ", ".join(
                f"{names[cause]} {digits(part, 3, signed=True)}"
                for cause, part in zip(causes, parts, strict=True)
                if part
            ),
        )
    score = float(explanation.score[0, output])
    offset = "" if explanation.offset is None else f" + offset {digits(explanation.offset[0, output])}"
    base = f"{explanation.base_name} {digits(explanation.intercept[output])}{offset} + contributions"
    prediction = f"prediction {digits(float(np.ravel(explanation.prediction[0])[output]) * (100 if is_points else 1))}"
    is_score = explanation.unit == "score"
    table.caption = f"{base} = " + (f"score {digits(score)} of {what}; {prediction}" if is_score else prediction)
    return table


def _pair_table(explanation: InteractionExplanation, output: int) -> Table:
    first, second = explanation.axes
    table = make_table(f"What {first.name} (down) and {second.name} (across) do together", first.name, *second.labels)
    for label, line in zip(first.labels, explanation.total[..., output], strict=True):
        table.add_row(label, *(digits(value, 3, signed=True) for value in line))
    table.caption = explanation.note
    return table


def _rounded_up(value: float) -> str:
    """Return a limit rounded outwards to four digits, so that it holds. It is 0 if the effect has the other sign."""
    if value <= 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(value)) - 3)
    return digits(math.ceil(value / step) * step)


def _shown(value: object) -> str:
    if value is None or value != value:  # noqa: PLR0124
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
