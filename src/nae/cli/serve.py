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
    token_file: Annotated[
        str | None, typer.Option(help="A file with a token that requests must send: Authorization: Bearer TOKEN.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name the server may be called by, in Host. Repeated for several.")
    ] = None,
    grace: Annotated[str, typer.Option(help="How long running requests may take to finish when told to stop.")] = "30s",
) -> None:
    """Serve a model, or all models of a folder, over HTTP until told to stop.

    Without --token-file anybody who reaches the address is answered.
    """
    from nae.serving import Limits, Registry, run_server
    from nae.serving.gate import is_loopback, read_token

    token = None if token_file is None else read_token(token_file)
    limits = Limits(max_rows=max_rows, max_body_bytes=int(max_body * 1e6))
    registry = Registry.open(source, is_compiled=compiled)
    if token is None and not is_loopback(host):
        say(f"note: {host} may be reached by others, and this server asks nobody who they are.")
    run_server(
        registry,
        limits,
        host=host,
        port=port,
        reload_seconds=parse_duration(reload),
        grace_seconds=parse_duration(grace),
        token=token,
        allow_hosts=allow_host or (),
        announce=lambda url: say(f"serving {', '.join(registry.names)} on {url} (documentation: {url}/docs)"),
    )
    say("stopped.")
