"""A page that shows a table of points or factors; it needs no other file and runs no code."""

import html
from importlib.resources import files

import numpy as np

from nae.decisions.scorecards.card import BinCard
from nae.decisions.scorecards.parts import CardBin, CardFeature
from nae.decisions.scorecards.reading import sentences

__all__ = ["page_of"]

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p class="base"><b>{base}</b> {unit} of the base</p>
</header>
<section class="notes">{notes}</section>
<main>
{features}
</main>
</body>
</html>
"""
_WIDE = 240  # units of the drawing from the left end of the scale to the right one


def page_of(card: BinCard) -> str:
    """Return the page as text."""
    style = files("nae.decisions.scorecards").joinpath("page.css").read_text(encoding="utf-8")
    axis = _Axis(card)
    return _PAGE.format(
        title=html.escape(f"{type(card).__name__}: {card.output}" if card.output != "score" else type(card).__name__),
        style=style,
        base=f"{card.base:,.{card.decimals}f}" if card.unit == "points" else f"{card.base:.6g}",
        unit="points" if card.unit == "points" else "is the prediction",
        notes="".join(f"<p>{html.escape(one)}</p>" for one in sentences(card)),
        features="\n".join(_feature(card, feature, axis) for feature in card.features),
    )


class _Axis:
    """One horizontal scale for the effects of all features."""

    def __init__(self, card: BinCard) -> None:
        bins = [one for feature in card.features for one in feature.bins]
        self.low = min(0.0, *(one.lower for one in bins))
        self.high = max(1e-9, *(one.upper for one in bins))

    def at(self, effect: float) -> float:
        return _WIDE * (effect - self.low) / (self.high - self.low)


def _feature(card: BinCard, feature: CardFeature, axis: _Axis) -> str:
    rows = "\n".join(_row(card, one, axis) for one in feature.bins)
    return f"""<section>
<h2>{html.escape(feature.name)} <small>{html.escape(_remark(card, feature))}</small></h2>
<table>
<thead><tr><th>value</th><th class="n">rows</th><th class="n">{card.unit}</th>
<th class="n">for any input</th><th></th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</section>"""


def _remark(card: BinCard, feature: CardFeature) -> str:
    if feature.is_exact:
        return "exact"
    way = {1: "rising, ", -1: "falling, "}.get(feature.direction, "")
    size = float(np.hypot(feature.binning, feature.context))
    return f"{way}± {card.scaled(size)} (root mean square)"


def _row(card: BinCard, one: CardBin, axis: _Axis) -> str:
    sign = "+" if card.unit == "points" and one.shown else ""
    shown = f"{one.shown:{sign}.{card.decimals}f}"
    finest = card.decimals + 1
    limits = "" if one.upper - one.lower < 1e-5 else f"{one.least:.{finest}f} to {one.most:.{finest}f}"
    share = f"{100 * one.share:.1f} %" if one.share > 0 else "none"
    kind = "" if one.share > 0 else ' class="rare"'
    return (
        f'<tr{kind}><td>{html.escape(one.label)}</td><td class="n">{share}</td><td class="n"><b>{shown}</b></td>'
        f'<td class="n range">{limits}</td><td>{_bar(one, axis)}</td></tr>'
    )


def _bar(one: CardBin, axis: _Axis) -> str:
    zero, end = axis.at(0.0), axis.at(one.effect)
    left, right = axis.at(one.lower), axis.at(one.upper)
    side = "up" if one.effect >= 0 else "down"
    return (
        f'<svg viewBox="0 0 {_WIDE} 14" width="{_WIDE}" height="14" role="img" aria-label="{one.effect:.3g}">'
        f'<rect class="{side}" x="{min(zero, end):.1f}" y="3" width="{max(abs(end - zero), 0.5):.1f}" height="8"/>'
        f'<path class="limits" d="M{left:.1f} 7H{right:.1f}M{left:.1f} 4v6M{right:.1f} 4v6"/>'
        f'<path class="zero" d="M{zero:.1f} 0v14"/></svg>'
    )
