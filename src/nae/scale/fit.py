"""``fit_ray``: fit one model to a Ray dataset with many workers, which take the same steps as one process."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from nae._optional import require
from nae.errors import ConfigError, DataError, NAEError, did_you_mean
from nae.estimators import NAEClassifier, NAERegressor
from nae.scale.checkpoints import RayCheckpoints, open_storage, read_model, report_error, report_model
from nae.scale.cluster import connect
from nae.scale.rows import open_rows
from nae.scale.shard import ShardFiles
from nae.scanning.scan import Scan
from nae.tables import TableModel

__all__ = ["fit_ray", "fit_worker"]

_TASKS = ("auto", "regression", "classification")
_DATASET = "train"


def fit_ray(
    dataset: Any,
    target: str,
    params: Mapping[str, Any] | None = None,
    scaling_config: Any = None,
    *,
    task: str = "auto",
    ignore: Sequence[str] = (),
    sample_weight: str | None = None,
    offset: str | Sequence[str] | None = None,
    address: str | None = None,
    storage_path: str | None = None,
    name: str | None = None,
    max_failures: int = 3,
) -> TableModel:
    """Fit a model on a Ray cluster.

    Each worker reads its part of the dataset, and the merged sketches of all parts give the knots. Every step averages
    the gradients and the statistics of its penalties over all workers, so it equals the step of one process.

    Parameters
    ----------
    dataset
        A ``ray.data.Dataset``, or a path, pattern or folder of Parquet, Arrow or delimited text that all machines can
        read.
    target
        The column to predict. All columns that are not named below are features.
    params
        Parameters of the estimator. ``batch_size`` is the number of rows of all workers together.
    scaling_config
        A ``ray.train.ScalingConfig``, or the number of workers. If None, one per GPU, or one per two processors.
    task : {'auto', 'regression', 'classification'}
        'auto' chooses a regression if the column contains numbers.
    ignore
        Columns that are not features.
    sample_weight
        The column of weights. Weight 2 counts the row twice, weight 0 leaves it out.
    offset
        The column that is added to the score, or one column per output.
    address
        The address of the cluster. If None, a Ray is started on this machine. An existing connection is reused.
    storage_path
        The place for checkpoints: a folder that all workers can reach, or a URI that Arrow or fsspec knows, such as
        ``s3://bucket/runs``.
    name
        The name of the run. With the same name and storage, an interrupted run continues.
    max_failures
        The largest number of restarts from the last checkpoint after a worker was lost.

    Returns
    -------
    TableModel
        The same model as a fit in one process, except for the order of sums and of the rows.
    """
    if task not in _TASKS:
        raise ConfigError(f"task must be one of {list(_TASKS)}; got {task!r}.{did_you_mean(task, _TASKS)}")
    with connect(address) as ray:
        offsets = (offset,) if isinstance(offset, str) else tuple(offset or ())
        named = (target, *offsets, *((sample_weight,) if sample_weight else ()))
        rows, schema = open_rows(dataset, needed=named, ignored=ignore)
        is_classes = _predicts_classes(schema.field(target).type, task, target)
        trainer = _trainer(
            rows,
            {
                "estimator": _estimator(params or {}, is_classes=is_classes),
                "target": target,
                "sample_weight": sample_weight,
                "offset": offsets or None,
                "schema": schema,
            },
            _scaling(ray, scaling_config),
            storage_path=storage_path,
            name=name,
            max_failures=max_failures,
        )
        return read_model(trainer.fit())


def fit_worker(config: dict[str, Any]) -> None:
    """Fit together with the other workers of a run, and leave the model or the error in its storage."""
    torch = require("torch", extra="gpu")
    from nae.engines.torch.together import Together

    train, workers = require("ray.train", extra="scale"), Together()
    device = require("ray.train.torch", extra="scale").get_device()  # workers on one machine see all its GPUs
    if device.type == "cuda":
        torch.cuda.set_device(device)
    estimator = config["estimator"].set_params(device=str(device))
    name = f"the part of worker {workers.rank + 1} of {workers.count}"
    files = ShardFiles(train.get_dataset_shard(_DATASET), config["schema"], name=name)
    try:
        estimator.fit_share(
            Scan(files, files.column_names),
            config["target"],
            sample_weight=config["sample_weight"],
            offset=config["offset"],
            workers=workers,
            checkpoints=RayCheckpoints(workers.rank),
        )
    except NAEError as error:  # a restart would read the same rows
        report_error(error, rank=workers.rank)
    else:
        report_model(estimator.model_, rank=workers.rank)


def _trainer(
    rows: Any,
    config: dict[str, Any],
    scaling: Any,
    *,
    storage_path: str | None,
    name: str | None,
    max_failures: int,
) -> Any:
    train, ray_torch = require("ray.train", extra="scale"), require("ray.train.torch", extra="scale")
    options = require("ray.data", extra="scale").ExecutionOptions(preserve_order=True)
    path, system = open_storage(storage_path)
    return ray_torch.TorchTrainer(
        fit_worker,
        train_loop_config=config,
        scaling_config=scaling,
        run_config=train.RunConfig(
            name=name,
            storage_path=path,
            storage_filesystem=system,
            failure_config=train.FailureConfig(max_failures=max_failures),
            checkpoint_config=train.CheckpointConfig(num_to_keep=1),
        ),
        # Tensors on GPUs are sent between GPUs, everything else (surveys, samples) between processors.
        torch_config=ray_torch.TorchConfig(backend="cpu:gloo,cuda:nccl" if scaling.use_gpu else "gloo"),
        datasets={_DATASET: rows},
        # A restart must give the same rows to the same workers, because members hold some of them out.
        dataset_config=train.DataConfig(execution_options=options),
    )


def _estimator(params: Mapping[str, Any], *, is_classes: bool) -> NAEClassifier | NAERegressor:
    estimator = NAEClassifier() if is_classes else NAERegressor()
    known = estimator.get_params()
    for name in params:
        if name not in known:
            raise ConfigError(f"{type(estimator).__name__} has no parameter {name!r}.{did_you_mean(name, known)}")
    estimator.set_params(**params)
    return estimator


def _predicts_classes(kind: pa.DataType, task: str, target: str) -> bool:
    is_number = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)
    if task == "regression" and not is_number:
        raise DataError(f"The target {target!r} must hold numbers for a regression; it holds {kind}.")
    return task == "classification" or not is_number


def _scaling(ray: Any, given: Any) -> Any:
    """Return the number of workers and their resources; some processors remain to read the data."""
    config = require("ray.train", extra="scale").ScalingConfig
    if given is not None and not isinstance(given, int):
        return given
    resources = ray.cluster_resources()
    n_gpus, n_cpus = int(resources.get("GPU", 0)), int(resources.get("CPU", 1))
    n_workers = given or n_gpus or max(1, n_cpus // 2)
    has_gpus = n_gpus >= n_workers
    if not has_gpus and n_workers >= n_cpus:  # Ray would wait forever
        raise ConfigError(
            f"{n_workers} workers need {n_workers + 1} processors, one of them to read the rows; the cluster has "
            f"{n_cpus}. Use fewer workers, or pass a ScalingConfig."
        )
    return config(num_workers=n_workers, use_gpu=has_gpus)
