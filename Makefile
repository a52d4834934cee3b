# Everything here works in a fresh clone, with only Python 3.11 or newer, pip, make and git.
#   make demo     install what a run needs, and plan a holiday in the browser: a host with four servers
#   make test     install what the tests need, and run those of Interlock by itself
#   make test-peers    the tests with other makers' servers, clients and databases, which it installs
#   make endurance-peers    what takes long with other makers' software, such as the whole corpus of the migrator
#   make endurance    soaks, series of kills and whole matrices: make endurance SEED=7 DURATION=1800
#   make kills    the series of kills of the endurance suite alone, with their figures: make kills SEED=7
#   make check    the everyday round: format, lint, types (Python, JavaScript, CSS), quick tests
#   make check-all-pythons    the quick tests under every other Python version that is installed
#   make conformance    the public conformance suite of the protocol, on our server and our client
# Another interpreter: make PY=python3.13 demo (make clean first, if .venv is already there).

PY   ?= python3
VENV := .venv
BIN  := $(VENV)/bin
# The interpreter whose pip installs; another one than PY where that comes without pip.
PIP_OF ?= $(PY)
PIP   = $(PIP_OF) -m pip --disable-pip-version-check --python $(BIN)/python
# Nothing is built, and nothing comes in that the lock does not know by its hash.
LOCKED := --quiet --no-deps --require-hashes --only-binary :all:

# Tests take two cores; six run at once, as they often wait (tests/lanes.py says what runs together).
PARALLEL := --workers 6

# `make test` runs one half of the combinations of each test; `make test CELLS=1` runs all.
CELLS := 2
# `make test` runs endurance tests too, drawn by SEED, that cost so many seconds of processor time in all.
SAMPLE := 20
PEERS_SAMPLE := 120
SEED ?=
DURATION ?=

.DEFAULT_GOAL := help
.PHONY: help install dev demo test test-peers endurance endurance-peers kills coverage peers-table test-busy test-cost check check-all-pythons conformance compiled programs peers types lint javascript format dist images docs bench lock clean

help:
	@echo 'make install   leaves $(BIN)/interlock behind'
	@echo 'make demo      installs, then starts the host with the travel servers and prints one address'
	@echo 'make test      installs, then runs the tests of Interlock by itself, slow ones too'
	@echo 'make test-peers   the tests with what others make: servers, clients, databases, the conformance suite'
	@echo 'make endurance   soaks, series of kills and whole matrices; takes SEED=7 and DURATION=1800 (seconds)'
	@echo 'make kills     the series of kills alone, one after the other, with their figures; takes SEED=7'
	@echo 'make endurance-peers   what takes long with the software of others, such as the whole corpus of the migrator'
	@echo 'make peers-table   runs the compatibility farm alone, and prints its table with the results'
	@echo 'make check     format, lint, types and the quick tests'
	@echo 'make coverage   the quick tests under coverage.py; fails where a package falls below its figure'
	@echo 'make check-all-pythons   the quick tests under each other Python 3.11 to 3.14 that is installed'
	@echo 'make test-busy   the tests that touch the clock, three times beside three busy loops'
	@echo 'make test-cost   runs `make test`, and prints the processor time of each test file'
	@echo 'make conformance   runs the public conformance suite, which it installs with a Node of its own'
	@echo 'make dist      builds the wheels and sources of all distributions into dist/'
	@echo 'make docs      builds the documentation site into build/site/'
	@echo 'make images    builds the container images, where there is a builder'
	@echo 'make types | lint | javascript | format | bench | lock | clean'

install: $(VENV)/.installed

dev: $(VENV)/.dev

demo: install
	@$(BIN)/interlock demo

test: dev compiled programs
	@$(BIN)/python -m pytest $(PARALLEL) --fork -m 'not interop and not database' --cells $(CELLS) --sample $(SAMPLE) $(SEED:%=--seed %)

test-peers: dev compiled peers
	@$(BIN)/python -m pytest $(PARALLEL) -m 'interop or database' --sample $(PEERS_SAMPLE) $(SEED:%=--seed %)

# The rest of what takes long with other makers' software: the whole corpus of the migrator, for example.
endurance-peers: dev compiled peers
	@$(BIN)/python -m pytest -q $(PARALLEL) --endurance -m interop

# With DURATION it is run again and again, with the next seed each time, until so many seconds are over.
endurance: dev compiled programs
	@$(BIN)/python scripts/endurance.py $(SEED:%=--seed %) $(DURATION:%=--duration %)

# One series at a time: the times until work is taken up would be those of four fleets on one machine.
kills: dev compiled programs
	@$(BIN)/python scripts/endurance.py $(SEED:%=--seed %) -- --workers 0 -s -k 'thousand or lost' \
	  packages/interlock/tests/workers/test_once.py packages/interlock/tests/tasks/test_kills.py

peers-table: dev compiled peers
	@$(BIN)/python -m tests.interop.farm

check: lint types javascript compiled
	@$(BIN)/python -m pytest -q $(PARALLEL) -m 'not slow and not interop'

# The quick tests under coverage.py, compared with scripts/coverage.toml.
coverage: dev compiled
	@$(BIN)/python scripts/covered.py

# A test that depends on the speed of the machine fails here.
test-busy: dev compiled programs
	@$(BIN)/python scripts/busy.py -- $(PARALLEL) -m 'not interop and not database' --cells $(CELLS) --sample $(SAMPLE) $(SEED:%=--seed %)

# What the tests cost, by file: where to look when `make test` gets slow.
test-cost: dev compiled programs
	@$(BIN)/python scripts/test_costs.py

# Each other version from 3.11 to 3.14 that is found on PATH or in pyenv; one that is missing is named.
# Every quick test runs, with some of its combinations.
check-all-pythons: dev
	@$(BIN)/python scripts/pythons.py --pip-of $(PIP_OF)

conformance: dev compiled
	@$(BIN)/python -m scripts.conformance

# The tests start hundreds of programs, and each would compile what it imports where Python may write no bytecode by itself.
compiled: dev
	@$(BIN)/python -m compileall -q -j 2 -x /test_ packages tests scripts

# Programs of Debian that `make test` needs; a test that misses one says so itself.
programs: dev
	@$(BIN)/python scripts/peers.py chromium ripgrep bubblewrap || true

# All that the tests need of other makers; a test that misses something says so itself.
peers: dev
	@$(BIN)/python scripts/peers.py || true

types: dev
	@$(BIN)/mypy

# Format and types of JavaScript and CSS. Where npm cannot install the tools, it says so; in CI that is a failure.
javascript: dev
	@$(BIN)/python -m scripts.javascript

lint: dev
	@$(BIN)/ruff format --check || { echo 'make format puts this right'; exit 1; }
	@$(BIN)/ruff check --quiet

format: dev
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format --quiet
	@$(BIN)/python -m scripts.javascript --format

# The wheels and sources of all distributions, in dist/; with TAG=v1.2.3 only if that is their version.
dist: dev
	@$(BIN)/python scripts/dist.py $(TAG:%=--tag %)

# The container images; where no builder answers, it says so.
images: dist
	@$(BIN)/python scripts/images.py

# The documentation site, with a tool of its own. It can be read from the disk, without a web server.
docs: dev
	@$(BIN)/python -m scripts.site

bench: dev
	@$(BIN)/python -m benchmarks
	@$(BIN)/python -m benchmarks.tasks
	@$(BIN)/python -m benchmarks.observing
	@$(BIN)/python -m benchmarks.inspector
	@$(BIN)/python -m benchmarks.gateway
	@$(BIN)/python -m benchmarks.mounts
	@$(BIN)/python -m benchmarks.openapi
	@$(BIN)/python -m benchmarks.sandbox

# Every requirements/*.in to its .txt, run.in first because dev.in leans on it. Versions that still fit are kept;
# `make lock UPGRADE=--upgrade` takes the newest. Without header and annotations the files name no package registry.
lock: $(VENV)-lock/.installed
	@cd requirements && for name in run $$(ls *.in | sed 's/\.in$$//'); do \
		../$(VENV)-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
			--no-header --no-annotate $(UPGRADE) $$name.in -o $$name.txt || exit 1; \
	done

clean:
	rm -rf .venv .venv-* .peers .coverage-data build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find packages tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment without pip inside: pip reaches it from outside, so neither ensurepip nor python3-venv is needed.
%/bin/python:
	@$(PY) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version if sys.version_info < (3, 11) else 0)'
	@$(PIP_OF) -m pip --version >/dev/null || { echo 'pip 22.3 or newer is needed beside $(PIP_OF)'; exit 1; }
	@$(PY) -m venv --without-pip $*

$(VENV)/.run: requirements/run.txt | $(BIN)/python
	@echo 'installing what a run needs into $(VENV) ...'
	@$(PIP) install $(LOCKED) -r $<
	@touch $@

PACKAGES := interlock interlock-issuer interlock-apps interlock-servers

$(VENV)/.installed: $(PACKAGES:%=packages/%/pyproject.toml) $(VENV)/.run
	@$(PIP) install --quiet --no-deps --no-build-isolation $(PACKAGES:%=--editable packages/%)
	@touch $@

$(VENV)/.dev: requirements/dev.txt scripts/test_paths.py $(VENV)/.installed
	@echo 'installing what the tests need into $(VENV) ...'
	@$(PIP) install $(LOCKED) -r $<
	@$(BIN)/python scripts/test_paths.py
	@touch $@

$(VENV)-lock/.installed: requirements/lock.txt | $(VENV)-lock/bin/python
	@$(PY) -m pip --disable-pip-version-check --python $(VENV)-lock/bin/python install $(LOCKED) -r $<
	@touch $@
