# `make` lists what there is. Everything runs in .venv, made on first use; nothing is installed twice.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PINS := constraints.txt

# The lowest versions that are allowed have an environment of their own, and tests that need no more than those.
LOWEST_VENV := .venv-lowest
LOWEST_PINS := constraints-lowest.txt
LOWEST_TESTS := tests/accounting/test_events.py tests/accounting/test_guarantee.py tests/flow tests/results tests/show \
  tests/solve tests/cli/test_command_line.py tests/cli/test_ledger_commands.py tests/ledger/test_ledger_behaviour.py \
  tests/maps/test_map_choice.py tests/maps/test_tuning.py tests/pane/test_pane_models.py tests/pane/test_pane_reader.py \
  tests/test_imports.py tests/test_schema.py tests/test_schema_reading.py tests/vault/test_failing_rows.py

# The live page is written in TypeScript. npm installs what builds and tests it, and builds it into the package; where there
# is no npm, the rest works without, and tests say what they skip.
NPM := $(shell command -v npm)
WEB_TOOLS := web/node_modules/.stamp
LIVE_PAGE := src/vitrail/live/assets/ort-wasm-simd-threaded.wasm
WEB := $(if $(NPM),$(WEB_TOOLS) $(LIVE_PAGE),without-npm)

# pip builds the project in an environment of its own; these make it honour the pins there too (old and new pip).
export PIP_CONSTRAINT = $(PINS)
export PIP_BUILD_CONSTRAINT = $(PINS)
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-gpu test-lowest lint format web pages without-npm bench bench-bands figures docs report clean
.DELETE_ON_ERROR:

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-11s %s\n", $$1, $$2 }'

demo: $(VENV)/.stamp-demo  ## explain a model of census incomes in private; writes a report to demo-output/
	$(BIN)/python examples/demo.py

# Compiled modules are kept: tests start hundreds of processes, each of which would compile them anew where a machine forbids it.
test: $(VENV)/.stamp-test $(WEB)  ## the tests, and every example in a docstring
	PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -n 2 --dist loadfile --doctest-modules src tests

test-slow: $(VENV)/.stamp-test  ## the long statistical checks
	$(BIN)/python -m pytest -m slow tests

test-gpu: $(VENV)/.stamp-test  ## the tests that need an accelerator
	$(BIN)/python -m pytest -m gpu tests

test-lowest: $(LOWEST_VENV)/.stamp  ## part of the tests, with the lowest versions that pyproject.toml allows
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(LOWEST_VENV)/bin/python -m pytest -k "not postgresql" $(LOWEST_TESTS)

lint: $(VENV)/.stamp-lint $(if $(NPM),$(WEB_TOOLS),without-npm)  ## formatting, style and types, changing nothing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/mypy --strict
	$(BIN)/mypy --config-file benchmarks/mypy.ini benchmarks
	$(if $(NPM),cd web && npm run --silent check)

pages: $(VENV)/.stamp-demo  ## the gallery: pages of a decision, a number, a class and of groups, in gallery/
	$(BIN)/python examples/gallery.py

web: $(WEB)  ## the live page, from TypeScript into the package; needs npm

format: $(VENV)/.stamp-lint  ## format the code and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.stamp-bench  ## speed of the vault; VITRAIL_DATA=FOLDER names the datasets
	$(if $(VITRAIL_DATA),VITRAIL_DATA='$(VITRAIL_DATA)' )$(BIN)/python benchmarks/vault.py

bench-bands: $(VENV)/.stamp-bench  ## how often bands hold, by explainer, data and price; writes docs/bands.md (about an hour)
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(if $(VITRAIL_DATA),VITRAIL_DATA='$(VITRAIL_DATA)' )$(BIN)/python benchmarks/bands.py
	$(BIN)/python tools/make_docs_tables.py

figures: | $(BIN)/python  ## write every figure and table of every page from benchmarks/results
	$(BIN)/python tools/make_docs_tables.py

# Notebooks are run where their source changed: their noise is as it came. Blocks of pages have the same noise in every run.
docs: figures $(VENV)/.stamp-docs $(VENV)/.stamp-test  ## the site, in site/: figures, outputs and pictures written anew (minutes)
	$(BIN)/python tools/run_notebooks.py --check || $(BIN)/python tools/run_notebooks.py
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python tools/page_blocks.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

report: figures $(VENV)/.stamp-docs  ## the technical report as a PDF, build/report.pdf; needs Chromium
	$(BIN)/python tools/make_report.py

clean:  ## remove what the other targets write, except their environments
	rm -rf demo-output gallery site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

# One stamp per extra: touched after pip succeeded, older than its inputs when there is something new to install.
$(VENV)/.stamp-%: pyproject.toml $(PINS) | $(BIN)/python
	@echo "Installing what 'make $*' needs into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet -c $(PINS) -e '.[$*]'
	@touch $@

$(WEB_TOOLS): web/package.json web/package-lock.json
	@echo "Installing what the live page needs into web/node_modules ..."
	@cd web && npm ci --silent --no-fund --no-audit
	@touch $@

# The last file that the build writes; all of web/src goes into it, so all of web/src makes it old.
$(LIVE_PAGE): $(WEB_TOOLS) web/build.mjs web/tsconfig.json $(shell find web/src -type f)
	cd web && npm run --silent build
	@touch $@

without-npm:
	@echo '!!! npm is not installed here (Debian: nodejs npm): the live page is neither built nor checked nor tested. !!!' >&2

$(LOWEST_VENV)/.stamp: pyproject.toml $(LOWEST_PINS)
	@$(PYTHON) -m venv --clear $(LOWEST_VENV)
	@echo "Installing the lowest versions into $(LOWEST_VENV) ..."
	@PIP_CONSTRAINT=$(LOWEST_PINS) $(LOWEST_VENV)/bin/python -m pip install --quiet -r $(LOWEST_PINS) -e .
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Vitrail needs Python 3.11 or newer, and '$(PYTHON)' is not (or is not there)."; \
	  echo "Name another one: make PYTHON=python3.12 demo"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
