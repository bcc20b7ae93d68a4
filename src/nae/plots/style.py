"""Colours that colour-blind readers can tell apart, and texts of limited length, for all pictures."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = [
    "STYLE",
    "Style",
    "decimals_for",
    "format_compact",
    "format_fixed",
    "format_number",
    "format_signed",
    "format_value",
    "nice_ticks",
    "part_colour",
    "shorten",
    "shorten_all",
]


@dataclass(frozen=True)
class Style:
    """The palette: Okabe and Ito's colours, which also differ in lightness and so survive a grey printer."""

    ink: str = "#1a1a1a"
    soft: str = "#5f6368"  # secondary text
    faint: str = "#d9dce1"  # grid lines
    paper: str = "#ffffff"
    main: str = "#0b4f8a"  # curves and own effects
    band: str = "#9cc3e4"  # between the bounds
    inner: str = "#5b9bd0"  # the range of most contributions
    dot: str = "#0072b2"
    density: str = "#e3e6ea"
    sure: str = "#007a5a"  # where the true effect lies
    accent: str = "#d55e00"  # context, the second model, the chosen point
    accent_soft: str = "#f0b088"
    positive: str = "#b0460a"
    negative: str = "#0b4f8a"
    series: tuple[str, ...] = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
    # Blue to vermilion through white: differs in lightness on both sides and for every kind of colour vision.
    diverging: tuple[str, ...] = (
        "#053061", "#1d62a3", "#5b9bd0", "#aacfe8", "#f7f7f7", "#f6c4a2", "#e58a4f", "#c2520f", "#6b2a00",
    )  # fmt: skip
    sequential: tuple[str, ...] = ("#f7fbff", "#d3e4f3", "#9cc3e4", "#5b9bd0", "#1d62a3", "#053061")


STYLE = Style()


def part_colour(size: float, *, is_context: bool) -> str:
    """Return the colour of a bar of a waterfall, for own effect or context and for its sign."""
    if is_context:
        return STYLE.accent_soft if size >= 0 else STYLE.band
    return STYLE.positive if size >= 0 else STYLE.negative


def shorten(text: str, limit: int = 28) -> str:
    """Return a text of at most ``limit`` characters without its middle; line breaks become spaces."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    head = (limit - 1) * 2 // 3
    return f"{flat[:head].rstrip()}…{flat[len(flat) - (limit - 1 - head) :].lstrip()}"


def shorten_all(texts: Sequence[str], limit: int) -> list[str]:
    """Return texts of about ``limit`` characters; texts that differed still differ."""
    longest = max((len(text) for text in texts), default=0)
    for room in range(limit, longest, 4):
        short = [shorten(text, room) for text in texts]
        if len(set(short)) == len(set(texts)):
            return short
    return [shorten(text, longest) for text in texts]


def format_number(value: float) -> str:
    """Return a number with three significant digits, a real minus sign, and separated thousands."""
    if not np.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    digits = int(np.floor(np.log10(abs(value))))
    text = f"{value:.2e}" if digits >= 15 or digits < -5 else f"{value:,.{max(0, 2 - digits)}f}"
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return text.replace("-", "−")


def format_compact(value: float) -> str:
    """Return a number for an axis: 150k rather than 150000."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}".replace("-", "−")
    return f"{value:g}".replace("-", "−")


def nice_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from ``low`` to ``high``."""
    rough = (high - low) / 5
    size = 10.0 ** np.floor(np.log10(rough))
    step = size * next(factor for factor in (1, 2, 5, 10) if factor * size >= rough * (1 - 1e-9))
    return [float(f"{step * at:.12g}") for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


def format_value(value: object) -> str:
    """Return a value of a feature as it would be written in a table."""
    if value is None or (isinstance(value, (float, np.floating)) and np.isnan(value)):
        return "missing"
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, float, np.integer, np.floating)):
        is_long = 1e5 <= abs(float(value)) < 1e15
        return (f"{float(value):,.0f}" if is_long else f"{float(value):.6g}").replace("-", "−")
    return str(value)


def decimals_for(span: float) -> int:
    """Return the decimals needed within ``span``: two significant digits of a hundredth of it."""
    if not np.isfinite(span) or span <= 0:
        return 2
    return int(np.clip(2 - np.floor(np.log10(span)), 0, 12))


def format_fixed(value: float, decimals: int) -> str:
    """Return a number with a fixed count of decimals, as in a column."""
    text = f"{value:,.{decimals}f}"
    return (text[1:] if float(text.replace(",", "")) == 0 and text.startswith("-") else text).replace("-", "−")


def format_signed(value: float, decimals: int) -> str:
    """Return a number with its sign and a fixed count of decimals."""
    text = format_fixed(value, decimals)
    return f"+{text}" if not text.startswith("−") and float(text.replace(",", "")) != 0 else text
