"""Join the commands into one program, and turn their errors into messages and exit codes."""

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from nae import __version__
from nae.cli.certify import certify
from nae.cli.compare import compare
from nae.cli.console import say
from nae.cli.demo import demo
from nae.cli.doctor import doctor
from nae.cli.drift import drift
from nae.cli.edit import edit
from nae.cli.explain import explain
from nae.cli.export import export
from nae.cli.extremes import extremes
from nae.cli.fit import fit
from nae.cli.measured import quality
from nae.cli.predict import predict
from nae.cli.range import range_
from nae.cli.report import report
from nae.cli.scorecard import relativities, scorecard
from nae.cli.serve import serve
from nae.cli.show import show
from nae.cli.tune import tune
from nae.errors import NAEError

__all__ = ["app", "run"]

_COMMANDS: tuple[Callable[..., None], ...] = (
    fit,
    predict,
    explain,
    range_,
    extremes,
    certify,
    edit,
    scorecard,
    relativities,
    report,
    compare,
    quality,
    drift,
    show,
    tune,
    export,
    serve,
    demo,
    doctor,
)
_INTERRUPTED = 130  # the parser's exception for Ctrl-C
_EPILOG = "Tables are CSV, TSV, Parquet, Arrow, Feather or JSON lines, compressed or not; - reads stdin."

app = typer.Typer(name="nae", no_args_is_help=True, pretty_exceptions_enable=False, epilog=_EPILOG)
for _command in _COMMANDS:
    app.command(_command.__name__.rstrip("_"))(_command)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"nae {__version__}")
        raise typer.Exit


@app.callback()
def _nae(
    version: Annotated[  # noqa: ARG001, RUF100
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[  # noqa: ARG001, RUF100
        bool, typer.Option("--debug", help="Show the traceback of an error. May stand anywhere on the line.")
    ] = False,
) -> None:
    """Neural additive experts: models of tables whose every prediction is a sum of bounded contributions."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code: 0, 2 for errors the user can correct, 130 for Ctrl-C.

    A command may return another code, as ``nae certify`` does.
    """
    is_debug, arguments = _take_debug(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            words = _with_ray_address(arguments) or ["--help"]
            answer = get_command(app).main(words, "nae", standalone_mode=False)
            code = answer if isinstance(answer, int) else 0
            if code == _INTERRUPTED:
                say("stopped.")
            return code
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Flushing the remaining output must not raise an error either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001, RUF100
        if is_debug:
            traceback.print_exc()
        code, text = _as_sentence(error)
        say(f"error: {text}", style="bold red")
        return code


def _take_debug(arguments: Sequence[str]) -> tuple[bool, list[str]]:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = [word for word in arguments[:end] if word != "--debug"]
    return len(kept) < end, [*kept, *arguments[end:]]


def _with_ray_address(arguments: Sequence[str]) -> list[str]:
    """Return the words with ``--ray local`` for a bare ``--ray``: the parser knows no options with optional values."""
    words: list[str] = []
    for word, following in zip(arguments, [*arguments[1:], "-"], strict=False):
        words += [word, "local"] if word == "--ray" and following.startswith("-") else [word]
    return words


def _as_sentence(error: Exception) -> tuple[int, str]:
    if isinstance(error, NAEError):
        return 2, str(error)
    if hasattr(error, "format_message"):  # the parser's errors, wherever its classes live
        return 2, " ".join(error.format_message().split())
    if isinstance(error, OSError) and error.errno is not None:
        where = "" if error.filename is None else f"{error.filename}: "
        hint = " Free some space, or write elsewhere." if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return 2, f"{where}{error.strerror}.{hint}"
    return 1, f"{type(error).__name__}: {error}; this is a defect of nae, and --debug shows where."


def _show_warning(message: Warning | str, category: type[Warning], *_: Any) -> None:
    say(f"note: {message}" if category.__module__.startswith("nae") else f"note: {category.__name__}: {message}")
