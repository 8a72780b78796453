# make demo: attack a shipped digits network and draw the result.
# make test: lint, types, import rules, hooks and all tests.
# Each makes its own virtual environment; nothing is installed elsewhere.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test clean

demo: .venv/demo-installed
	OMP_NUM_THREADS=1 $(BIN)/facetwalk demo --out out/demo

test: .venv/test-installed
	$(BIN)/pre-commit run --all-files
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

.venv/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "facetwalk needs Python 3.11 or newer"'
	$(PYTHON) -m venv .venv

.venv/demo-installed: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[demo]'
	touch $@

.venv/test-installed: .venv/bin/python pyproject.toml constraints.txt requirements-dev.txt requirements-peers.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all,foolbox,art,control]' --requirement requirements-dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements-peers.txt
	touch $@ .venv/demo-installed

clean:
	rm -rf .venv out .pytest_cache .ruff_cache .hypothesis .import_linter_cache
