"""Neural Additive Experts: models of tables whose every prediction is a sum of bounded contributions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_WHERE = {
    "ContributionTransformer": "nae.interop.sklearn",
    "Contributions": "nae.contributions",
    "GlobalExplanation": "nae.explanation",
    "InteractionExplanation": "nae.explanation",
    "LocalExplanation": "nae.explanation",
    "NAEClassifier": "nae.estimators",
    "NAERegressor": "nae.estimators",
    "TableModel": "nae.tables",
    "compare": "nae.explanation",
    "datasets": "nae.datasets",
    "edit": "nae.editing",
    "load": "nae.tables",
    "metrics": "nae.metrics",
    "plots": "nae.plots",
    "presets": "nae.presets",
    "quality": "nae.quality",
    "scan": "nae.scanning",
}
_MODULES = {"datasets", "metrics", "plots", "presets", "quality"}

__all__ = [
    "ContributionTransformer",
    "Contributions",
    "GlobalExplanation",
    "InteractionExplanation",
    "LocalExplanation",
    "NAEClassifier",
    "NAERegressor",
    "TableModel",
    "__version__",
    "compare",
    "datasets",
    "edit",
    "load",
    "metrics",
    "plots",
    "presets",
    "quality",
    "scan",
]

if TYPE_CHECKING:
    from nae import datasets as datasets
    from nae import metrics as metrics
    from nae import plots as plots
    from nae import presets as presets
    from nae import quality as quality
    from nae.contributions import Contributions as Contributions
    from nae.editing import edit as edit
    from nae.estimators import NAEClassifier as NAEClassifier
    from nae.estimators import NAERegressor as NAERegressor
    from nae.explanation import GlobalExplanation as GlobalExplanation
    from nae.explanation import InteractionExplanation as InteractionExplanation
    from nae.explanation import LocalExplanation as LocalExplanation
    from nae.explanation import compare as compare
    from nae.interop.sklearn import ContributionTransformer as ContributionTransformer
    from nae.scanning import scan as scan
    from nae.tables import TableModel as TableModel
    from nae.tables import load as load


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'nae' has no attribute {name!r}")
    module = import_module(_WHERE[name])
    return module if name in _MODULES else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
