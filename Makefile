# `make demo` and `make test` do all the set-up themselves and are quick when repeated.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TESTS  := $(BIN)/pytest -q -n auto --maxprocesses 4 --dist worksteal
SMALL  := -m "not slow and not large"
KERNELS := tests/secagg/_fast tests/fedmf/_fast tests/secagg/protocol
# what computes with the kernels; outside of _fast no other module asks whether they are compiled
PURE   := $(KERNELS) $(addprefix tests/secagg/,encoding shamir threshold paillier client server oneshot) \
          $(addprefix tests/fedmf/,aggregate masks models bayes ease fcf)
UNITS  := $(filter-out %/__pycache__ %/cli %/bench %/journal %/testing %/attacks %/http %/collect, \
          $(patsubst %/,%,$(wildcard tests/secagg/*/ tests/fedmf/*/)))
KERNEL := setup.py $(wildcard */_fast/*.pyx */_fast/*.px? */_fast/src/*)
UV     := $(BIN)/uv -q
LOCKED := $(BIN)/python -m pip install -q --require-hashes --only-binary :all:
LOCK   := $(UV) pip compile --only-binary :all: --universal --python-version 3.11 --generate-hashes \
          --no-header --no-annotate --no-emit-index-url --no-emit-find-links
EXTRAS := --extra fedmf --extra privacy --extra he --extra cli --extra http --extra flower --extra flare --extra statistics --extra postgres
COPY   := git ls-files -z | xargs -0 cp --parents -t
EPOCH  := $(shell git log -1 --format=%ct 2>/dev/null)
TOOLS  := abi3audit==0.0.26 auditwheel==6.8.2 lief==1.0.0 ziglang==0.17.1
NEXT   := build/test-python
ARM    := $(CURDIR)/build/aarch64
APT    := apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Install-Recommends=false \
          -o Dir::State=$(ARM)/apt -o Dir::State::status=/dev/null -o Dir::Cache=$(ARM)/apt -o Debug::NoLocking=1
WHEEL_NEEDS := -c requirements.lock gmpy2 hypothesis phe pytest pytest-benchmark pytest-xdist
WHEEL_TESTS := -P -m pytest -q -p no:cacheprovider -o pythonpath="tests/support tests" $(SMALL)
SANITIZE := CC=gcc CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"

# tests start hundreds of processes, each of which would compile all that it imports again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check units test test-all test-full test-python lint docs bench slow results fuzz constant-time clean
.PHONY: next-python test-next sanitize lock test-oldest test-newest reproducible sbom attest wheels test-x86-64 test-aarch64

demo: $(READY)
	$(BIN)/fedmf train --aggregation secagg --dropout 0.05 --rounds 25 --factors 4 --out runs/demo
	$(BIN)/fedmf recommend runs/demo --user 7

# linters, types, layers and the packages' own tests: some minutes
check: lint units

units: $(READY)
	$(TESTS) $(SMALL) $(UNITS)

# green without data; the pure pass is the kernels' and the protocol's
test: lint
	$(TESTS) $(SMALL)
	SECAGG_PURE=1 $(TESTS) $(SMALL) $(KERNELS)

# all but the slow tests, with Hypothesis's full profile for kernels and protocol; what computes, on the
# kernels' twins; then the newest Python: 12 minutes, in CI. mypy and pip take a processor each
test-all:
	$(MAKE) -j 2 lint next-python
	$(TESTS) $(addprefix --full ,$(KERNELS))
	SECAGG_PURE=1 $(TESTS) $(SMALL) $(PURE)
	$(MAKE) test-next

# every property with the full profile: before a release
test-full: lint
	$(TESTS) --hypothesis-profile=full

# the packages' own tests under the newest Python: it is the interpreter that is tested, so a few examples of
# each property are enough
test-python: next-python
	$(MAKE) test-next

test-next:
	$(MAKE) -C $(NEXT) VENV=.venv SMALL='$(SMALL) --hypothesis-profile=few' units

# a copy of the files, with an environment of the newest Python of the path and of pyenv that can make
# environments and compile
next-python: PYENVS = $(wildcard $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/*/bin)
next-python: $(VENV)/.uv
	rm -rf $(NEXT) && mkdir -p $(NEXT) && $(COPY) $(NEXT)
	for python in $$(PATH="$$(printf '%s:' $(PYENVS))$$PATH" $(BIN)/uv python list --only-installed ">=3.11" \
	        2>/dev/null | awk '$$1 ~ /^cpython-3[.0-9]+-/ {print $$2}'); do \
	    $$python -c 'import ensurepip, sysconfig; open(sysconfig.get_path("include") + "/Python.h")' && break; \
	done && echo "the newest Python of this machine: $$($$python --version), $$python" && \
	    $(MAKE) -C $(NEXT) PYTHON=$$python VENV=.venv .venv/.ready

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/prose.py

# the site, docs/_build/html/index.html; warnings are errors. Its own environment has what Sphinx needs
docs: build/docs/.ready
	build/docs/bin/python -m sphinx -q -j auto -E -n -W --keep-going docs docs/_build/html

# accuracy on real data, minutes
slow: $(READY)
	$(BIN)/pytest -v -s -m slow

# ratios to other code and to 0.4, and growth: runs/speed; then single kernels
bench: $(READY)
	$(BIN)/python -m benches.speed --out runs/speed
	$(BIN)/pytest benches --benchmark-enable --benchmark-only --benchmark-columns=median,rounds

results: $(READY)
	$(BIN)/python -m benches.papers --table all --jobs 2

# two million messages, twenty thousand rounds and a lying server's schedules: twenty minutes. Two
# worlds that nobody may tell apart take hours: python -m fuzz oracles --runs 10000
fuzz: $(READY)
	$(BIN)/python -m pip install -q "atheris>=3"
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz decoders --runs 2000000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz parameters --runs 1000000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz transcripts --runs 20000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz paillier --runs 300000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz threshold --runs 100000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz oneshot --runs 500000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz states --runs 300000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz verdicts --runs 300000
	PYTHONPATH=tests:tests/support $(BIN)/python -m fuzz lying --runs 500

# valgrind, MemorySanitizer and a t-test on every kernel that touches secrets: some minutes
constant-time: $(READY)
	PYTHONPATH=tests:. $(BIN)/python -m constant_time

# kernels and decoders under AddressSanitizer and UndefinedBehaviorSanitizer, in build/sanitize.
# No leaks are sought: CPython and NumPy keep memory until the process ends. PYTHONMALLOC gives each
# buffer of Python its own red zones, and an exception of C++ needs libstdc++ before libasan's hooks.
sanitize: $(READY)
	rm -rf build/sanitize
	$(SANITIZE) LDFLAGS="-fsanitize=address,undefined" SECAGG_REQUIRE_EXTENSION=1 $(BIN)/python setup.py -q \
	    build --build-base build/sanitize --build-lib build/sanitize/lib
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	    $(SANITIZE) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc PYTHONPATH=build/sanitize/lib \
	    $(TESTS) --capture=sys -o pythonpath="tests/support tests" $(SMALL) tests/sanitizers.py $(KERNELS) tests/docs/test_fuzz.py

build/docs/.ready: docs/requirements.lock
	test -x build/docs/bin/python || $(PYTHON) -m venv build/docs
	build/docs/bin/python -m pip install -q --require-hashes --only-binary :all: -r $<
	touch $@

# the newest versions of everything, with hashes, for every platform and Python
lock: $(READY)
	$(LOCK) --upgrade --all-extras pyproject.toml -o requirements.lock
	$(LOCK) -c requirements.lock --extra docs --extra http --extra testing pyproject.toml -o docs/requirements.lock

# a copy of the files, tested with the lowest versions that pyproject.toml allows, or with today's. The lowest
# call what their own newest dependencies deprecate.
test-oldest: HOW := --resolution lowest-direct
test-oldest: WARN := -W ignore::DeprecationWarning
test-oldest test-newest: $(READY)
	rm -rf build/$@ && mkdir -p build/$@/copy && $(COPY) build/$@/copy
	$(UV) venv --python $(BIN)/python build/$@/venv
	$(UV) pip compile $(HOW) --python $(BIN)/python --all-extras pyproject.toml -o build/$@/requirements.txt
	$(UV) pip sync --python build/$@/venv build/$@/requirements.txt
	$(UV) pip install --python build/$@/venv --no-deps --no-build-isolation \
	    --config-settings editable_mode=compat -e build/$@/copy
	cd build/$@/copy && ../venv/bin/pytest -q -n auto --maxprocesses 4 --dist worksteal $(SMALL) $(WARN)

# wheel and sdist, built in two folders at two times, are the same bytes; dist/ has them, and an index
# would show their README
reproducible: $(READY)
	rm -rf build/reproducible dist
	for folder in one another/folder; do \
	    mkdir -p build/reproducible/$$folder && $(COPY) build/reproducible/$$folder && \
	    (umask 022 && SOURCE_DATE_EPOCH=$(EPOCH) SECAGG_REQUIRE_EXTENSION=1 $(UV) build --no-build-isolation \
	        --python $(BIN)/python --out-dir build/reproducible/$$folder.dist build/reproducible/$$folder) || exit 1; \
	done
	diff -r build/reproducible/one.dist build/reproducible/another/folder.dist
	cp -r build/reproducible/one.dist dist && cd dist && sha256sum *.whl *.tar.gz
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz

# dist/sbom.json, CycloneDX: the wheel, its compiled parts and all it depends on, as locked
sbom: reproducible
	$(UV) venv --clear --python $(BIN)/python build/sbom
	$(UV) pip compile $(EXTRAS) -c requirements.lock pyproject.toml -o build/sbom.txt
	$(UV) pip sync --python build/sbom build/sbom.txt
	$(UV) pip install --python build/sbom --no-deps dist/*.whl
	SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/cyclonedx-py environment build/sbom --pyproject pyproject.toml \
	    --mc-type library --short-PURLs --output-reproducible -o dist/sbom.json
	$(BIN)/python tests/sbom.py dist/*.whl dist/sbom.json

# a release in dist: provenance.json, an in-toto statement, says what was built from what. SIGN=KEY signs it;
# ssh-keygen -Y verify -n secagg -f ALLOWED -I NAME -s dist/provenance.json.sig < dist/provenance.json
attest: sbom wheels
	$(BIN)/python tests/provenance.py dist $(EPOCH)
	test -z "$(SIGN)" || ssh-keygen -q -Y sign -n secagg -f "$(SIGN)" dist/provenance.json

# wheels with the stable ABI for six platforms, cross-compiled from a copy of the files and audited;
# dist/wheels has them
wheels: $(READY)
	rm -rf build/wheels dist/wheels && mkdir -p build/wheels/sources dist && $(COPY) build/wheels/sources
	$(UV) pip install --python $(BIN)/python --target build/tools $(TOOLS)
	umask 022 && SOURCE_DATE_EPOCH=$(EPOCH) PYTHONWARNINGS=ignore PYTHONPATH=$(CURDIR)/build/tools:$(CURDIR)/tests \
	    $(BIN)/python -m wheels build/wheels/sources build/wheels
	cp -r build/wheels/dist dist/wheels && cd dist/wheels && sha256sum *.whl

# the wheel of this machine, in an environment without the sources: an example, kernels and protocol
test-x86-64: wheels
	rm -rf build/x86-64 && mkdir -p build/x86-64 && cp -r build/wheels/sources build/x86-64/copy
	rm -r build/x86-64/copy/secagg build/x86-64/copy/fedmf
	$(UV) venv --python $(BIN)/python build/x86-64/venv
	$(UV) pip install --python build/x86-64/venv $(WHEEL_NEEDS) dist/wheels/*-manylinux_2_17_x86_64.whl
	cd build/x86-64/copy && ../venv/bin/python -P examples/private_sum.py
	cd build/x86-64/copy && ../venv/bin/python $(WHEEL_TESTS) -n auto --maxprocesses 4 $(KERNELS)

# that of aarch64 under qemu, on Debian 12: with the AES instructions, then the kernels without; ten minutes
test-aarch64: wheels $(ARM)/root
	rm -rf $(ARM)/copy && cp -r build/wheels/sources $(ARM)/copy && rm -r $(ARM)/copy/secagg $(ARM)/copy/fedmf
	$(UV) pip install --python $(BIN)/python --python-version 3.11 --python-platform aarch64-manylinux_2_28 \
	    --only-binary :all: --reinstall-package secagg --target $(ARM)/root/usr/lib/python3/dist-packages \
	    $(WHEEL_NEEDS) dist/wheels/*-manylinux_2_17_aarch64.whl
	PYTHONPATH=build/tools $(BIN)/python -m ziglang cc -target aarch64-linux-gnu.2.17 -shared -fPIC \
	    -o $(ARM)/without_aes.so tests/wheels/without_aes.c
	cp tests/wheels/python-aarch64 $(ARM)/python
	cd $(ARM)/copy && ../python -P -c "from secagg._fast import TIERS; assert TIERS[0] == 'armv8', TIERS"
	cd $(ARM)/copy && ../python $(WHEEL_TESTS) $(KERNELS)
	cd $(ARM)/copy && export PRELOAD=$(ARM)/without_aes.so && \
	    ../python -P -c "from secagg._fast import TIERS; assert TIERS[0] == 'portable', TIERS" && \
	    ../python $(WHEEL_TESTS) tests/secagg/_fast

# Debian's Python for aarch64 in a folder: the packages of this machine stay as they are
$(ARM)/root:
	rm -rf $(ARM) && mkdir -p $(ARM)/apt/lists/partial $(ARM)/apt/archives/partial $(ARM)/part
	$(APT) update
	$(APT) -y --download-only install python3.11-minimal libpython3.11-stdlib libstdc++6
	for package in $(ARM)/apt/archives/*.deb; do dpkg -x $$package $(ARM)/part || exit 1; done
	mkdir -p $(ARM)/part/usr/lib/python3/dist-packages && mv $(ARM)/part $@

clean:
	rm -rf $(VENV) build dist docs/_build *.egg-info */_fast/_kernels.c */_fast/*.so

# the hashes are of wheels only: nothing is built with tools that are not locked. uv is quicker than pip, which
# installs all where uv reaches no index
$(VENV)/.uv: requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	awk '/^uv==/ {found = 1} found {print} found && !/\\$$/ {exit}' requirements.lock > $(VENV)/uv.lock
	$(LOCKED) -r $(VENV)/uv.lock
	touch $@

$(READY): pyproject.toml requirements.lock $(KERNEL) $(VENV)/.uv
	$(UV) pip install --require-hashes --only-binary :all: --python $(BIN)/python -r requirements.lock || \
	    $(LOCKED) -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	touch $@
