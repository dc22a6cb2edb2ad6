# Two commands on a fresh machine: `make demo` and `make test`. Both make their own environment.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
OUT ?= demo
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint types arrows clean

demo: $(VENV)/.demo
	$(BIN)/demur demo --out $(OUT)

test: $(VENV)/.test lint types arrows
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

arrows: $(VENV)/.test
	$(BIN)/lint-imports

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "demur needs Python 3.11 or newer; set PYTHON=/path/to/one" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing demur and what it needs into $(VENV) ..."
	$(PIP) -e ".[cli,plot]"
	@touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing demur and its test tools into $(VENV) ..."
	$(PIP) -e ".[test]"
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) $(OUT) dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
