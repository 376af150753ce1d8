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
	bench bench-quick clean
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

bench-quick: setup ## Every benchmark once, with small sizes: do they still run?
	$(RUN) -m asv machine --yes >/dev/null
	LAMINAR_BENCH_SIZE=quick $(ASV) --quick

clean: ## Remove what builds and tests left; keeps .venv/
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
