# Every target does its own set-up first: .venv/, the packages, Java for Spark.
# That takes a moment when nothing changed.

PYTHON ?= python3
# Tools are called as modules: the scripts in .venv/bin hold an absolute path.
RUN := .venv/bin/python
# One process a benchmark, never forked: engines start threads.
ASV := $(RUN) -m asv run --python=same --launch-method=spawn --show-stderr
LEG := -m "kernels_logic and not nightly" --hypothesis-profile=leg

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format test-compiled test-interpreted test-boundscheck test-nightly \
	bench bench-quick bench-compare bench-html peers clean
.NOTPARALLEL:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Make .venv/ ready; the other targets do this themselves
	@command -v $(PYTHON) >/dev/null || { \
		echo "setup: $(PYTHON) is missing. Run: sudo apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) scripts/set_up.py

demo: setup ## Run the main job and show its result
	@$(RUN) -m laminar_jit.cli demo

test: lint test-compiled test-interpreted test-boundscheck ## All checks: lint, types and every test leg

lint: setup ## ruff and mypy
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) scripts/check_types.py

format: setup ## Bring the sources into shape
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

test-compiled: setup ## All tests, kernels compiled
	$(RUN) -m pytest

test-interpreted: setup ## The kernels' logic as plain Python
	NUMBA_DISABLE_JIT=1 $(RUN) -m pytest $(LEG)

test-boundscheck: setup ## The kernels' logic compiled with bounds checks
	NUMBA_BOUNDSCHECK=1 $(RUN) -m pytest $(LEG)

test-nightly: setup ## All tests and the long campaigns, with many more random examples
	$(RUN) -m pytest -m "nightly or not nightly" --hypothesis-profile=nightly

bench: setup ## All benchmarks, results kept by commit in .asv/, and the table of all figures
	$(RUN) -m asv machine --yes >/dev/null
	$(ASV) --set-commit-hash $$(git rev-parse HEAD)
	$(RUN) -m benchmarks.peers

# In one process: asv's process a benchmark takes longer than the benchmark.
bench-quick: setup ## Every benchmark once, with small sizes: do they still run, with equal results?
	$(RUN) -m asv machine --yes >/dev/null
	$(RUN) -m asv check --python=same
	LAMINAR_BENCH_SIZE=once $(RUN) -m benchmarks.once

# Ratios and other figures where more is better mean the opposite to asv: only times and memory are compared.
BENCH ?= [.](time|peakmem)_
FACTOR ?= 1.25

bench-compare: setup ## Is HEAD slower than BASE=<rev>? Fails if so. Also BENCH=<regex>, FACTOR=1.25
	@git rev-parse --quiet --verify "$(BASE)^{commit}" >/dev/null || { \
		echo "usage: make bench-compare BASE=<rev> [BENCH=<regex>] [FACTOR=1.25]; BASE is '$(BASE)', which is no revision"; exit 2; }
	@git diff --quiet HEAD || echo "bench-compare: what is not committed is not measured"
	$(RUN) -m asv machine --yes >/dev/null
	LAMINAR_BENCH_SIZE=quick $(RUN) -m asv continuous --launch-method=spawn --show-stderr --interleave-rounds \
		--split --factor $(FACTOR) --bench '$(BENCH)' $(BASE) HEAD

bench-html: setup ## The results kept by commit in .asv/, as pages
	$(RUN) -m asv publish
	@echo "bench-html: python -m http.server --directory .asv/html, then open http://localhost:8000"

peers: setup ## Optional: the streaming engines of PyPI, for `benchmarks.peers` (2 GB)
	$(RUN) -m venv .peers/engines
	.peers/engines/bin/python -m pip install -qq --disable-pip-version-check '.[peers]'
	$(RUN) -m venv .peers/flink
	.peers/flink/bin/python -m pip install -qq --disable-pip-version-check 'setuptools<80' apache-flink

clean: ## Remove what builds and tests left; keeps .venv/
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
