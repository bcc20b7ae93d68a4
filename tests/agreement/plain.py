"""A reader in another language, so to say: the JSON export evaluated in plain Python, from docs/format.md alone."""

import bisect
import math
from collections.abc import Callable
from operator import mul
from typing import Any

__all__ = ["Answer", "answer"]

Value = float | str | None
Mixture = Callable[[dict[str, Any], list[tuple[int, float]], int], tuple[list[list[float]], int]]
Answer = dict[str, list[Any]]  # score (O), prediction (O or class), contribution, lower and upper (F, O)


def answer(content: dict[str, Any], row: list[Value], *, by_steps: bool = False) -> Answer:
    """Return everything about a row of numbers and texts: by the names of gate and routing, or by the list of steps."""
    arrays, cells = content["arrays"], _cells(content, row)
    n_members = len(arrays["experts"][0][0][0])
    mixture = _mixture_of_steps if by_steps else _mixture
    each = [_member(content, cells, m, mixture) for m in range(n_members)]
    found: Answer = {}
    ends = _ends(content, cells, by_steps=by_steps)
    for name in ("contribution", "lower", "upper"):
        found[name] = [
            [sum(values) / n_members for values in zip(*of_feature, strict=True)]
            for of_feature in zip(*(one[name] for one in each), strict=True)
        ]
        if ends is not None:
            found[name] = [
                [min(max(value, low), high) for value, low, high in zip(values, *own, strict=True)]
                for values, own in zip(found[name], ends, strict=True)
            ]
    totals = zip(*found["contribution"], strict=True)
    found["score"] = [first + sum(rest) for first, rest in zip(arrays["intercept"], totals, strict=True)]
    found["prediction"] = _predict(content["link"], found["score"])
    return found


def _ends(
    content: dict[str, Any], cells: list[tuple[int, float]], *, by_steps: bool
) -> list[tuple[list[float], list[float]]] | None:
    """Step 5: of every feature both ends of the clamps, (O) each; None where the model has no clamps."""
    clip = next((step for step in content["steps"] if step["kind"] == "clip"), None)
    names = (clip["lower"], clip["upper"]) if clip is not None and by_steps else ("clamps.lower", "clamps.upper")
    if (clip is None) if by_steps else (content["format"] < 2):
        return None
    lower, upper = (content["arrays"][name] for name in names)
    outputs = range(len(lower[0]))
    return [([_look_up(lower, at, o) for o in outputs], [_look_up(upper, at, o) for o in outputs]) for at in cells]


def _cells(content: dict[str, Any], row: list[Value]) -> list[tuple[int, float]]:
    """Step 1: slot and fraction of every value."""
    found, first, at_knot = [], 0, 0
    for feature, value in zip(content["schema"]["features"], row, strict=True):
        if feature["kind"] == "category":
            levels, rare = feature["levels"], feature["rare"]
            n_values = len(levels) + bool(rare)
            within = n_values if value is None else n_values + 1
            if value in levels:
                within = levels.index(value)
            elif value in rare:
                within = len(levels)
            found.append((first + within, 0.0))
        else:
            n_values = feature["n_knots"]
            knots = content["arrays"]["knots"][at_knot : at_knot + n_values]
            at_knot += n_values
            within, part = _between(knots, math.nan if value is None else float(value))
            found.append((first + within, part))
        first += n_values + 2
    return found


def _between(knots: list[float], value: float) -> tuple[int, float]:
    if math.isnan(value):
        return len(knots), 0.0
    value = min(max(value, knots[0]), knots[-1])
    low = bisect.bisect_right(knots, value) - 1
    if low == len(knots) - 1:
        return low, 0.0
    span = knots[low + 1] - knots[low]
    if math.isinf(span):
        return low, (value / 2 - knots[low] / 2) / (knots[low + 1] / 2 - knots[low] / 2)
    return low, (value - knots[low]) / span


def _look_up(table: list[Any], cell: tuple[int, float], *at: int) -> float:
    """Step 2: a number of a table at a cell."""
    slot, part = cell
    low, high = table[slot], table[slot + 1] if part > 0 else table[slot]
    for i in at:
        low, high = low[i], high[i]
    return low + part * (high - low)


def _logits(content: dict[str, Any], cells: list[tuple[int, float]], m: int) -> list[float]:
    """Step 3: the logits of a member, expert by expert."""
    arrays, kind, n_features = content["arrays"], content["gate"], len(cells)
    terms, bias = arrays["gate.terms"], arrays["gate.bias"]
    if kind == "diagonal":
        return [own[m] + _look_up(terms, cells[j % n_features], j // n_features, m) for j, own in enumerate(bias)]
    hidden = [own[m] + sum(_look_up(terms, cell, h, m) for cell in cells) for h, own in enumerate(bias)]
    if kind == "additive":
        return hidden
    if kind == "deep":
        hidden = [max(value, 0.0) for value in hidden]
    mix, mix_bias = arrays["gate.mix"][m], arrays["gate.mix_bias"]
    return [own[m] + sum(v * line[j] for v, line in zip(hidden, mix, strict=True)) for j, own in enumerate(mix_bias)]


def _weights(logits: list[float], name: str, n_active: int) -> list[float]:
    """Step 4: the weights of a feature's experts."""
    active = sorted(range(len(logits)), key=lambda k: (-logits[k], k))[:n_active]
    most = logits[active[0]]
    raised = [
        0.0 if k not in active else 1.0 if name == "equal" else math.exp(logit - most) for k, logit in enumerate(logits)
    ]
    return [one / sum(raised) for one in raised]


def _mixture(content: dict[str, Any], cells: list[tuple[int, float]], m: int) -> tuple[list[list[float]], int]:
    """Steps 3 and 4: of every feature the weights of its experts, and how many experts are averaged into a bound."""
    routing, n_features = content["routing"], len(cells)
    name, n_active = routing["name"], routing["n_active"]
    if len(content["arrays"]["experts"][0]) == 1:
        return [[1.0]] * n_features, 1
    logits = _logits(content, cells, m)
    weights = [_weights(logits[i::n_features], name, n_active) for i in range(n_features)]
    return weights, n_active if name == "equal" else 1


def _mixture_of_steps(content: dict[str, Any], cells: list[tuple[int, float]], m: int) -> tuple[list[list[float]], int]:
    """Return the same from the list of steps, without the names of gate and routing."""
    arrays, n_features, values, weights = content["arrays"], len(cells), [0.0], [[1.0]] * len(cells)
    for step in content["steps"]:
        kind, bias = step["kind"], [own[m] for own in arrays[step["bias"]]] if "bias" in step else []
        if kind == "sum_terms":
            values = [
                own + sum(_look_up(arrays[step["terms"]], at, u, m) for at in cells) for u, own in enumerate(bias)
            ]
        elif kind == "own_terms":
            looked_up = (
                _look_up(arrays[step["terms"]], cells[u % n_features], u // n_features, m) for u in range(len(bias))
            )
            values = [own + one for own, one in zip(bias, looked_up, strict=True)]
        elif kind == "rectify":
            values = [max(value, 0.0) for value in values]
        elif kind == "multiply":
            columns = zip(*arrays[step["matrix"]][m], strict=True)
            values = [own + sum(map(mul, values, column)) for own, column in zip(bias, columns, strict=True)]
        elif kind in ("softmax", "equal"):
            weights = [_weights(values[i::n_features], kind, step["n_active"]) for i in range(n_features)]
        elif kind != "one_expert":
            return weights, step["n_extreme"]
    raise ValueError("The last step must be the one that mixes the experts.")


def _member(content: dict[str, Any], cells: list[tuple[int, float]], m: int, mixture: Mixture) -> Answer:
    """Step 5: a member's contributions and bounds."""
    experts = content["arrays"]["experts"]
    n_experts, n_outputs = len(experts[0]), len(experts[0][0])
    weights, n_bounding = mixture(content, cells, m)
    found: Answer = {"contribution": [], "lower": [], "upper": []}
    for cell, of_feature in zip(cells, weights, strict=True):
        values = [[_look_up(experts, cell, k, o, m) for k in range(n_experts)] for o in range(n_outputs)]
        found["contribution"].append([sum(map(mul, of_feature, own)) for own in values])
        found["lower"].append([sum(sorted(own)[:n_bounding]) / n_bounding for own in values])
        found["upper"].append([sum(sorted(own)[-n_bounding:]) / n_bounding for own in values])
    return found


def _predict(link: str, score: list[float]) -> list[float]:
    """Step 6: the prediction of a score; of two classes the probability of both."""
    if link == "identity":
        return score
    if link == "log":
        return [math.exp(one) if one < 709 else math.inf for one in score]
    if link == "logit":
        small = math.exp(-abs(score[0]))
        pair = [small / (1 + small), 1 / (1 + small)]
        return pair if score[0] >= 0 else pair[::-1]
    raised = [math.exp(one - max(score)) for one in score]
    return [one / sum(raised) for one in raised]
