"""Where a network of torch is evaluated: on knots, once for all rows of a step, or on rows."""

from collections.abc import Callable
from typing import Any

from nae.engines.torch.encoders.base import Evaluation
from nae.engines.torch.encoders.knots import on_knots
from nae.engines.torch.encoders.rows import OnRows

__all__ = ["EVALUATIONS", "Evaluation"]

EVALUATIONS: dict[str, Callable[[Any], Evaluation]] = {"piecewise": on_knots, "mlp": OnRows}
