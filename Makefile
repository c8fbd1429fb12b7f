# Everything works from a bare checkout with python3 (3.11 or later, with venv) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 4
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUNTIME := $(VENV)/.runtime
TESTING := $(VENV)/.testing
AXE := tests/browser/node_modules/.package-lock.json

.PHONY: help demo test check suite crash-proof screenshots bench lock clean
.DEFAULT_GOAL := help

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(RUNTIME) ## set everything up and show the main job, live, in under a minute
	@$(BIN)/relay --output text demo $(DEMO)

test: check suite ## set everything up; lint, types, layers, and the whole suite

check: $(TESTING) ## lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

suite: $(TESTING) $(AXE) ## the tests alone; SUITE="tests/unit -k lease" picks some
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(SUITE)

crash-proof: $(TESTING) ## kill every process at every point, TRIALS=1000 times, and print what came of it
	$(BIN)/python tests/faults/crash_proof.py --trials $(TRIALS)
TRIALS ?= 1000

screenshots: $(TESTING) ## take the pictures of the console in docs/console anew
	$(BIN)/python tests/browser/screenshots.py

bench: $(TESTING) ## measure speed and memory, each figure with its floor beside it
	$(BIN)/python -m benchmarks

lock: $(TESTING) ## pin the requirements anew, with hashes and without addresses
	$(PIP) install uv
	$(BIN)/uv pip compile pyproject.toml requirements/build.in $(LOCK) -o requirements/runtime.txt
	$(BIN)/uv pip compile pyproject.toml requirements/build.in requirements/test.in $(LOCK) -c requirements/runtime.txt -o requirements/test.txt
LOCK := --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header -q

clean: ## remove what was set up
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .hypothesis tests/browser/node_modules

$(BIN)/python:
	@$(PYTHON) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) must be Python 3.11 or later with venv (on Debian: apt-get install python3-venv)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): $(BIN)/python requirements/runtime.txt pyproject.toml
	$(PIP) install --no-deps --require-hashes -r requirements/runtime.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(TESTING): $(RUNTIME) requirements/test.txt
	$(PIP) install --no-deps --require-hashes -r requirements/test.txt
	@touch $@

$(AXE): tests/browser/package-lock.json
	@command -v npm >/dev/null || { echo "make: the browser tests need npm (on Debian: apt-get install npm)"; exit 1; }
	npm --prefix tests/browser ci --silent
	@touch $@
