# Everything from nothing: `make demo` and `make test` need only Python 3.11+.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo test trust sabotage bench clean

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

test: .venv/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

# The long version of tests/trust: faults, fuzzing and simulations in numbers (docs/promises.md), about an hour.
trust: .venv/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.trust -n 2 --dist worksteal

# Breaks every promise on purpose, in copies of the tree, and sees that its test fails; about half an hour.
sabotage: .venv/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.sabotage

bench: .venv/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

clean:
	rm -rf .venv demo
