# Needs Python 3.11 or newer and make; everything else goes into .venv.

VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# The first that is new enough. PYTHON=/path/to/python makes another choice.
NEW    := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	$$name -c '$(NEW)' 2>/dev/null && echo $$name && break; done)
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
ARGS   ?=

.PHONY: help demo test test-clients check bench bench-all lock dashboards clean setup

help: ## Show this text.
	@echo 'make TARGET [ARGS="…"]'
	@echo
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

demo: $(READY) ## Two simulated engines, the gateway, traffic and a live table: ARGS="--help".
	@$(BIN)/gateway demo $(ARGS)

test: $(READY) ## Every test; what needs a missing program or service is skipped and named.
	$(BIN)/python -m pytest $(ARGS)

test-clients: $(READY) ## Claude Code, Codex and other real agents (npm) through the gateway.
	$(BIN)/python -m pytest tests/real_clients -m clients $(ARGS)

check: $(READY) ## Lint, format, types, the rules of who imports whom, and the lock file.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --quiet tests/test_packaging.py

bench: $(READY) ## What the gateway costs beside nginx and other gateways: docs/benchmarks.md.
	$(BIN)/python -m benchmarks $(ARGS)

bench-all: bench ## The same, then translation, memory, departing clients and scrapes.
	$(BIN)/python -m benchmarks.translation
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.disconnect
	$(BIN)/python -m benchmarks.scrape

lock: $(READY) ## Pin what pyproject.toml asks for: ARGS=--upgrade takes newer versions.
	$(PIP) install --target $(VENV)/lock --upgrade uv
	$(VENV)/lock/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--no-header --no-annotate pyproject.toml --group dev \
		--output-file requirements.lock $(ARGS)

dashboards: $(READY) ## Write grafana/dashboards from grafana/source.
	$(BIN)/python -m grafana.source

clean: ## Remove the environment and everything that tools left behind.
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup: $(READY) ## Create .venv; the other targets do so when they need it.

$(READY): requirements.lock pyproject.toml
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or newer is needed, but neither python3 nor' \
		'python3.11 to python3.13 is. Install it, or say where it is: make PYTHON=…' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo '$(PYTHON) cannot create virtual' \
		'environments. On Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@echo 'Installing the pinned packages into $(VENV), once: about a minute.'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes --requirement requirements.lock
	@$(PIP) install --no-index --no-deps --no-build-isolation --editable .
	@touch $@
