"""What training costs as the paper measures it: 5,000 rows, 100 epochs, and the size of the network."""

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.paper.runs import PAPER, Run
from benchmarks.paper.store import Report
from benchmarks.paper.tables import COST_ROWS, SMOKE_FEATURES, SMOKE_ROWS

if TYPE_CHECKING:
    from nae.network import Network, NetworkConfig
    from nae.training import TrainingRows

__all__ = ["N_EPOCHS", "count_parameters", "time_training"]

N_EPOCHS = 100
BATCH = 2048
HIDDEN = 128
N_BLOCKS = 4


def count_parameters(n_features: int, *, n_experts: int, hidden_dim: int = HIDDEN, variant: str = "nae") -> int:
    """Return how many numbers the paper's network learns, counted on the network itself."""
    import torch

    with torch.device("meta"):  # sizes only: the largest has a thousand million
        network = _network(n_features, _config(n_experts, hidden_dim, variant))
    return sum(parameter.numel() for parameter in network.parameters())


def time_training(run: Run, *, device: str) -> Report:
    """Train the network of a run on random numbers and time its epochs: no tables are made, nothing is predicted."""
    import torch

    from nae.training import TrainingConfig, make_loss, train

    n_features, n_experts = int(dict(run.options)["n_features"] or 1), int(dict(run.settings)["n_experts"] or 1)
    n_rows, n_epochs, hidden = (SMOKE_ROWS, 2, 8) if run.is_smoke else (COST_ROWS, N_EPOCHS, HIDDEN)
    if run.is_smoke:
        n_features = min(n_features, SMOKE_FEATURES)
    is_paper, is_cuda = run.model == PAPER, device.startswith("cuda")
    network, rows = _made(n_features, n_experts, n_rows, hidden, is_paper=is_paper, device=device)
    if is_cuda:
        torch.cuda.reset_peak_memory_stats()
    training = TrainingConfig(
        batch_size=BATCH if is_paper else 256,
        max_epochs=n_epochs,
        variation_penalty=0.1,
        schedule="cosine" if is_paper else "plateau",
    )
    history = train(
        network, rows, None, make_loss("squared"), training, generator=torch.Generator().manual_seed(run.seed)
    )
    n_parameters = sum(parameter.numel() for parameter in network.parameters())
    return Report(
        run,
        fit_seconds=float(history.column("seconds")[-1]),
        n_parameters=n_parameters,
        parameters_mb=4 * n_parameters / 2**20,
        device_memory_mb=torch.cuda.max_memory_allocated() / 1e6 if is_cuda else None,
        n_train=n_rows,
        n_features=n_features,
        n_epochs=n_epochs,
        device=torch.cuda.get_device_name() if is_cuda else "CPU",
        versions={"torch": torch.__version__},
    )


def _config(n_experts: int, hidden_dim: int, variant: str) -> "NetworkConfig":
    from nae.network import NetworkConfig

    gate, routing = ("diagonal", "gumbel") if variant == "nae-d" else ("additive", "softmax")
    return NetworkConfig(
        encoder="mlp", gate=gate, routing=routing, n_experts=n_experts, n_active=n_experts, n_members=1,
        n_blocks=N_BLOCKS, hidden_dim=hidden_dim,
    )  # fmt: skip


def _network(n_features: int, config: "NetworkConfig") -> "Network":
    import torch

    from nae.network import Network

    return Network(config, np.zeros((n_features, 2, 1)), 1, generator=torch.Generator())


def _made(
    n_features: int, n_experts: int, n_rows: int, hidden: int, *, is_paper: bool, device: str
) -> "tuple[Network, TrainingRows]":
    """Return a network and its rows: the paper's, or the default with its eight members."""
    import torch

    from nae.encoding import Columns, build_schema, infer_kinds
    from nae.network import Network, NetworkConfig, piecewise_inputs
    from nae.network.cells import RowCells
    from nae.network.inputs import quantile_inputs
    from nae.training import TrainingRows
    from nae.training.assemble import padded_slots

    random = np.random.default_rng(0)
    X = random.standard_normal((n_rows, n_features))
    columns = Columns(tuple(X.T))
    n_knots = 256 if is_paper else max(32, min(128, 8192 // n_features))
    schema = build_schema(columns, infer_kinds(columns), np.ones(n_rows), n_knots=n_knots)
    cells = schema.locate(columns, dtype=np.float32)
    rows = TrainingRows(
        RowCells(torch.as_tensor(padded_slots(schema)[cells.slot]), torch.as_tensor(cells.fraction)),
        torch.as_tensor(X[:, :1], dtype=torch.float32),
        torch.ones(n_rows),
        None,
    )
    if is_paper:
        config, inputs = _config(n_experts, hidden, "nae"), quantile_inputs(schema, columns, random)
    else:
        gate = "low-rank" if n_features * n_experts > 128 else "additive"
        config = NetworkConfig(gate=gate, n_experts=n_experts, n_active=n_experts, n_members=8, hidden_dim=32)
        inputs = piecewise_inputs(schema, 48)
    network = Network(config, inputs, 1, generator=torch.Generator().manual_seed(0))
    return network.to(device), rows.to(torch.device(device))
