"""``nae edit``: change a model file with a record of who changed what, when and why."""

from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from rich.table import Table

from nae._words import counted
from nae.cli.beside import find_remembered
from nae.cli.columns import align, column_of, match_name
from nae.cli.console import digits, make_table, out, say
from nae.cli.options import ModelFile, OffsetColumns, WeightColumn, load_model
from nae.cli.pairs import number_in, pairs, split_feature
from nae.cli.quality import find_target, read_target
from nae.cli.reading import read_file
from nae.cli.writing import check_apart, check_folder
from nae.editing import Editor
from nae.editing import edit as make_editor
from nae.encoding import Number
from nae.errors import ConfigError
from nae.tables import TableModel, save
from nae.tables.archive import read_archive

__all__ = ["edit"]

_MISSING = "missing"
_EXAMPLES = {
    "smooth": "age:4",
    "set_level": "town:Ulm:0.1",
    "pin": "sex:missing",
    "monotone": "income:+",
    "cap": "postcode:0.05",
}


def edit(
    model: ModelFile,
    *,
    output: Annotated[str, typer.Option("--output", "-o", help="The file for the edited model.", show_default=False)],
    who: Annotated[str, typer.Option(help="Who edits; the record keeps it.", show_default=False)],
    why: Annotated[str, typer.Option(help="For what reason; the record keeps it.", show_default=False)],
    smooth: Annotated[
        list[str] | None, typer.Option(help="A number and how strongly its curves are smoothed: age:4. Repeatable.")
    ] = None,
    set_level: Annotated[
        list[str] | None, typer.Option(help="A feature, a level and its contribution: town:Ulm:0.1. Repeatable.")
    ] = None,
    pin: Annotated[
        list[str] | None, typer.Option(help="A feature and the one value it has from now on: sex:missing. Repeatable.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A feature that adds nothing any longer. Repeatable.")] = None,
    monotone: Annotated[
        list[str] | None, typer.Option(help="A feature and its direction: income:+ or income:-. Repeatable.")
    ] = None,
    cap: Annotated[
        list[str] | None,
        typer.Option(help="A feature and the most that it alone may move the score: postcode:0.05. Repeatable."),
    ] = None,
    on: Annotated[
        str | None, typer.Option(metavar="DATA", help="Rows to measure on, and to solve the intercept on again.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="The target's column. Default: the one the model remembers.")
    ] = None,
    offset: OffsetColumns = None,
    weight: WeightColumn = None,
) -> None:
    """Edit a model, in the order of the options above; the file keeps the record, and what is still proven."""
    check_folder(output)
    check_apart(output, [model, *([on] if on else [])])
    tables, extra = load_model(model), read_archive(model)[1]
    names = tables.feature_names
    changes: list[Callable[[Editor], Editor]] = [
        *(_smoothing(*one, names) for one in pairs(smooth, "--smooth", example=_EXAMPLES["smooth"])),
        *(_level(word, names) for word in set_level or ()),
        *(_pin(word, names) for word in pin or ()),
        *(_drop(name, names) for name in drop or ()),
        *(_direction(*one, names) for one in pairs(monotone, "--monotone", example=_EXAMPLES["monotone"])),
        *(_cap(*one, names) for one in pairs(cap, "--cap", example=_EXAMPLES["cap"])),
    ]
    if not changes:
        raise ConfigError(f"Edit needs at least one change; none is given. Pass one, such as --cap {names[0]}:0.05.")
    editor = _editor(tables, on, target, offset, weight, who=who, why=why)
    n_before = len(editor.record)
    for change in changes:
        editor = change(editor)
    save(editor.model, output, extra=extra)
    console = out()
    if editor.rows is not None and editor.rows.known is not None:
        console.print(_quality_table(editor, on or ""))
    for one in editor.record[n_before:]:
        console.print(one.title, style="bold", soft_wrap=True)
        for sentence in one.effects:
            console.print(f"  {sentence}", soft_wrap=True)
    say(f"wrote {output}, with {counted(len(editor.record), 'edit')} in its record.")


def _editor(
    tables: TableModel,
    on: str | None,
    target: str | None,
    offset: list[str] | None,
    weight: str | None,
    **signed: str,
) -> Editor:
    """Return the editor, with the rows of a table if there is one."""
    if on is None:
        return make_editor(tables, **signed)
    table = read_file(on)
    beside = find_remembered(tables, table, offset, weight)
    name = find_target(tables, table, target)
    y = read_target(column_of(table, name), name, classes=tables.classes or None)
    rows, weights, base = align(table, tables.schema), beside.weight_of(table), beside.offset_of(table)
    return make_editor(tables, rows, y, sample_weight=weights, offset=base, **signed)


def _quality_table(editor: Editor, source: str) -> Table:
    before, after = editor.quality
    table = make_table(f"On {len(editor.rows or ()):,} rows of {source}", "", "before", "after")
    for one in before:
        table.add_row(one.name, digits(one.value), digits(after[one.name].value))
    return table


def _smoothing(name: str, strength: str, names: Sequence[str]) -> Callable[[Editor], Editor]:
    power = number_in(strength, "--smooth", example=_EXAMPLES["smooth"])
    return lambda editor: editor.smooth(match_name(name, names) or name, power)


def _level(word: str, names: Sequence[str]) -> Callable[[Editor], Editor]:
    name, rest = split_feature(word, names, "--set-level", example=_EXAMPLES["set_level"])
    level, _, text = rest.rpartition(":")
    value = number_in(text, "--set-level", example=_EXAMPLES["set_level"])
    return lambda editor: editor.set_level(name, level, value)


def _pin(word: str, names: Sequence[str]) -> Callable[[Editor], Editor]:
    name, value = split_feature(word, names, "--pin", example=_EXAMPLES["pin"])

    def pinned(editor: Editor) -> Editor:
        feature = editor.model.schema.features[names.index(name)]
        words: dict[str, float | None] = {_MISSING: None} if isinstance(feature, Number) else {}
        if isinstance(feature, Number) and feature.is_boolean:
            words |= {"true": 1.0, "false": 0.0}
        return editor.pin(name, at=words.get(value.lower(), value))

    return pinned


def _drop(name: str, names: Sequence[str]) -> Callable[[Editor], Editor]:
    return lambda editor: editor.drop(match_name(name, names) or name)


def _direction(name: str, way: str, names: Sequence[str]) -> Callable[[Editor], Editor]:
    return lambda editor: editor.monotone(match_name(name, names) or name, way)


def _cap(name: str, limit: str, names: Sequence[str]) -> Callable[[Editor], Editor]:
    most = number_in(limit, "--cap", example=_EXAMPLES["cap"])
    return lambda editor: editor.cap(match_name(name, names) or name, most)
