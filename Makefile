# Two commands: `make demo` and `make test`. Both need python3 (3.11 or newer) and build their own .venv.
PYTHON ?= python3
JOBS ?= 2

BIN := .venv/bin
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --constraint constraints.txt
# Where there is a C++ compiler, the native core is built if its sources are newer; where there is none, it says so.
CORE := $(BIN)/python -m nae.native.build
# tests/scheduling.py says which tests stay in one process. Bytecode is written: tests start many processes.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --numprocesses $(JOBS)

.PHONY: gallery reproduce demo test test-fast test-slow check format clean

demo: .venv/demo.stamp ## train on two tables, print the results, draw them into demo/
	@$(CORE) && $(BIN)/python -c 'import sys, nae.native; sys.exit(not nae.native.is_here())' || $(INSTALL) --editable '.[gpu]'
	$(BIN)/python examples/demo.py

test: test-fast test-slow ## all tests

test-fast: .venv/dev.stamp
	@$(CORE)
	$(PYTEST) -m "not slow"

test-slow: .venv/dev.stamp
	@$(CORE)
	$(PYTEST) -m slow

gallery: .venv/dev.stamp ## draw docs/gallery from the tables in $$NAE_DATA
	$(BIN)/python -m benchmarks.gallery

reproduce: .venv/dev.stamp ## what fits on a laptop of the paper's experiments, and the page of all
	$(BIN)/python -m benchmarks paper all --laptop

check: .venv/dev.stamp ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/dev.stamp ## format the sources, and correct what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what the other targets made
	rm -rf .venv demo dist src/nae/native/_core.* .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/demo.stamp: .venv/base.stamp pyproject.toml constraints.txt
	$(INSTALL) --editable '.[train,plots]'
	@touch $@

.venv/dev.stamp: .venv/base.stamp pyproject.toml constraints.txt
	$(INSTALL) --editable '.[train,plots,plotly,cli,serve]' --group dev
	@touch $@

# Build backends go in first: without isolation, the package and what comes as source are built with the pinned ones.
.venv/base.stamp: constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"Python 3.11 or newer is needed; {sys.executable} is {v[0]}.{v[1]}. Try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade --constraint constraints.txt pip hatchling setuptools
	@touch $@
