"""The array types that signatures use. Docstrings and comments state shapes with the letters of the glossary.

B rows, F features, T slots (all features' knots one after another), K experts, H gate width, O outputs, M members.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["AnyArray", "Array", "BoolArray", "IntArray"]

AnyArray = npt.NDArray[Any]
Array = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]
