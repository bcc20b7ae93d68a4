"""Which part of the library may import which, read from the source without running it."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# A part imports parts that stand before it, and itself.
ORDER = (
    "errors",
    "_files",
    "_typing",
    "_optional",
    "_random",
    "_words",
    "_warnings",
    "links",
    "contributions",
    "parameters",
    "presets",
    "datasets",
    "encoding",
    "tables",
    "quality",
    "explanation",
    "metrics",
    "network",
    "training",
    "scanning",
    "estimators",
    "plots",
    "interop",
    "export",
    "report",
    "serving",
    "tuning",
    "scale",
    "cli",
)
# What reads a model must not know how it was trained.
READERS = ("plots", "interop", "export", "report", "serving")
TRAINERS = ("network", "training", "scanning", "estimators")
# Upward, and only inside a function: a method that is named on an object and done further down.
DEFERRED = {
    ("explanation", "interop"),  # an explanation turns itself into another package's
    ("explanation", "plots"),  # and draws itself
    ("tables", "explanation"),  # a model explains itself
}
# Packages that only some parts may import.
OWNERS = {
    "torch": (*TRAINERS, "tuning", "scale"),
    "sklearn": (*TRAINERS, "interop", "tuning", "scale", "cli"),
    "matplotlib": ("plots",),
    "plotly": ("plots", "interop", "report"),
    "pandas": (),
    "polars": (),
    "pickle": (),
    "cloudpickle": (),
    "joblib": (),
}


@dataclass(frozen=True)
class Import:
    """One import: the part and file it stands in, and what it asks for."""

    part: str
    file: str
    line: int
    module: str
    is_deferred: bool


def violations(package: Path) -> list[str]:
    """Return every import under ``package`` that goes in a direction it must not."""
    found = []
    for path in sorted(package.rglob("*.py")):
        if path != package / "__init__.py":  # the public surface knows all of it, lazily
            found += [complaint for one in _imports(package, path) if (complaint := _complaint(package.name, one))]
    return found


def _imports(package: Path, path: Path) -> Iterator[Import]:
    part = path.relative_to(package).with_suffix("").parts[0]
    file = path.relative_to(package.parent).as_posix()
    for node, is_deferred in _import_nodes(ast.parse(path.read_text()), is_deferred=False):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif node.module == package.name:  # from nae import metrics
            modules = [f"{package.name}.{alias.name}" for alias in node.names]
        else:
            modules = [node.module or "."]
        for module in modules:
            yield Import(part, file, node.lineno, module, is_deferred)


def _import_nodes(tree: ast.AST, *, is_deferred: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, is_deferred
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            inside = is_deferred or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _import_nodes(node, is_deferred=inside)


def _complaint(package: str, one: Import) -> str | None:
    where = f"{one.file}:{one.line} ({one.part}) imports {one.module}"
    top, _, rest = one.module.partition(".")
    if top != package:
        owners = OWNERS.get(top)
        return None if owners is None or one.part in owners else f"{where}, which only {list(owners)} may"
    target = rest.partition(".")[0]
    if target in ("__version__", one.part):
        return None
    if one.part not in ORDER or target not in ORDER:
        return f"{where}; name both parts in ORDER"
    if one.part in READERS and target in TRAINERS:
        return f"{where}: what reads a model must not know how it was trained"
    if ORDER.index(target) < ORDER.index(one.part) or (one.is_deferred and (one.part, target) in DEFERRED):
        return None
    return f"{where}, which stands further down"
