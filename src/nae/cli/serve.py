"""``nae serve``: predictions and explanations over HTTP."""

from typing import Annotated

import typer

from nae.cli.console import say
from nae.cli.options import parse_duration

__all__ = ["serve"]


def serve(
    source: Annotated[
        str, typer.Argument(metavar="MODEL", help="A model file, or a folder of them.", show_default=False)
    ],
    *,
    host: Annotated[str, typer.Option(help="The address to listen on; the loopback unless given.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 8000,
    max_rows: Annotated[int, typer.Option(help="Most rows of one request.", min=1)] = 10_000,
    max_body: Annotated[float, typer.Option(help="Most megabytes of one request.", min=0.001)] = 16.0,
    compiled: Annotated[
        bool, typer.Option("--compile", help="Compile the models with numba: a later start, faster answers.")
    ] = False,
    reload: Annotated[str, typer.Option(help="How often to look for changed files.")] = "1s",
    grace: Annotated[str, typer.Option(help="How long running requests may take to finish when told to stop.")] = "30s",
) -> None:
    """Serve a model, or all models of a folder, over HTTP until told to stop.

    There is no authentication: keep to the loopback address, or put a proxy in front.
    """
    from nae.serving import Limits, Registry, run_server

    limits = Limits(max_rows=max_rows, max_body_bytes=int(max_body * 1e6))
    registry = Registry.open(source, is_compiled=compiled)
    if host not in ("127.0.0.1", "localhost", "::1"):
        say(f"note: {host} may be reached by others, and this server asks nobody who they are.")
    run_server(
        registry,
        limits,
        host=host,
        port=port,
        reload_seconds=parse_duration(reload),
        grace_seconds=parse_duration(grace),
        announce=lambda url: say(f"serving {', '.join(registry.names)} on {url} (documentation: {url}/docs)"),
    )
    say("stopped.")
