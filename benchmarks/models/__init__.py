"""The models behind one protocol: those of the suite (ours and boosted trees first), and the paper's networks."""

from dataclasses import dataclass
from typing import Literal

from benchmarks.models.boosting import CatBoost, LightGBM, XGBoost
from benchmarks.models.ebm import EBM
from benchmarks.models.linear import Linear
from benchmarks.models.neural import Neural
from benchmarks.models.ours import NAE
from benchmarks.models.protocol import Budget, Fitted, Model
from benchmarks.models.recipe import Recipe
from nae.errors import ConfigError, did_you_mean

__all__ = ["ALL", "MODELS", "NETWORKS", "OURS", "PAPER", "Budget", "Entry", "Fitted", "Model", "entry_named"]

Complexity = Literal["–", "O(n)", "O(n²)"]


@dataclass(frozen=True)
class Entry:
    """A model, and how it appears in the tables."""

    name: str
    label: str
    model: Model
    is_ranked: bool = True
    """Whether the model takes part in the overall ranking. Variants of one model would crowd out the others."""
    is_additive: bool = False
    """Whether the effect of every feature is one curve. Such models have a ranking of their own, too."""
    complexity: Complexity = "–"
    """The paper's explanation complexity: the number of pictures that show the whole model; a dash for black boxes."""
    paper_label: str = ""
    """The name of the model in the paper; empty if it has no row there."""

    @property
    def is_refitted(self) -> bool:
        """Whether boosted trees are grown again on all rows, after the validation rows have determined their number."""
        return bool(getattr(self.model, "is_refitted", False))

    @property
    def is_interpretable(self) -> bool:
        """The paper's column 'interpretability': whether pictures can show the whole model."""
        return self.complexity != "–"


OURS = "nae"

MODELS: tuple[Entry, ...] = (
    Entry(OURS, "NAE", NAE(), complexity="O(n)", paper_label="NAE"),
    Entry("lightgbm", "LightGBM", LightGBM()),
    Entry("xgboost", "XGBoost", XGBoost(), paper_label="XGBoost"),
    Entry("catboost", "CatBoost", CatBoost()),
    Entry("lightgbm-refitted", "LightGBM, all rows", LightGBM(is_refitted=True), is_ranked=False),
    Entry("xgboost-refitted", "XGBoost, all rows", XGBoost(is_refitted=True), is_ranked=False),
    Entry("catboost-refitted", "CatBoost, all rows", CatBoost(is_refitted=True), is_ranked=False),
    Entry("nae-0.9", "NAE 0.9", NAE(additivity=0.9), is_ranked=False, complexity="O(n)"),
    Entry("nae-additive", "NAE additive", NAE(additivity=1.0), is_ranked=False, is_additive=True, complexity="O(n)"),
    Entry("linear", "linear", Linear(), is_additive=True, complexity="O(n)", paper_label="Linear"),
    Entry("spline", "spline", Linear(has_splines=True), is_additive=True, complexity="O(n)", paper_label="Spline"),
    Entry(
        "ebm-additive",
        "EBM without pairs",
        EBM(has_pairs=False),
        is_additive=True,
        complexity="O(n)",
        paper_label="EBM",
    ),
    Entry("ebm", "EBM", EBM(), complexity="O(n²)", paper_label="EB²M"),
)
"""The models that the suite compares by default."""


NETWORKS: tuple[Entry, ...] = (
    Entry(
        "nam",
        "NAM",
        Neural("nam", Recipe(max_epochs=300, batch_size=512, learning_rate=2e-3, output_penalty=1e-4)),
        is_additive=True,
        complexity="O(n)",
        paper_label="NAM",
    ),
    Entry(
        "na2m",
        "NA²M",
        Neural("nam", Recipe(max_epochs=200, batch_size=512, learning_rate=2e-3, output_penalty=1e-4), has_pairs=True),
        complexity="O(n²)",
        paper_label="NA²M",
    ),
    Entry(
        "nbm",
        "NBM",
        Neural("nbm", Recipe(max_epochs=200, batch_size=512, learning_rate=2e-3, output_penalty=1e-4)),
        is_additive=True,
        complexity="O(n)",
        paper_label="NBM",
    ),
    Entry(
        "nb2m",
        "NB²M",
        Neural("nbm", Recipe(max_epochs=45, batch_size=512, learning_rate=2e-3, output_penalty=1e-4), has_pairs=True),
        complexity="O(n²)",
        paper_label="NB²M",
    ),
    Entry(
        "node-gam",
        "NODE-GAM",
        Neural("node-gam", Recipe(max_epochs=200, batch_size=512, learning_rate=1e-2)),
        is_additive=True,
        complexity="O(n)",
        paper_label="NODE-GAM",
    ),
    Entry(
        "node-ga2m",
        "NODE-GA²M",
        Neural("node-gam", Recipe(max_epochs=200, batch_size=512, learning_rate=1e-2), has_pairs=True),
        complexity="O(n²)",
        paper_label="NODE-GA²M",
    ),
    Entry(
        "node", "NODE", Neural("node", Recipe(max_epochs=100, batch_size=512, learning_rate=5e-3)), paper_label="NODE"
    ),
    Entry("mlp", "MLP", Neural("mlp", Recipe(max_epochs=200, batch_size=256, learning_rate=1e-3)), paper_label="MLP"),
)
"""The other networks that the paper compares. The suite runs them only on request."""

ENGINES: tuple[Entry, ...] = (
    Entry("nae-torch", "NAE by torch", NAE(engine="torch", modules=("torch", "nae.estimators")), is_ranked=False),
)
"""Our model by an engine that it does not choose itself."""

ALL = (*MODELS, *ENGINES, *NETWORKS)

PAPER: tuple[str, ...] = (
    "mlp",
    "node",
    "xgboost",
    "ebm",
    "na2m",
    "nb2m",
    "node-ga2m",
    "linear",
    "spline",
    "ebm-additive",
    "nam",
    "nbm",
    "node-gam",
    OURS,
)
"""The rows of the paper's table of accuracy, in its order: black boxes, then pairs, then features."""


def entry_named(name: str) -> Entry:
    """Return the model with the given name."""
    for entry in ALL:
        if entry.name == name:
            return entry
    known = [entry.name for entry in ALL]
    raise ConfigError(f"A model must be one of {known}; got {name!r}.{did_you_mean(name, known)}")
