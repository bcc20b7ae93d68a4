"""Sentences that say how to read a table, and how far it is from its model."""

from nae._words import counted
from nae.decisions.scorecards.card import BinCard, Relativities, Scorecard

__all__ = ["sentences"]

_REFERENCES = {
    "average": "the average of the training rows",
    "lowest": "the bin of each feature with the lowest effect",
    "common": "the bin of each feature with the most training rows",
}
_ABOUT = (
    "The effect of a bin is the mean contribution of its training rows. Beside it stand the smallest and the largest "
    "contribution that any input with such a value can have, whatever the other features are."
)


def sentences(card: BinCard) -> list[str]:
    """Return the sentences, the most important first."""
    found = [_rule(card), f"{_zero(card)} at {_REFERENCES[card.reference]}.", _ABOUT]
    if all(feature.is_exact for feature in card.features):
        return [*found, "Before rounding, the table is the model: every bin has one contribution for all inputs."]
    return [*found, *_losses(card)]


def _losses(card: BinCard) -> list[str]:
    loss, scaled = card.loss, card.scaled
    change = f"change the total by {scaled(loss.binning)} at most (root mean square)"
    found = [f"Over the training rows, bins in place of curves {change}."]
    found.append(f"Rounding changes it by {scaled(loss.rounding)} at most.")
    if loss.context:
        found.append(
            f"What only the other features explain, the context, has a root mean square of {scaled(loss.context)}. A "
            "table of bins cannot show it."
        )
    found.append(f"For any input, table and model differ by {scaled(loss.largest)} at most.")
    if loss.measured is not None:
        found.append(
            f"On {counted(loss.measured.n_rows, 'given row')}, the rounded table differs from the model by "
            f"{scaled(loss.measured.rms)} (root mean square), and by {scaled(loss.measured.largest)} at most."
        )
    return found


def _rule(card: BinCard) -> str:
    if isinstance(card, Scorecard):
        return (
            f"The points of a row are {card.base:.{card.decimals}f} plus the points of its bins. {card.base_score:g} "
            f"points stand for odds of {card.odds:g} to 1 for {card.output}; every {card.points_to_double:g} points "
            "double them."
        )
    return f"The prediction of a row is {card.base:.6g} times the factors of its bins."


def _zero(card: BinCard) -> str:
    return "Factors are 1" if isinstance(card, Relativities) else "Points are 0"
