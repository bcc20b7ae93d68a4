"""The parameters of both estimators in one table: type, rule, default and meaning.

The estimators check their parameters against this table. Their docstrings and ``docs/parameters.md`` are generated from
it. Their signatures repeat names and defaults, so that an editor can show them; a test compares signatures and table.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Self, get_args, get_type_hints

from nae.errors import ConfigError, did_you_mean
from nae.recipes import CLASSES, EFFORTS, NUMBERS, PAPER

__all__ = [
    "BoundsName",
    "ClassParameters",
    "Device",
    "EffortName",
    "Encoder",
    "EngineName",
    "Entry",
    "Gate",
    "LossName",
    "Normalization",
    "NumberParameters",
    "Parameters",
    "Rule",
    "Table",
    "Variant",
]

Variant = Literal["nae", "nae-e", "nae-d"]
Encoder = Literal["piecewise", "mlp"]
Gate = Literal["auto", "additive", "low-rank", "deep", "diagonal"]
Normalization = Literal["layer", "batch"]
Device = Literal["auto", "cpu", "cuda"]
EngineName = Literal["auto", "native", "torch"]
EffortName = Literal["quick", "normal", "best"]
BoundsName = Literal["data", "experts"]
LossName = Literal["squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie"]


@dataclass(frozen=True)
class Interval:
    """An interval of numbers."""

    low: float
    high: float | None = None
    is_open: bool = False
    """Whether ``low`` itself is excluded."""
    is_open_above: bool = False
    """Whether ``high`` itself is excluded."""
    is_whole: bool = False

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, Integral if self.is_whole else Real) or isinstance(value, bool):
            return False
        number = float(value)
        is_above = number > self.low if self.is_open else number >= self.low
        if self.high is None:
            return is_above
        return is_above and (number < self.high if self.is_open_above else number <= self.high)

    def __str__(self) -> str:
        low = f"{'(' if self.is_open else '['}{self.low:g}"
        high = "∞)" if self.high is None else f"{self.high:g}{')' if self.is_open_above else ']'}"
        return f"{'a whole number' if self.is_whole else 'a number'} in {low}, {high}"


@dataclass(frozen=True)
class Rule:
    """The values that a parameter may have: some words, numbers in an interval, None, or objects checked elsewhere.

    ``kind`` is the type that the docstring shows.
    """

    kind: str
    interval: Interval | None = None
    words: tuple[str, ...] = ()
    may_be_none: bool = False

    def check(self, name: str, value: Any) -> None:
        """Raise an error that states the rule if the value breaks it."""
        if self.interval is None and not self.words:
            return
        if (value is None and self.may_be_none) or (isinstance(value, str) and value in self.words):
            return
        if self.interval is None:
            hint = did_you_mean(value, self.words)
            raise ConfigError(f"{name} must be one of {list(self.words)}; got {value!r}.{hint}")
        if value not in self.interval:
            raise ConfigError(f"{name} must be {self}; got {value!r}.")

    def __str__(self) -> str:
        parts = [str(self.interval), *map(repr, self.words), *["None"] * self.may_be_none]
        return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def _number(low: float, high: float | None = None, *, or_none: bool = False, **interval: bool) -> Rule:
    kind = "int" if interval.get("is_whole") else "float"
    return Rule(f"{kind} or None" if or_none else kind, Interval(low, high, **interval), may_be_none=or_none)


def _words(options: Any) -> Rule:
    found = get_args(options)
    return Rule(f"{{{', '.join(map(repr, found))}}}", words=found)


_LARGE = f"{NUMBERS.n_experts.steps[-1][0]:,} rows or more ({CLASSES.n_experts.steps[-1][0]:,} for classes)"
_COUNT = _number(1, is_whole=True)
_COUNT_OR_NONE = _number(1, is_whole=True, or_none=True)
_WEIGHT = _number(0)
_WEIGHT_OR_NONE = _number(0, or_none=True)


@dataclass(frozen=True)
class Entry:
    """A line of the table, without the type for type checkers."""

    name: str
    default: Any
    rule: Rule
    text: str


@dataclass(frozen=True, eq=False)
class Table:
    """A table of parameters; abstract. Each type is annotated with a rule (or the name of a type) and a text."""

    @classmethod
    @cache
    def entries(cls) -> tuple[Entry, ...]:
        """Return the line of every parameter."""
        hints = get_type_hints(cls, include_extras=True)
        found = []
        for one in fields(cls):
            rule, text = hints[one.name].__metadata__
            rule = rule if isinstance(rule, Rule) else Rule(rule)
            found.append(Entry(one.name, one.default, rule, " ".join(text.split())))
        return tuple(found)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Return the given parameters that are in this table. The first one that breaks its rule raises an error."""
        for entry in cls.entries():
            entry.rule.check(entry.name, given[entry.name])
        return cls(**{entry.name: given[entry.name] for entry in cls.entries()})


@dataclass(frozen=True, eq=False)
class NumberParameters(Table):
    """The parameters that only ``NAERegressor`` has."""

    loss: Annotated[
        LossName,
        _words(LossName),
        "The loss that training minimises. 'poisson', 'gamma' and 'tweedie' predict through a log link: contributions "
        "multiply.",
    ] = "squared"
    quantile: Annotated[
        float | Sequence[float],
        "float or list",
        """The quantile to predict, with ``loss='quantile'``. Several quantiles, in ascending order, are outputs of one
        model, named ``q0.05`` and so on: ``predict`` returns one column for each, and no column is ever below the one
        before it.""",
    ] = 0.5
    huber_delta: Annotated[
        float,
        "float",
        """Residual at which ``loss='huber'`` turns linear, in units of the target's spread. The spread is the range
        without the lowest and the highest tenth, divided by 2.563: for a normal target that is its standard deviation,
        and outliers do not move it. Where that range is 0, the standard deviation is used.""",
    ] = 1.35
    tweedie_power: Annotated[
        float,
        "float",
        "The power of ``loss='tweedie'``, between 1 and 2.",
    ] = 1.5


@dataclass(frozen=True, eq=False)
class ClassParameters(Table):
    """The parameters that only ``NAEClassifier`` has."""

    class_weight: Annotated[
        Any,
        "dict, 'balanced' or None",
        """Weights of the classes, multiplied with ``sample_weight`` during training; with 'balanced', all classes have
        the same total weight. ``predict`` uses them, too. Probabilities do not follow them: a rare class stays rare.
        ``class_weight_`` says how to get the weighted probabilities.""",
    ] = None
    calibrate: Annotated[
        Any,
        "False, True or 'auto'",
        """Whether the score is multiplied by the slope under which the rows that members held out lose least, so that
        probabilities are neither too extreme nor too cautious. Contributions and bounds are multiplied, too. 'auto'
        keeps the slope only where it improves the log loss of held-out rows by more than its standard error. By default
        it is left out: on the tables of the suite, probabilities are calibrated already.""",
    ] = False
    positive_class: Annotated[
        Any,
        "label or None",
        """For two classes: the class that the model speaks for. Scores, contributions, bounds, explanations, reports
        and offsets are evidence for it. If None, the second of ``classes_``. It changes neither the probabilities, nor
        the order of ``classes_`` and of the columns of ``predict_proba``, nor the sign of ``decision_function``.""",
    ] = None


@dataclass(frozen=True, eq=False)
class Parameters(Table):
    """The parameters that both estimators have."""

    additivity: Annotated[
        float | Literal["auto"] | None,
        Rule("float, 'auto' or None", Interval(0, 1), ("auto",), may_be_none=True),
        """The least share of each contribution's variance that the feature's own value must explain, on average over
        the features (:func:`nae.metrics.additivity`). 1 is a GAM. 'auto' takes the most additive model whose validation
        loss is within one standard error of the best. If None, additivity is not required.""",
    ] = None
    variant: Annotated[
        Variant,
        _words(Variant),
        """'nae' routes by softmax, 'nae-e' gives equal weights to the active experts, and 'nae-d' has gates that see
        only their own feature.""",
    ] = "nae"
    encoder: Annotated[
        Encoder,
        _words(Encoder),
        "'piecewise' evaluates the network at the knots, on piecewise-linear inputs; 'mlp' is the paper's network, "
        "evaluated on rows.",
    ] = "piecewise"
    gate: Annotated[
        Gate,
        _words(Gate),
        "How features choose each other's experts. 'auto' is 'additive' or 'low-rank', whichever is cheaper.",
    ] = "auto"
    n_experts: Annotated[
        int | None,
        _COUNT_OR_NONE,
        f"""Number of experts per feature, the paper's K. If None: {NUMBERS.n_experts.first}, or
        {NUMBERS.n_experts.last} with up to {NUMBERS.wide} features and either {_LARGE} or, for numbers, a given
        ``additivity``;
        {NUMBERS.n_diagonal_experts} for 'nae-d'; {PAPER.n_experts.first} with ``encoder='mlp'``. With ``additivity=1``
        there is always 1.""",
    ] = None
    n_active: Annotated[
        int | None,
        _COUNT_OR_NONE,
        "Number of active experts per feature, the paper's C. If None: all of them, or half of them for 'nae-e'.",
    ] = None
    effort: Annotated[
        EffortName,
        _words(EffortName),
        f"""How much time a fit spends on accuracy. 'quick' is a first look: {EFFORTS["quick"].n_members} members and
        half the patience, in about a third of the time. 'best' takes {EFFORTS["best"].n_members} members, twice the
        patience, and large networks from a quarter of the rows on, in two to six times the time. Given parameters are
        not changed.""",
    ] = "normal"
    n_members: Annotated[
        int | None,
        _COUNT_OR_NONE,
        f"""Number of networks that are trained side by side and averaged. Each one is validated on rows of its own. If
        None: {NUMBERS.n_members}, or what ``effort`` says.""",
    ] = None
    n_knots: Annotated[
        int | None,
        _number(2, is_whole=True, or_none=True),
        f"""Largest number of knots of a number, and of levels of a category before rare ones share a slot. If None:
        {NUMBERS.most_knots}; fewer knots with more than {NUMBERS.knot_budget // NUMBERS.most_knots} features or fewer
        than {NUMBERS.most_knots * (NUMBERS.rows_per_knot or 0)} rows; up to {NUMBERS.fine_factor} times as many for an
        additive model with {NUMBERS.fine_rows:,} rows or more; {PAPER.narrow_knots} to {PAPER.most_knots:,} with
        ``encoder='mlp'``.""",
    ] = None
    n_ramps: Annotated[
        int | None,
        _COUNT_OR_NONE,
        f"""Resolution of the piecewise-linear input. If None: {NUMBERS.n_ramps}, or {NUMBERS.n_fine_ramps} for an
        additive model with {NUMBERS.fine_rows:,} rows or more.""",
    ] = None
    n_blocks: Annotated[
        int,
        _COUNT,
        "Number of blocks (the depth) of the encoders.",
    ] = NUMBERS.n_blocks
    hidden_dim: Annotated[
        int | None,
        _COUNT_OR_NONE,
        f"""Width of the encoders. If None: {NUMBERS.hidden_dim.first}, or {NUMBERS.hidden_dim.last} with up to
        {NUMBERS.wide} features and {_LARGE}; {PAPER.hidden_dim.first} with ``encoder='mlp'``.""",
    ] = None
    gate_rank: Annotated[
        int,
        _COUNT,
        "Width of a low-rank or deep gate.",
    ] = NUMBERS.gate_rank
    normalization: Annotated[
        Normalization,
        _words(Normalization),
        "Normalisation in the blocks of ``encoder='mlp'``.",
    ] = "layer"
    variation_penalty: Annotated[
        float,
        _WEIGHT,
        "Weight of the spread of the experts, the paper's lambda.",
    ] = NUMBERS.variation_penalty
    output_penalty: Annotated[
        float | None,
        _WEIGHT_OR_NONE,
        f"""Weight of the mean square of the contributions. If None: 0, or {NUMBERS.steered_output_penalty} with a given
        ``additivity``, which keeps contributions from growing and cancelling each other.""",
    ] = None
    context_penalty: Annotated[
        float | None,
        _WEIGHT_OR_NONE,
        f"""Weight of the context's share of the contributions' variance. If None: {NUMBERS.context_penalty}, or
        {PAPER.context_penalty:g} with ``encoder='mlp'``. With a given ``additivity``, the weight
        grows until the target is met.""",
    ] = None
    expert_dropout: Annotated[
        float | None,
        _number(0, 1, is_open_above=True, or_none=True),
        f"""Share of the experts' weights that is dropped in training. If None: {CLASSES.expert_dropout} for classes
        with ``variant='nae'``, else {NUMBERS.expert_dropout:g}. Nothing is dropped with a given ``additivity`` or with
        up to {NUMBERS.small_rows} rows.""",
    ] = None
    encoder_dropout: Annotated[
        float,
        _number(0, 1, is_open_above=True),
        "Share of the hidden units that is dropped in training; only with ``encoder='mlp'``.",
    ] = 0.0
    weight_decay: Annotated[
        float | None,
        _WEIGHT_OR_NONE,
        f"""Weight decay of AdamW. If None: {NUMBERS.weight_decay}, and up to {NUMBERS.most_weight_decay:g} with many
        pairs of features per row.""",
    ] = None
    learning_rate: Annotated[
        float,
        _number(0, is_open=True),
        "Learning rate of AdamW. It is constant until the validation loss stops improving, and then falls to zero.",
    ] = NUMBERS.learning_rate
    batch_size: Annotated[
        int | None,
        _COUNT_OR_NONE,
        f"Rows per step. If None: {NUMBERS.batch_size}. With up to {NUMBERS.small_rows} rows, a step takes all.",
    ] = None
    max_epochs: Annotated[
        int | None,
        _COUNT_OR_NONE,
        f"Largest number of passes over the rows. If None: as many as {NUMBERS.max_steps:,} steps need, but at least "
        f"{NUMBERS.least_epochs}.",
    ] = None
    early_stopping_rounds: Annotated[
        int | None,
        _COUNT_OR_NONE,
        f"""Patience: epochs without a better validation loss before the learning rate falls and training ends. If None,
        it follows from the number of rows; with ``encoder='mlp'``, it is {PAPER.patience_share:.0%} of the epochs.""",
    ] = None
    validation_size: Annotated[
        float,
        _number(0, 1, is_open=True, is_open_above=True),
        f"""Share of the rows that is held out to choose the best epoch. Rows are split into round(1 / validation_size)
        folds, at least two; member i holds out fold i mod n. With up to {NUMBERS.small_rows} rows, the content of a row
        decides its fold, so that a weight of 2 gives the same model as the row twice.""",
    ] = NUMBERS.validation_size
    validation: Annotated[
        Any,
        "splitter, indices or None",
        "Rows to hold out instead: a scikit-learn splitter (its first split), indices or a mask.",
    ] = None
    time_limit: Annotated[
        float | None,
        _number(0, is_open=True, or_none=True),
        "Seconds after which training stops at the end of an epoch and keeps the best one.",
    ] = None
    feature_types: Annotated[
        Mapping[str, str] | Sequence[str] | None,
        "dict, list or None",
        "'number', 'boolean' or 'category' by column name, or one word per column. If None, the types of the columns "
        "decide.",
    ] = None
    callbacks: Annotated[
        Sequence[Callable[..., Any]] | None,
        "list of callables or None",
        """Functions that are called after every epoch with the keywords ``epoch, n_epochs, loss, validation,
        additivity, seconds``. A function that returns True or 'stop' ends training.""",
    ] = None
    verbose: Annotated[
        bool | int,
        "bool",
        "Whether to show a progress bar.",
    ] = False
    warm_start: Annotated[
        bool,
        "bool",
        "Whether the next fit starts from the weights of this one.",
    ] = False
    random_state: Annotated[
        Any,
        "int, RandomState or None",
        "Random seed. On a CPU, the same seed gives the same model, bit for bit, for any number of threads.",
    ] = None
    n_jobs: Annotated[
        int | None,
        "int or None",
        "Number of threads. If None: all processors. It does not change the model.",
    ] = None
    device: Annotated[
        Device,
        "{'auto', 'cpu', 'cuda'}",
        "Where to train. 'auto' takes a GPU if it is faster.",
    ] = "auto"
    monotonic_cst: Annotated[
        Any,
        "dict, array or None",
        """Features that never lower or never raise the score, whatever the others are: 1 or 'increasing', -1 or
        'decreasing', 0 for no constraint; by name, or one per feature. For a category, a list of its levels from the
        lowest to the highest; a column whose type has an order needs no list. Missing values are outside of the order.
        For two classes, the score is that of the class that the model speaks for.""",
    ] = None
    interaction_cst: Annotated[
        Any,
        "{'pairwise', 'no_interactions'}, list of groups, dict or None",
        """Which features may change how which others count. Features interact only with those of a group that they
        share; those in no group form one more. With a dict such as ``{'sex': {'changes': [], 'changed_by': []}}``, a
        feature changes only the first list and is changed only by the second.""",
    ] = None
    max_effect: Annotated[
        Any,
        "dict or None",
        """The most that a feature alone moves the score, by name. It is in units of the score; with a log link also a
        factor, such as 'x1.05' or '5%'. Such a feature changes the effect of no other feature.""",
    ] = None
    convex: Annotated[
        Any,
        "list or None",
        """Features whose effect has a growing slope between the first and the last knot. They change the effect of no
        other feature.""",
    ] = None
    concave: Annotated[
        Any,
        "list or None",
        "Features whose effect has a falling slope, like ``convex``.",
    ] = None
    smoothness: Annotated[
        Any,
        "float, dict, 'auto' or None",
        """Weight of a penalty on rough curves: 1 removes steps between knots, 100 leaves little more than straight
        lines. One number for all numbers, or by name. 'auto' takes the smoothest curves that validation does not speak
        against (``smoothness_``), in about twice the time. If None, curves may be rough.""",
    ] = None
    bounds: Annotated[
        BoundsName,
        _words(BoundsName),
        """What the bounds of a contribution are. 'data': the range that training rows with a similar value have shown,
        and a margin; contributions of new rows stay in it. 'experts': the smallest and the largest expert, as in the
        paper.""",
    ] = "data"
    engine: Annotated[
        EngineName,
        _words(EngineName),
        """What computes the steps of training. 'native' is the core of the library, on a processor. 'torch' also trains
        on GPUs and with ``encoder='mlp'``. 'auto' takes torch for a GPU that is faster, else the native core where it
        is built and can train the model, else torch.""",
    ] = "auto"
