"""Measure the server under load: ``python -m benchmarks.serve_load --data FOLDER``.

A Housing model of the default sizes is served by ``nae serve``, and an early-stopped LightGBM forest by a plain FastAPI
application under the same uvicorn. The same client asks both in turns, and compares every answer with the model's own
prediction. Then ``nae serve`` is asked alone, and in the company of idle and slow clients. The results go to
``benchmarks/results/serve_load.md``.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.company import Company, company
from benchmarks.machine import ForeignLoad, describe

RESULTS = Path(__file__).parent / "results" / "serve_load.md"
FOREST = "LightGBM, plain FastAPI"
N_BODIES = 64  # number of different requests, which are sent repeatedly
LONGER = 3  # factor of the length in company, because idle clients are ended after ten seconds
Predict = Callable[[Any], np.ndarray]


@dataclass(frozen=True)
class Load:
    """The load on one server and the results."""

    seconds: list[float]
    wall: float
    n_wrong: int
    n_dropped: int = 0
    """Number of requests whose connection ended before the answer."""

    @property
    def rate(self) -> float:
        return len(self.seconds) / self.wall

    def quantile(self, level: float) -> float:
        return float(np.quantile(self.seconds, level)) * 1e3


def main() -> None:
    """Train both models, measure both servers in turns, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True, help="folder of housing.parquet")
    parser.add_argument("--seconds", type=float, default=5.0, help="length of one load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--idle", type=int, default=200, help="clients that ask nothing, in company")
    parser.add_argument("--slow", type=int, default=200, help="clients that ask byte by byte, in company")
    parser.add_argument("--forest", type=Path, help=argparse.SUPPRESS)  # this is the process of the plain server
    given = parser.parse_args()
    if given.forest is not None:
        serve_forest(given.forest)
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table, predict, n_trees = prepare(given.data / "housing.parquet", folder)
        load, started = ForeignLoad(), time.monotonic()
        raise_file_limit()
        lines = run(folder, table, predict, given)
        in_company = run_in_company(folder, table, predict["nae"], given)
        foreign = load.since(time.monotonic() - started)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(page(lines, in_company, given, n_trees, foreign))
    print(RESULTS.read_text())


def prepare(path: Path, folder: Path) -> tuple[Any, dict[str, Predict], int]:
    """Train both models. Response times depend only on sizes, so the network trains for a few epochs."""
    import lightgbm as lgb
    import pandas as pd

    from nae import NAERegressor
    from nae.tables import load, save

    data = pd.read_parquet(path).sample(frac=1.0, random_state=0)
    X, y = data.drop(columns="target"), data["target"]
    cut = len(X) * 7 // 8
    save(NAERegressor(max_epochs=2, random_state=0).fit(X[:2000], y[:2000]).model_, folder / "housing.nae")
    forest = lgb.LGBMRegressor(n_estimators=5000, learning_rate=0.05, n_jobs=1, verbose=-1)
    forest.fit(X[:cut], y[:cut], eval_X=X[cut:], eval_y=y[cut:], callbacks=[lgb.early_stopping(50, verbose=False)])
    forest.booster_.save_model(folder / "forest.txt", num_iteration=forest.best_iteration_)
    model = load(folder / "housing.nae")
    booster = lgb.Booster(model_file=folder / "forest.txt")
    predict: dict[str, Predict] = {
        "nae": lambda rows: np.asarray(model.predict(rows)),
        "lightgbm": lambda rows: np.asarray(booster.predict(rows, num_threads=1)),
    }
    return X[cut:], predict, int(forest.best_iteration_)


def serve_forest(path: Path) -> None:
    """Serve a forest with a short FastAPI application: typed rows, and one call of predict."""
    import lightgbm as lgb
    import uvicorn
    from fastapi import FastAPI
    from pydantic import create_model

    booster = lgb.Booster(model_file=path)
    names = booster.feature_name()
    row = create_model("Row", **dict.fromkeys(names, (float | None, None)))  # type: ignore[call-overload]
    body = create_model("Body", rows=(list[row], ...))  # type: ignore[valid-type]
    app = FastAPI()

    @app.post("/predict")
    async def predict(asked: body) -> dict[str, list[float]]:  # type: ignore[valid-type]
        rows = [[getattr(one, name) for name in names] for one in asked.rows]  # type: ignore[attr-defined]
        found = booster.predict(np.array(rows, dtype=np.float64), num_threads=1)
        return {"predictions": found.tolist()}

    config = uvicorn.Config(app, port=0, log_level="warning", access_log=False)
    server = uvicorn.Server(config)

    async def announce() -> None:
        work = asyncio.create_task(server.serve())
        while not server.started:
            await asyncio.sleep(0.01)
        print(f"on http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", file=sys.stderr, flush=True)
        await work

    asyncio.run(announce())


@contextmanager
def serving(*command: object) -> Iterator[int]:
    """Start a server in a process of its own and yield its port."""
    process = subprocess.Popen([sys.executable, *map(str, command)], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if "http://127.0.0.1:" in line:
                yield int(line.split("http://127.0.0.1:")[1].split()[0])
                break
        else:
            raise RuntimeError("the server said no address")
    finally:
        process.terminate()
        process.communicate(timeout=30)


def run(folder: Path, table: Any, predict: dict[str, Predict], given: argparse.Namespace) -> list[str]:
    """Return the lines of the table."""
    lines = []
    here = ["-m", "benchmarks.serve_load", "--data", folder, "--forest", folder / "forest.txt"]
    served = ["-m", "nae.cli", "serve", folder / "housing.nae", "--port", "0"]
    with serving(*served) as plain, serving(*served, "--compile") as compiled, serving(*here) as forest:
        ports = {"`nae serve`": plain, "`nae serve --compile`": compiled, FOREST: forest}
        for n_rows in (1, 100):
            found: dict[str, list[Load]] = {name: [] for name in ports}
            for _ in range(given.rounds):
                for name, port in ports.items():
                    bodies = make_bodies(table, predict["lightgbm" if name == FOREST else "nae"], n_rows)
                    found[name].append(asyncio.run(ask(port, bodies, given.seconds, given.connections)))
            lines += [_line(name, n_rows, loads, found[FOREST]) for name, loads in found.items()]
    return lines


def make_bodies(table: Any, predict: Predict, n_rows: int) -> list[tuple[bytes, np.ndarray]]:
    """Return requests and the expected answers."""
    bodies = []
    for i in range(N_BODIES):
        rows = table.sample(n_rows, random_state=i)
        content = json.dumps({"rows": rows.to_dict("records")}).encode()
        lines = ["Host: localhost", "Content-Type: application/json", f"Content-Length: {len(content)}", "", ""]
        bodies.append(("\r\n".join(["POST /predict HTTP/1.1", *lines]).encode() + content, predict(rows)))
    return bodies


async def ask(port: int, bodies: list[tuple[bytes, np.ndarray]], seconds: float, n_connections: int) -> Load:
    """Send requests over several connections for some time, after a second of warm-up."""
    known: list[bytes | None] = [None] * len(bodies)
    times: list[float] = []
    n_wrong = n_dropped = 0
    start = time.perf_counter() + 1.0
    end = start + seconds

    async def connection(first: int) -> None:
        nonlocal n_wrong, n_dropped
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        i = first
        while (before := time.perf_counter()) < end:
            request, expected = bodies[i]
            try:
                writer.write(request)
                answer = await _read_answer(reader)
            except (ConnectionError, EOFError):
                n_dropped += 1
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            if before >= start:
                times.append(time.perf_counter() - before)
            if known[i] is None:  # parsed once, compared as bytes afterwards
                is_right = np.allclose(json.loads(answer).get("predictions", np.nan), expected, rtol=1e-5)
                known[i] = answer if is_right else None
            n_wrong += known[i] != answer
            i = (i + 1) % len(bodies)
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(connection(k * len(bodies) // n_connections) for k in range(n_connections)))
    return Load(times, seconds, n_wrong, n_dropped)


async def _read_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    return await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))


def raise_file_limit() -> None:
    """Allow this process and its children to open as many files as the system permits."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def run_in_company(folder: Path, table: Any, predict: Predict, given: argparse.Namespace) -> list[str]:
    """Measure one server alone and in company, in turns, and return the lines of the table."""
    bodies, seconds = make_bodies(table, predict, 1), LONGER * given.seconds
    alone, beside, seen = [], [], []
    with serving("-m", "nae.cli", "serve", folder / "housing.nae", "--port", "0") as port:
        for _ in range(given.rounds):
            alone.append(asyncio.run(ask(port, bodies, seconds, given.connections)))
            with company(port, bodies[0][0], Company(given.idle, given.slow)) as others:
                beside.append(asyncio.run(ask(port, bodies, seconds, given.connections)))
            seen.append(others)
    answered, dropped = (sum(getattr(one, f"n_slow_{what}") for one in seen) for what in ("answered", "dropped"))
    return [
        _company_line("alone", alone, alone, ""),
        _company_line(f"{given.idle} idle, {given.slow} slow", beside, alone, f"{dropped} of {answered + dropped:,}"),
    ]


def _company_line(name: str, loads: list[Load], alone: list[Load], slow: str) -> str:
    rate = np.median([load.rate for load in loads])
    half, tail = (np.median([load.quantile(level) for load in loads]) for level in (0.5, 0.99))
    later = np.median([one.quantile(0.99) / two.quantile(0.99) for one, two in zip(loads, alone, strict=True)])
    failed, total = (sum(load.n_wrong + load.n_dropped for load in loads), sum(len(load.seconds) for load in loads))
    return f"| {name} | {rate:,.0f} | {half:.1f} | {tail:.1f} | {later:.2f} | {failed} of {total:,} | {slow} |"


def _line(name: str, n_rows: int, loads: list[Load], forest: list[Load]) -> str:
    rate = np.median([load.rate for load in loads])
    half, tail = (np.median([load.quantile(level) for load in loads]) for level in (0.5, 0.99))
    wrong, total = sum(load.n_wrong for load in loads), sum(len(load.seconds) for load in loads)
    # Ratios are computed per round, because the load of the machine changes between rounds.
    pairs = list(zip(loads, forest, strict=True))
    more = np.median([one.rate / two.rate for one, two in pairs])
    later = np.median([one.quantile(0.99) / two.quantile(0.99) for one, two in pairs])
    numbers = f"{rate:,.0f} | {more:.2f} | {half:.1f} | {tail:.1f} | {later:.2f} | {wrong} of {total:,}"
    return f"| {name} | {n_rows} | {numbers} |"


def page(
    lines: list[str], in_company: list[str], given: argparse.Namespace, n_trees: int, foreign: float | None
) -> str:
    """Return the page."""
    busy = "unknown" if foreign is None else f"{100 * foreign:.0f} %"
    return f"""# Serving under load

Housing: 8 features, 8 members of 8 experts against a forest of {n_trees} trees (early-stopped). One process each, plain
uvicorn, {given.connections} connections, {given.rounds} rounds of {given.seconds:g} s in turns; medians over rounds.
The client runs on the same machine and compares every answer with the model's own prediction.

{describe()}. Other processes took {busy} of the processors meanwhile: the ratios say more than the rates.

| server | rows a request | requests/s | of LightGBM's | p50, ms | p99, ms | of LightGBM's | wrong answers |
|---|---|---|---|---|---|---|---|
{chr(10).join(lines)}

## In company

`nae serve` with one row a request, alone and beside others by turns, {given.rounds} rounds of
{LONGER * given.seconds:g} s: idle clients open a connection and send nothing, or half a head; slow ones send the end of
a request byte by byte, within the deadlines, and read as slowly. Both come again when the server ends their connection.

| company | requests/s | p50, ms | p99, ms | of p99 alone | wrong or dropped | slow requests dropped |
|---|---|---|---|---|---|---|
{chr(10).join(in_company)}

Made by `python -m benchmarks.serve_load`.
"""


if __name__ == "__main__":
    main()
