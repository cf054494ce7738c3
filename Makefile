# Everything from nothing: `make demo` and `make test` need only Python 3.11+.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: install demo docs figures lint test coverage test-lowest trust fuzz sabotage bench clean

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

.venv/.installed-docs: .venv/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	touch $@

# Both jobs, one after the other, in about a minute: the paper's simulation, and a table from comparison to predictions.
TABLE := demo/hospitals.csv --label sepsis --environment hospital

demo: install
	@mkdir -p demo
	@echo "1. The paper's main simulation: our figures, and the paper's below them"
	@$(BIN)/eber reproduce parametric --seeds 2 --out demo/parametric
	@printf '\n2. A table of your own: which method, a model, predictions for a hospital that nobody has seen\n'
	@$(BIN)/eber example demo/hospitals.csv --rows 1300 --force > demo/example.txt
	@$(BIN)/eber compare $(TABLE) --quick --out demo/comparison
	@$(BIN)/eber fit $(TABLE) --quick --no-scores --out demo/model
	@$(BIN)/eber predict demo/model demo/new_hospital.csv --out demo/predictions.csv --adapt
	@printf '\n%s\n' \
		'Open:  demo/comparison/report.html   which method, how sure, and what is suspicious in the data' \
		'       demo/parametric/report.html   the simulation, with figures' \
		'       demo/model/card.md            what the model was fitted on' \
		'       demo/predictions.csv          probabilities, p(e|x) and uncertainty of 300 patients' \
		'Type:  $(BIN)/eber compare YOUR.csv --label COLUMN --environment COLUMN --quick' \
		'       $(BIN)/eber --help'

# The site, build/site/index.html: examples are run, warnings are errors, links inside it are followed.
docs: .venv/.installed-docs
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W --keep-going -d build/doctrees -b html docs build/site
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -q -W -d build/doctrees -b doctest docs build/doctest
	$(BIN)/python docs/check_site.py build/site
	@echo 'Open:  build/site/index.html'

# The diagrams and pictures of the documentation, docs/figures.
figures: install
	$(BIN)/python docs/diagrams.py
	$(BIN)/python docs/pictures.py

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
		--editable '.[data,excel,scale]' pytest pytest-xdist hypothesis polars pypdf
	touch $@

test-lowest: .venv-lowest/.installed
	OMP_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -n 2 --dist worksteal $(LOWEST)

# The long version of tests/trust: faults, fuzzing and simulations in numbers (docs/promises.md), about an hour.
trust: .venv/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.trust -n 2 --dist worksteal

.venv/.installed-fuzz: .venv/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[fuzz]'
	touch $@

# Fuzzing that is guided by coverage, 20 minutes for each of its three targets; what is found lies in fuzzing/ afterwards.
fuzz: .venv/.installed-fuzz
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.trust.fuzzing

# Breaks every promise on purpose, in copies of the tree, and sees that its test fails; a little more than an hour of one core, two tests at once.
sabotage: .venv/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.sabotage

bench: .venv/.installed-test
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks

clean:
	rm -rf .venv .venv-lowest demo build docs/gallery docs/generated
