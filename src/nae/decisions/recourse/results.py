"""The result of recourse: ways to a target, each with its changes, its cost and what is proven about cheaper ones."""

from dataclasses import dataclass, field
from math import isinf
from typing import Any, ClassVar

from nae._words import counted
from nae.decisions.reasons.wording import Wording
from nae.decisions.recourse.sentences import change_text, number_text, prediction_text
from nae.explanation.printed import digest
from nae.explanation.serial import Serial, make_frame

__all__ = ["FeatureChange", "Recourse", "Way"]


@dataclass(frozen=True)
class FeatureChange:
    """One change: a new value of a feature. None is a missing value."""

    feature: str
    old: Any
    new: Any
    cost: float


@dataclass(frozen=True)
class Way:
    """Changes that reach the target together: a row with them was predicted."""

    changes: tuple[FeatureChange, ...]
    score: float
    prediction: float  # after the changes; of a class, its probability
    cost: float
    bound: float  # no way costs less: see Recourse

    @property
    def features(self) -> tuple[str, ...]:
        """The features that are changed."""
        return tuple(one.feature for one in self.changes)

    @property
    def gap(self) -> float:
        """How much cheaper a way could be at most: the cost minus its proven lower bound."""
        return self.cost - self.bound


@dataclass(frozen=True, eq=False)
class Recourse(Serial):
    """The cheapest ways to a target, each with other features.

    The bound of the first way holds for all ways that are allowed. The bound of each further one holds for all ways
    that do not change all the features of a way listed before.
    """

    type_name: ClassVar[str] = "recourse"

    target: str  # in words
    what: str  # that is predicted: 'prediction', 'probability of yes'
    is_probability: bool
    prediction: float  # of the row as it is
    is_reached: bool  # whether the row reaches the target as it is
    ways: tuple[Way, ...]
    bound: float  # of the cost of any way that is not listed, as above; inf if it is proven that there is none
    k: int
    n_boxes: int  # that were looked at
    wording: Wording = field(default_factory=Wording)  # of the sentences

    def __len__(self) -> int:
        return len(self.ways)

    def __getitem__(self, at: int) -> Way:
        return self.ways[at]

    @property
    def is_impossible(self) -> bool:
        """Whether it is proven that no allowed way reaches the target."""
        return not self.ways and not self.is_reached and isinf(self.bound)

    def __repr__(self) -> str:
        title = f"Recourse({self.target}; {counted(len(self), 'way')})"
        if not self.ways:
            return f"{title}\n  {self.text}"
        columns = {
            "way": [", ".join(self._changes(way)) for way in self.ways],
            self.what: [prediction_text(way.prediction, is_probability=self.is_probability) for way in self.ways],
            "cost": [f"{way.cost:.3f}" for way in self.ways],
            "at least": [f"{way.bound:.3f}" for way in self.ways],
        }
        return digest(title, columns, "text, to_frame()")

    @property
    def now_text(self) -> str:
        """The prediction of the row as it is, as a sentence."""
        return f"The {self.what} is {prediction_text(self.prediction, is_probability=self.is_probability)}."

    @property
    def text(self) -> str:
        """A sentence for every way, and one that says what is proven."""
        return "\n".join([*map(self.sentence, self.ways), self.proof])

    def sentence(self, way: Way) -> str:
        """Return the changes of a way and what they do, as a sentence."""
        first, *others = self._changes(way)
        done = " and ".join([first[0].upper() + first[1:], *others][-2:])
        done = ", ".join([*[first[0].upper() + first[1:], *others][:-2], done])
        before, after = (
            prediction_text(value, is_probability=self.is_probability) for value in (self.prediction, way.prediction)
        )
        return f"{done}: the {self.what} goes from {before} to {after}."

    def _changes(self, way: Way) -> list[str]:
        return [change_text(change, self.wording) for change in way.changes]

    @property
    def proof(self) -> str:
        """What is proven about ways that are not listed, as a sentence."""
        features = counted(self.k, "feature")
        if self.is_reached:
            return f"The row reaches the target as it is: {self.target}."
        if self.is_impossible:
            return f"No allowed change of up to {features} reaches the target ({self.target}): this is proven."
        if not self.ways:
            return (
                f"No way to the target was found ({self.target}); any change of up to {features} that reaches it costs "
                f"at least {number_text(self.bound)}. A larger budget may find a way, or prove that there is none."
            )
        best = self.ways[0]
        return (
            f"The first way costs {number_text(best.cost)}; it is proven that any allowed change of up to {features} "
            f"that reaches the target costs at least {number_text(best.bound)}."
        )

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return a data frame, one row per change."""
        rows = [(at, way, change) for at, way in enumerate(self.ways) for change in way.changes]
        columns: dict[str, Any] = {
            "way": [at for at, _, _ in rows],
            "feature": [change.feature for _, _, change in rows],
            "old": [change.old for _, _, change in rows],
            "new": [change.new for _, _, change in rows],
            "cost of change": [change.cost for _, _, change in rows],
            "cost": [way.cost for _, way, _ in rows],
            "bound": [way.bound for _, way, _ in rows],
            "prediction": [way.prediction for _, way, _ in rows],
        }
        for name in ("old", "new"):
            if len({type(value) for value in columns[name]} - {int, float}) > 0:
                columns[name] = [None if value is None else str(value) for value in columns[name]]
        return make_frame(columns, backend)
