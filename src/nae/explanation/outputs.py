"""Outputs of an explanation: find the requested one, and name its score."""

from typing import Any

from nae.errors import UserError, did_you_mean

__all__ = ["pick_output", "score_label"]


def pick_output(outputs: tuple[str, ...], output: str | int | None) -> int:
    """Return the position of the output to draw; ``output`` is required if there are several."""
    if output is None:
        if len(outputs) > 1:
            shown = ", ".join(repr(name) for name in outputs[:4]) + (", …" if len(outputs) > 4 else "")
            raise UserError(f"This explanation has {len(outputs)} outputs ({shown}); pass output= one of them.")
        return 0
    if isinstance(output, str):
        if output not in outputs:
            raise UserError(f"No output is called {output!r}.{did_you_mean(output, outputs)}")
        return outputs.index(output)
    if not -len(outputs) <= output < len(outputs):
        raise UserError(f"An output's position must be in [0, {len(outputs) - 1}]; got {output}.")
    return output % len(outputs)


def score_label(explanation: Any, output: int | None, unit: str | None = None) -> str:
    """Return a name for the score, which is the sum of the contributions: 'log-odds of yes', 'prediction (USD)'."""
    name = "" if output is None else explanation.outputs[output]
    in_unit = getattr(explanation, "unit", "score")
    if in_unit == "probability":
        label = f"probability of {name} in %" if name else "probability in %"
    elif in_unit == "response":
        label = "prediction" if name in ("", "score") else name
    elif explanation.link == "logit":
        label = f"log-odds of {name}" if name else "log-odds"
    elif explanation.link == "softmax":
        label = f"score of class {name}" if name else "class scores"
    elif explanation.link == "log":
        label = "log of the prediction" if name in ("", "score") else f"log of {name}"
    else:
        label = "prediction" if name in ("", "score") else name
    return f"{label} ({unit})" if unit else label
