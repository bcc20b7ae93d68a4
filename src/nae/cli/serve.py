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
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 chooses a free one.", min=0, max=65535)] = 8000,
    max_rows: Annotated[int, typer.Option(help="Largest number of rows in one request.", min=1)] = 10_000,
    max_body: Annotated[float, typer.Option(help="Largest size of one request, in megabytes.", min=0.001)] = 16.0,
    compiled: Annotated[
        bool, typer.Option("--compile", help="Compile the models with numba: a slower start, but faster answers.")
    ] = False,
    reload: Annotated[str, typer.Option(help="How often to look for changed files.")] = "1s",
    token_file: Annotated[
        str | None, typer.Option(help="A file with a token. Requests must then send Authorization: Bearer TOKEN.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A host name that requests may use (in the Host header). May be repeated.")
    ] = None,
    drift: Annotated[
        bool, typer.Option("--drift", help="Compare the rows of requests with the training rows, in /metrics.")
    ] = False,
    grace: Annotated[
        str, typer.Option(help="How long running requests may take to finish after a signal to stop.")
    ] = "30s",
) -> None:
    """Serve a model, or all models of a folder, over HTTP until a signal stops the server.

    Without --token-file there is no authentication: everyone who can reach the address is answered.
    """
    from nae.serving import Limits, Registry, run_server
    from nae.serving.gate import is_loopback, read_token

    token = None if token_file is None else read_token(token_file)
    limits = Limits(max_rows=max_rows, max_body_bytes=int(max_body * 1e6))
    registry = Registry.open(source, is_compiled=compiled)
    if token is None and not is_loopback(host):
        say(f"note: other machines may reach {host}, and the server has no authentication; --token-file adds it.")
    run_server(
        registry,
        limits,
        host=host,
        port=port,
        reload_seconds=parse_duration(reload),
        grace_seconds=parse_duration(grace),
        token=token,
        allow_hosts=allow_host or (),
        watches_drift=drift,
        announce=lambda url: say(f"serving {', '.join(registry.names)} on {url} (documentation: {url}/docs)"),
    )
    say("stopped.")
