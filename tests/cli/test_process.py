"""The command as users have it: a process of its own, real files, real signals."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from nae import __version__, load
from nae.cli.writing import write_table
from tests.cli.conftest import Command, make_table

pytestmark = pytest.mark.slow

NAE = [sys.executable, "-m", "nae.cli"]
TINY = ["--members", "1", "--epochs", "20"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def call(*words: object, stdin: bytes | None = None, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    """Run a command and check its exit code."""
    command = [*NAE, *map(str, words)]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False, env=ENVIRONMENT, timeout=120)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


def real_table(name: str, n_rows: int) -> pa.Table:
    """Return the first rows of a real table, or skip the test that asks for it."""
    folder = os.environ.get("NAE_DATA")
    if not folder:
        pytest.skip(f"NAE_DATA is not set; it names the folder of {name}.parquet")
    path = Path(folder) / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"NAE_DATA holds no {path.name}")
    return pa.parquet.read_table(path).slice(0, n_rows)


@pytest.mark.parametrize(
    ("name", "ending", "measure"),
    [
        ("concrete", "parquet", "RMSE"),
        ("telco_churn", "csv.gz", "AUC"),
        ("income", "arrow", "AUC"),
        ("ames", "tsv", "R²"),
    ],
)
def test_every_command_works_on_real_tables(tmp_path: Path, nae: Command, name: str, ending: str, measure: str) -> None:
    def ask(*words: object) -> str:
        """Run a command, for one table as a process: each takes half a second to start."""
        if name == "concrete":
            return call(*words).stdout.decode()
        code, out, err = nae(*words)
        assert code == 0, err
        return out

    data, model = tmp_path / f"{name}.{ending}", tmp_path / "m.nae"
    write_table(real_table(name, 500), str(data))
    assert measure in call("fit", data, "--target", "target", "-o", model, *TINY).stdout.decode()
    predicted = call("predict", model, "-", stdin=data.read_bytes()).stdout
    assert pa.csv.read_csv(pa.BufferReader(predicted)).num_rows == 500
    assert "What matters" in ask("explain", model)
    assert "Row 7" in ask("explain", model, data, "--row", 7)
    pair = load(model).feature_names[:2]
    assert "do together" in " ".join(ask("explain", model, "--pair", *pair).split())
    assert "Whatever the input" in ask("show", model)
    assert "no model was trained on" in ask("compare", model, model, data)
    ask("report", model, data, "-o", tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000
    ask("export", model, "-o", tmp_path / "model.json")
    assert json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))


def test_a_real_table_written_the_continental_way_gives_the_same_predictions(tmp_path: Path) -> None:
    table = real_table("concrete", 300)
    plain, other, model = tmp_path / "plain.parquet", tmp_path / "other.csv", tmp_path / "m.nae"
    pa.parquet.write_table(table, plain)
    header = ";".join(f'"{name}"' for name in table.column_names[:-1]) + ";target "
    lines = [";".join(repr(value).replace(".", ",") for value in row.values()) for row in table.to_pylist()]
    other.write_text("\ufeff" + "\r\n".join([header, *lines]), encoding="utf-8", newline="")
    call("fit", other, "--target", "target", "-o", model, *TINY)
    assert call("predict", model, plain).stdout == call("predict", model, other).stdout


def test_demo_and_doctor_run(tmp_path: Path) -> None:
    call("demo", "-o", tmp_path / "demo", "--rows", 400, "--time-limit", "2s")
    assert json.loads(call("doctor", "--json").stdout)["nae"] == __version__


def test_an_error_is_one_line_and_code_two(tmp_path: Path) -> None:
    said = call("show", tmp_path / "none.nae", code=2)
    assert said.stdout == b""
    assert said.stderr.decode() == f"error: No file is at {tmp_path / 'none.nae'}.\n"
    shown = subprocess.run([*NAE, "show", "none.nae", "--debug"], capture_output=True, check=False, env=ENVIRONMENT)
    assert shown.returncode == 2
    assert b"Traceback" in shown.stderr


def wait_until(process: subprocess.Popen[bytes], log: Path, word: str, seconds: float = 60) -> None:
    """Wait for a word on a process's stderr."""
    end = time.monotonic() + seconds
    while word not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.05)


def test_ctrl_c_keeps_the_best_model_so_far(tmp_path: Path) -> None:
    data, model, log = tmp_path / "d.parquet", tmp_path / "m.nae", tmp_path / "log"
    pa.parquet.write_table(make_table(40_000), data)
    command = [*NAE, "fit", str(data), "-t", "price", "-o", str(model), "--members", "2", "--time-limit", "10m"]
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [*command, "--epochs", "100000"], stdout=subprocess.DEVNULL, stderr=stderr, env=ENVIRONMENT
        )
        wait_until(process, log, "training; Ctrl-C ends it")
        time.sleep(1)  # a few epochs pass
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0, log.read_text()
    assert "stopping after this epoch and keeping the best model so far" in log.read_text()
    assert "(Ctrl-C)" in log.read_text()
    found = load(model)
    assert 1 <= found.training.best_epoch <= found.training.n_epochs < 100_000


def test_a_server_started_from_the_command_line_answers_and_stops(folder: Path, tmp_path: Path) -> None:
    model, log = folder / "price.nae", tmp_path / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen([*NAE, "serve", str(model), "--port", "0"], stderr=stderr, env=ENVIRONMENT)
        wait_until(process, log, "serving price on http://127.0.0.1:")
        url = log.read_text().split("serving price on ")[1].split()[0]
        with urllib.request.urlopen(f"{url}/healthz", timeout=30) as answer:  # noqa: S310
            assert json.load(answer) == {"status": "ok", "models": ["price"]}
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert log.read_text().endswith("stopped.\n")


def test_a_server_with_a_token_file_and_a_name_asks_for_both(folder: Path, tmp_path: Path) -> None:
    log, token = tmp_path / "log", tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    options = ["--port", "0", "--token-file", str(token), "--allow-host", "nae.example"]
    with log.open("wb") as stderr:
        process = subprocess.Popen([*NAE, "serve", str(folder / "price.nae"), *options], stderr=stderr, env=ENVIRONMENT)
        wait_until(process, log, "serving price on http://127.0.0.1:")
        url = log.read_text().split("serving price on ")[1].split()[0]

        def status(**headers: str) -> int:
            try:
                request = urllib.request.Request(f"{url}/model", headers=headers)  # noqa: S310
                with urllib.request.urlopen(request, timeout=30) as found:  # noqa: S310
                    return found.status
            except urllib.error.HTTPError as error:
                return error.code

        opened = {"Authorization": "Bearer 0123456789abcdef"}
        assert [status(), status(**opened), status(Host="nae.example", **opened)] == [401, 200, 200]
        assert status(Host="evil.example", **opened) == 421
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str) -> None:
    for line, expected in (("nae ex", "explain"), ("nae fit --tar", "--target")):
        words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        typed = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
        environment = {**ENVIRONMENT, **words, **typed, "_NAE_COMPLETE": f"complete_{shell}"}
        done = subprocess.run(NAE, capture_output=True, text=True, check=False, env=environment)
        assert expected in done.stdout, done.stderr


@pytest.mark.parametrize("package", ["typer", "rich", "pyarrow"])
def test_without_the_extra_the_command_prints_the_pip_line(package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from nae.cli.entry import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {package} is needed")
    assert done.stderr.endswith("pip install 'neural-additive-experts[cli]'\n")


def test_without_the_extra_of_the_server_serving_prints_the_pip_line(folder: Path) -> None:
    code = (
        "import sys; sys.modules['fastapi'] = None; from nae.cli.app import run;"
        f"sys.exit(run(['serve', {str(folder / 'price.nae')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith("pip install 'neural-additive-experts[serve]'\n")


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    data, model = folder / "homes.parquet", folder / "price.nae"
    line = " ".join([*NAE, "predict", str(model), str(data), "--contributions", "--keep", "|", "head", "-n", "1"])
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr
