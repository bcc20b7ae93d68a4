"""``nae export``: write the model as ONNX, C, SQL or JSON."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nae._words import sized
from nae.cli.console import say
from nae.cli.options import ModelFile, load_model
from nae.cli.writing import check_apart, check_folder
from nae.errors import ConfigError

__all__ = ["Form", "export"]


class Form(StrEnum):
    """The format of the export."""

    onnx = "onnx"
    c = "c"
    sql = "sql"
    json = "json"


def export(
    model: ModelFile,
    *,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The file to write: m.onnx, m.c, m.sql or m.json.", show_default=False)
    ],
    form: Annotated[Form | None, typer.Option("--format", help="The format. Default: the ending of the file.")] = None,
) -> None:
    """Export a model with its contributions and bounds, to run without Python."""
    from nae.export import write_c, write_json, write_onnx, write_sql

    path = Path(output)
    kind = _format_of(path) if form is None else form
    check_folder(output)
    check_apart(output, [model])
    tables = load_model(model)
    written: tuple[Path, ...] = (path,)
    if kind is Form.onnx:
        write_onnx(tables, path)
    elif kind is Form.json:
        write_json(tables, path)
    elif kind is Form.sql:
        written = write_sql(tables, path)
    else:
        written = write_c(tables, path.parent, name=_identifier(path.stem))
    for one in written:
        say(f"wrote {one} ({sized(one.stat().st_size)}).")


def _format_of(path: Path) -> Form:
    ending = path.suffix.lower().removeprefix(".")
    ending = "c" if ending == "h" else ending
    if ending not in list(Form):
        raise ConfigError(f"The ending of {path.name!r} must be one of .onnx, .c, .sql and .json; or give --format.")
    return Form(ending)


def _identifier(stem: str) -> str:
    """Return a C identifier that resembles the name of the file."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", stem)
    return plain if plain and not plain[0].isdigit() else f"m{plain}"
