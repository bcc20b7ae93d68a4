"""Convert contributions to a ``shap.Explanation``, for shap's plots."""

from typing import TYPE_CHECKING, Any

import numpy as np

from nae._optional import require
from nae._typing import AnyArray
from nae.encoding.columns import is_missing
from nae.explanation.outputs import pick_output

if TYPE_CHECKING:
    from nae.explanation.local import LocalExplanation

__all__ = ["to_shap"]


def to_shap(explanation: "LocalExplanation", output: str | int | None = None) -> Any:
    """Return a ``shap.Explanation`` of the model's own contributions; see :meth:`LocalExplanation.to_shap`."""
    shap = require("shap")
    picked: Any = slice(None) if len(explanation.outputs) > 1 else 0
    if output is not None:
        picked = pick_output(explanation.outputs, output)
    is_one = isinstance(picked, int)
    data, shown = _data(explanation.columns)
    return shap.Explanation(
        values=explanation.values[..., picked],
        base_values=np.array(explanation.base[:, picked]),
        data=data,
        display_data=shown,
        feature_names=list(explanation.feature_names),
        output_names=None if is_one else list(explanation.outputs),
        lower_bounds=explanation.lower[..., picked],
        upper_bounds=explanation.upper[..., picked],
        main_effects=explanation.own[..., picked],
    )


def _data(columns: tuple[AnyArray, ...]) -> tuple[AnyArray, AnyArray | None]:
    """Return the rows as numbers (shap's colours need codes for texts), and the original rows if they differ."""
    if all(column.dtype.kind in "fb" for column in columns):
        return np.stack([column.astype(np.float64) for column in columns], axis=1), None
    numbers, shown = [], np.empty((len(columns[0]), len(columns)), dtype=object)
    for i, column in enumerate(columns):
        shown[:, i] = column
        numbers.append(column.astype(np.float64) if column.dtype.kind in "fb" else _codes(column))
    return np.stack(numbers, axis=1), shown


def _codes(column: AnyArray) -> AnyArray:
    out = np.full(len(column), np.nan)
    known = ~is_missing(column)
    out[known] = np.unique(column[known].astype(str), return_inverse=True)[1]
    return out
