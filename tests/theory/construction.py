"""Models written down instead of trained: functions of the features, put into tables at chosen knots."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nae.encoding import Number, Schema
from nae.links import Identity
from nae.tables import TableModel
from nae.tables.gates import GateTables
from nae.tables.routing import SoftmaxRouting

__all__ = ["Term", "additive_model", "pairwise_model", "product_model"]

Function = Callable[[np.ndarray], np.ndarray]
_MARGIN = 1.1  # how far C lies above the largest |v|


@dataclass(frozen=True)
class Term:
    """One product u(x_i) v(x_j), carried by the head of feature i."""

    head: int
    partner: int
    u: Function
    v: Function


def additive_model(knots: Sequence[np.ndarray], mains: Sequence[Function], intercept: float) -> TableModel:
    """Theorem 1: one expert per feature, its shape function."""
    return _model(knots, [[main] for main in mains], {}, intercept)


def product_model(knots: Sequence[np.ndarray], term: Term) -> TableModel:
    """Lemma 2: two experts +C u and -C u for the head; the partner moves the logits by the arctanh of v / C."""
    top, tilt = _tilt(term, knots)
    experts: list[list[Function]] = [[_zero, _zero] for _ in knots]
    experts[term.head] = [_scaled(term.u, top), _scaled(term.u, -top)]
    logits = {(term.partner, term.head, 0): tilt, (term.partner, term.head, 1): _scaled(tilt, -1.0)}
    return _model(knots, experts, logits, 0.0)


def pairwise_model(
    knots: Sequence[np.ndarray],
    mains: Sequence[Function],
    terms: Sequence[Term],
    intercept: float,
    *,
    is_balanced: bool = True,
) -> TableModel:
    """Theorem 2: a main effect and any number of products per head, in one softmax.

    Term m has the logits ``-log(2 cosh b_m) ± b_m``, so its two experts together always weigh as much as the main
    effect with logit 0; each then holds the share 1 / (1 + terms) and every expert is scaled up by that much. Without
    ``is_balanced`` the logits are the plain ``± b_m`` of Lemma 2.
    """
    of_head = [[term for term in terms if term.head == i] for i in range(len(knots))]
    n_terms = max(map(len, of_head))
    scale = 1.0 + n_terms
    experts: list[list[Function]] = []
    logits: dict[tuple[int, int, int], Function] = {}
    for head, main in enumerate(mains):
        own = [_scaled(main, scale)]
        for m in range(n_terms):
            term = of_head[head][m] if m < len(of_head[head]) else Term(head, head, _zero, _zero)
            top, tilt = _tilt(term, knots)
            own += [_scaled(term.u, scale * top), _scaled(term.u, -scale * top)]
            for expert, sign in ((1 + 2 * m, 1.0), (2 + 2 * m, -1.0)):
                logits[term.partner, head, expert] = _logit(tilt, sign, is_balanced=is_balanced)
        experts.append(own)
    return _model(knots, experts, logits, intercept)


def _model(
    knots: Sequence[np.ndarray],
    experts: Sequence[Sequence[Function]],
    logits: dict[tuple[int, int, int], Function],
    intercept: float,
) -> TableModel:
    """Tabulate experts[feature][expert] and logits[from feature, to feature, expert]; missing and unseen stay zero."""
    schema = Schema(tuple(Number(f"x{i}", own) for i, own in enumerate(knots)))
    n_features, n_experts = len(knots), len(experts[0])
    table = np.zeros((schema.n_slots, n_experts, 1, 1))
    terms = np.zeros((schema.n_slots, n_experts * n_features, 1))
    for i, own in enumerate(knots):
        rows = slice(int(schema.offsets[i]), int(schema.offsets[i]) + len(own))
        for k, expert in enumerate(experts[i]):
            table[rows, k, 0, 0] = expert(own)
        for (source, target, k), logit in logits.items():
            if source == i:
                terms[rows, k * n_features + target, 0] += logit(own)
    gate = GateTables("additive", terms, np.zeros((n_experts * n_features, 1)))
    return TableModel(schema, table, gate, SoftmaxRouting(n_experts), np.array([intercept]), Identity())


def _tilt(term: Term, knots: Sequence[np.ndarray]) -> tuple[float, Function]:
    """Return C and b(x_j) = arctanh(v(x_j) / C)."""
    top = _MARGIN * max(float(np.abs(term.v(knots[term.partner])).max()), 1e-12)
    return top, lambda x: np.arctanh(term.v(x) / top)


def _logit(tilt: Function, sign: float, *, is_balanced: bool) -> Function:
    def logit(x: np.ndarray) -> np.ndarray:
        b = tilt(x)
        return sign * b - np.log(2 * np.cosh(b)) if is_balanced else sign * b

    return logit


def _scaled(function: Function, factor: float) -> Function:
    return lambda x: factor * function(x)


def _zero(x: np.ndarray) -> np.ndarray:
    return np.zeros(len(x))
