"""Lines of Python that a search prints, read without running them."""

import ast
from typing import Any

__all__ = ["read_call"]


def read_call(text: str) -> tuple[str, dict[str, Any]]:
    """Return what is called, and the literals it is called with."""
    call = ast.parse(text, mode="eval").body
    assert isinstance(call, ast.Call)
    assert not call.args
    return ast.unparse(call.func), {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
