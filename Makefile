# Everything from nothing: `make demo` and `make test` need only Python 3.11+.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo figures lint test coverage test-lowest trust sabotage bench clean

install: .venv/.installed

# torch first and by its pin: an open range would pull gigabytes of CUDA packages.
.venv/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

.venv/.installed-test: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	touch $@

demo: install
	$(BIN)/eber reproduce parametric --seeds 3 --out demo

# The diagrams of the documentation, docs/figures.
figures: install
	$(BIN)/python docs/diagrams.py

lint: .venv/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# The tests with the lines that none of them runs; apart from `make test`, since counting costs half as much again.
coverage: .venv/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --cov

# The lowest versions that pyproject.toml admits (constraints-lowest.txt), in an environment of their own.
LOWEST := tests/tables tests/cli tests/compare tests/report tests/evaluation tests/leaks tests/method tests/nn tests/io \
	tests/objectives tests/estimators tests/datasets tests/test_model_selection.py tests/test_training.py

.venv-lowest/.installed: pyproject.toml constraints-lowest.txt
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt torch
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt \
		--editable '.[data]' pytest pytest-xdist hypothesis pypdf
	touch $@

test-lowest: .venv-lowest/.installed
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -n 2 --dist worksteal $(LOWEST)

# The long version of tests/trust: faults, fuzzing and simulations in numbers (docs/promises.md), about an hour.
trust: .venv/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.trust -n 2 --dist worksteal

# Breaks every promise on purpose, in copies of the tree, and sees that its test fails; about half an hour.
sabotage: .venv/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.sabotage

bench: .venv/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

clean:
	rm -rf .venv .venv-lowest demo
