"""scikit-learn estimators: flat parameters in, a :class:`~nae.tables.TableModel` out."""

from nae._optional import require

require("sklearn", extra="train")

from nae.estimators.classifier import NAEClassifier  # noqa: E402
from nae.estimators.regressor import NAERegressor  # noqa: E402

__all__ = ["NAEClassifier", "NAERegressor"]
