"""Models for the extension group ``interpret_ext_glassbox`` of interpret.

interpret imports this module when it loads its extensions, so torch is imported only when a model is fitted.
"""

from importlib import import_module
from typing import Any, ClassVar, Self

from nae.explanation.local import LocalExplanation
from nae.explanation.shapes import GlobalExplanation

__all__ = ["GlassboxClassifier", "GlassboxRegressor"]


class _Glassbox:
    """An estimator with the methods that interpret requires. It takes the parameters of the estimator."""

    explainer_type: ClassVar[str] = "model"
    available_explanations: ClassVar[list[str]] = ["global", "local"]
    estimator_name: ClassVar[str]

    estimator_: Any

    def __init__(self, **parameters: Any) -> None:
        self.parameters = parameters

    def fit(self, X: Any, y: Any, **options: Any) -> Self:
        """Fit the estimator and store it as ``estimator_``."""
        estimator = getattr(import_module("nae"), self.estimator_name)
        self.estimator_ = estimator(**self.parameters).fit(X, y, **options)
        return self

    def predict(self, X: Any) -> Any:
        """Return the prediction of every row."""
        return self.estimator_.predict(X)

    def explain_global(self, name: str | None = None) -> GlobalExplanation:
        """Return the effect of every feature at each of its values."""
        found: GlobalExplanation = self.estimator_.explain_global(name=name)
        return found

    def explain_local(self, X: Any, y: Any = None, name: str | None = None) -> LocalExplanation:
        """Return the contributions of the rows."""
        found: LocalExplanation = self.estimator_.explain_local(X, y, name=name)
        return found


class GlassboxRegressor(_Glassbox):
    """:class:`nae.NAERegressor` as an extension of interpret."""

    estimator_name: ClassVar[str] = "NAERegressor"


class GlassboxClassifier(_Glassbox):
    """:class:`nae.NAEClassifier` as an extension of interpret."""

    estimator_name: ClassVar[str] = "NAEClassifier"

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of every class."""
        return self.estimator_.predict_proba(X)
