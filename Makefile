# `make demo` and `make test` do all the set-up themselves and are quick when repeated.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SITE   := $(VENV)/.site
TESTS  := $(BIN)/pytest -q -n auto --maxprocesses 4 --dist worksteal
SMALL  := -m "not slow and not large"
KERNELS := tests/secagg/_fast tests/fedmf/_fast tests/secagg/protocol
UNITS  := $(filter-out %/__pycache__ %/cli %/bench %/journal %/testing %/attacks, \
          $(patsubst %/,%,$(wildcard tests/secagg/*/ tests/fedmf/*/)))
KERNEL := setup.py $(wildcard */_fast/*.pyx */_fast/*.px? */_fast/src/*)

.PHONY: demo check test test-all lint docs bench slow results fuzz clean

demo: $(READY)
	$(BIN)/fedmf train --aggregation secagg --dropout 0.05 --rounds 25 --out runs/demo

# linters, types, layers and the packages' own tests: about a minute
check: lint
	$(TESTS) $(SMALL) $(UNITS)

# green without data; the pure pass is the kernels' and the protocol's
test: lint
	$(TESTS) $(SMALL)
	SECAGG_PURE=1 $(TESTS) $(SMALL) $(KERNELS)

# everything in both modes, with Hypothesis's full profile
test-all: lint $(SITE)
	$(TESTS) --hypothesis-profile=full
	SECAGG_PURE=1 $(TESTS) --hypothesis-profile=full

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/prose.py

# the site, docs/_build/html/index.html; warnings are errors
docs: $(SITE)
	$(BIN)/python -m sphinx -q -j auto -E -n -W --keep-going docs docs/_build/html

# accuracy on real data, minutes
slow: $(READY)
	$(BIN)/pytest -v -s -m slow

bench: $(READY)
	$(BIN)/pytest benches --benchmark-enable --benchmark-only --benchmark-columns=median,rounds

results: $(READY)
	$(BIN)/python -m benches.papers --table all --jobs 2

# two million messages and twenty thousand rounds: about ten minutes
fuzz: $(READY)
	$(BIN)/python -m pip install -q "atheris>=3"
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz decoders --runs 2000000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz parameters --runs 1000000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz transcripts --runs 20000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz paillier --runs 300000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz threshold --runs 100000

clean:
	rm -rf $(VENV) build dist docs/_build *.egg-info */_fast/_kernels.c */_fast/*.so

$(READY): pyproject.toml $(KERNEL)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q "setuptools>=77" "cython>=3.1"
	$(BIN)/python -m pip install -q --no-build-isolation --config-settings editable_mode=compat -e ".[fedmf,cli,bench,dev]"
	touch $@

$(SITE): $(READY)
	$(BIN)/python -m pip install -q --no-build-isolation --config-settings editable_mode=compat -e ".[docs]"
	touch $@
