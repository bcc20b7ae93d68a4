"""Encode a table as cells: each value is placed between two knots, or in the slot of its level."""

from nae.encoding.cells import Cells
from nae.encoding.columns import Columns
from nae.encoding.frames import read_table
from nae.encoding.kinds import infer_kinds
from nae.encoding.schema import Category, Feature, Number, Schema, build_schema

__all__ = [
    "Category",
    "Cells",
    "Columns",
    "Feature",
    "Number",
    "Schema",
    "build_schema",
    "infer_kinds",
    "read_table",
]
