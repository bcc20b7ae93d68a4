"""Models for other runtimes: ONNX, C, SQL and JSON, each with scores, contributions and bounds."""

from nae.export.c import CSource, to_c, write_c
from nae.export.json import to_json, write_json
from nae.export.onnx import MISSING_TOKEN, to_onnx, write_onnx
from nae.export.sql import SqlText, to_sql, write_sql

__all__ = [
    "MISSING_TOKEN",
    "CSource",
    "SqlText",
    "to_c",
    "to_json",
    "to_onnx",
    "to_sql",
    "write_c",
    "write_json",
    "write_onnx",
    "write_sql",
]
