# Thin targets; the logic is in the tools they call. Needs Python 3.11 or later and nothing else.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup compiled demo test check bench pins

setup: .venv/installed

.venv/installed: pyproject.toml requirements/dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

# An editable install is compiled by nobody, and every test and demo starts processes.
compiled: setup
	@$(BIN)/python -m compileall -q src

demo: compiled
	@$(BIN)/agent-memory demo

test: compiled
	$(BIN)/pytest

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: compiled
	$(BIN)/python bench/startup.py
	$(BIN)/python bench/calls.py
	$(BIN)/python bench/search.py
	$(BIN)/python bench/rest.py
	$(BIN)/python bench/transfer.py
	$(BIN)/python bench/memory_graph.py
	$(BIN)/python bench/providers.py

pins:
	uv export --quiet --format requirements-txt --no-hashes --no-emit-project --no-annotate --no-header --all-groups --output-file requirements/dev.txt
	uv export --quiet --format requirements-txt --no-hashes --no-emit-project --no-annotate --no-header --no-dev --output-file requirements/run.txt
