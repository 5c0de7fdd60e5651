# Loopscope: `make run` on a fresh machine needs Python 3.11 or newer, make and pip, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CASES ?=
MODEL ?=
ARGS ?=
SECONDS ?= 3600
MUTANTS ?= 30
# As many processes as there are cores; a process that has nothing left takes tests from another.
PARALLEL := --numprocesses auto --dist worksteal
# A process that drives a browser waits half of the time, so that there is one more than cores.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
BROWSERS := --numprocesses $(shell expr $(CORES) + 1) --dist worksteal
QUICK := not browser and not oracle and not chance and not slow and not measured
RULES := tests/test_prose.py tests/test_architecture.py tests/test_map.py
# Tests start hundreds of processes: with our modules compiled each starts in half of the time.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install run check test frameworks wheels search mutation coverage lint types style docs vscode conformance benchmarks screenshots clean

help: ## list these targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1|/' | while IFS='|' read -r name text; do printf '  make %-13s %s\n' "$$name" "$$text"; done

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The stamps say what was installed from which files, so that a second `make install` costs nothing.
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(VENV)/.installed $@

install: $(VENV)/.installed ## make .venv and install Loopscope

run: install ## open the app in the browser on a sample (MODEL=path opens it on that model, ARGS=... are passed on)
	$(BIN)/loopscope $(if $(MODEL),"$(MODEL)",--sample) $(ARGS)

lint: $(VENV)/.installed-dev ## style and types, of Python and JavaScript, and the quick tests of JavaScript
	@$(MAKE) --no-print-directory --jobs 2 types style

wheels: $(VENV)/.installed-dev # the frameworks download beside the checks, which use the processor
	@$(BIN)/python -m tests.frameworks --install

types: $(VENV)/.installed-dev
	$(BIN)/mypy

style: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m tests.javascript check
	$(BIN)/python -m tests.javascript test

check: lint ## what to run after every change: style, types and the fast tests of the engine, in under a minute
	$(BIN)/python -m pytest $(PARALLEL) tests/engine engine $(RULES) -m "$(QUICK)"

test: $(VENV)/.installed-dev ## style, types and all tests, those in a real browser included
	@sh tests/chromium.sh
	@$(MAKE) --no-print-directory --jobs 3 wheels types style
	$(BIN)/python -m pytest $(PARALLEL) -m "not browser and not measured"
	$(BIN)/python -m tests.second_chance $(BROWSERS)
	@$(MAKE) --no-print-directory frameworks

frameworks: $(VENV)/.installed-dev ## tests with PyTorch and TensorFlow, where their CPU wheels can be installed
	$(BIN)/python -m tests.frameworks

search: $(VENV)/.installed-dev ## draw models and inputs with new seeds for an hour (SECONDS=n: another time)
	$(BIN)/python -m tests.draws $(SECONDS)

mutation: $(VENV)/.installed-dev ## change operators and numbers of the machine, and list what no test notices (MUTANTS=n per file)
	$(BIN)/python -m tests.mutation $(MUTANTS)

# Only tests that draw nothing and ask no runtime: their lines are the same in every run, so that the floor of pyproject.toml is exact.
coverage: $(VENV)/.installed-dev ## lines that the quick tests reach: print the others, and fail below the floor
	$(BIN)/python -m pytest $(PARALLEL) -m "$(QUICK)" --timeout 900 --cov --cov-report=term-missing

docs: $(VENV)/.installed-dev ## build the site with its living pages in build/docs
	$(BIN)/python -m docs build/docs
	@echo "$(BIN)/python -m http.server --directory build/docs serves it"

vscode: ## package the extension for VS Code in build/loopscope.vsix (npm is needed)
	@mkdir -p build && cp LICENSE app/loopscope_app/assets/icon.png app/vscode/
	cd app/vscode && npx --yes @vscode/vsce@3 package --no-dependencies --out ../../build/loopscope.vsix

conformance: $(VENV)/.installed-dev ## run a folder of recorded models against the engine: make conformance CASES=folder
	@test -n "$(CASES)" || { echo "say where the cases are: make conformance CASES=folder"; exit 2; }
	$(BIN)/python -m tests.conformance "$(CASES)" $(ARGS)

benchmarks: install $(VENV)/.installed-dev ## measure the engine and the screens
	@missed=0; for file in tests/benchmarks/[a-z]*.py; do name=$$(basename "$$file" .py); echo "== $$name"; $(BIN)/python -m "tests.benchmarks.$$name" || missed=1; done; exit $$missed

screenshots: install $(VENV)/.installed-dev ## take the pictures of README and gallery anew
	$(BIN)/python -m tests.screenshots

clean: ## remove what was installed and built
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
