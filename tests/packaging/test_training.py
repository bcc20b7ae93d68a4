"""The wheel with the extra ``train``: what a new user installs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nae.native import build, library
from tests.packaging.commands import ROOT, make_environment, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(build.compiler() is None, reason="there is no C++ compiler"),
]
MOST_MEGABYTES = 260  # without bytecode, which adds a third
FIT = "import nae; X, y = nae.datasets.multimodal(100); nae.NAERegressor(max_epochs=2).fit(X, y)"


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_environment(tmp_path_factory.mktemp("train"), f"neural-additive-experts[train] @ {wheel.as_uri()}")


@pytest.fixture
def without_core(python: Path) -> Iterator[Path]:
    code = "from nae.native import library; print(library.PATH)"
    core = Path(run(python, "-I", "-c", code).stdout.strip())
    beside = core.rename(core.with_suffix(".away"))
    yield python
    beside.rename(core)


def test_it_brings_sklearn_and_rich_and_no_torch(python: Path) -> None:
    code = "import importlib.util as u; print(*(n for n in ('torch', 'sklearn', 'rich', 'pandas') if u.find_spec(n)))"
    assert run(python, "-I", "-c", code).stdout.split() == ["sklearn", "rich"]


def test_it_is_small(python: Path) -> None:
    size = sum(path.lstat().st_size for path in python.parents[1].rglob("*"))
    assert 10 < size / 1e6 < MOST_MEGABYTES


def test_a_model_is_fitted_saved_loaded_and_explained(python: Path) -> None:
    assert run(python, "-I", ROOT / "tests" / "packaging" / "smoke.py").stdout.strip() in library.INSTRUCTIONS[1:]


def test_without_the_core_one_sentence_says_what_is_missing_and_how_to_install_it(without_core: Path) -> None:
    code = f"try:\n    {FIT}\nexcept ImportError as error:\n    print(error)"
    said = run(without_core, "-I", "-c", code).stdout.strip()
    assert said.startswith("Training needs the native core or torch")
    assert "`python -m nae.native.build`" in said
    assert "pip install 'neural-additive-experts[gpu]'" in said
    assert "\n" not in said
