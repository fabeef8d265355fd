# Thin: everything real is the command `preflearn` and pytest.
PYTHON ?= python3
CONSTRAINTS ?= -c constraints.txt
BIN := .venv/bin
STAMP := .venv/.installed
TYPES := $(BIN)/basedpyright --pythonpath $(BIN)/python
# One test worker per processor, at most four; an idle worker takes over tests from a busy one.
PYTEST := $(BIN)/python -m pytest -q -n logical --maxprocesses 4 --dist worksteal

# A mirror of the data sets beside the checkout is used where there is one.
ifneq ($(wildcard ../shared/datasets),)
export PREFLEARN_DATA ?= $(abspath ../shared/datasets)
endif

# Without saved bytecode each of some hundred processes would compile the libraries again, for seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: book full pdf notebooks test lint nightly perturb report bench open clean

book: $(STAMP)          ## the whole book, quick profile, into _build/html
	@$(BIN)/preflearn build

full: $(STAMP)          ## the same with the papers' sizes (into data/recorded: preflearn record NN)
	@$(BIN)/preflearn build --profile full

pdf: book               ## the built book as one PDF, by Debian's chromium, two minutes
	@$(BIN)/python tests/pdf.py

notebooks: book         ## the executed notebooks with their outputs, in one archive
	@$(BIN)/python tools/executed_notebooks.py

lint: $(STAMP)          ## ruff and basedpyright
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(TYPES)

# Types are checked while the tests run; type errors are printed after pytest's result.
test: $(STAMP)          ## lint, types, doctests, and the tests that run on every commit
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@mkdir -p _build; $(TYPES) >_build/types.log 2>&1 & types=$$!; \
		$(PYTEST); tests=$$?; \
		wait $$types || { cat _build/types.log; exit 1; }; \
		exit $$tests

nightly: lint           ## every chapter from scratch, all tests in random order with new examples, coverage, and make perturb
	@$(BIN)/preflearn build --force
	@HYPOTHESIS_PROFILE=nightly PREFLEARN_VISIT=all $(PYTEST) -m '' -p randomly --cov
	@$(MAKE) --no-print-directory perturb

perturb: $(STAMP)       ## whether each check of the book can fail, a quarter of an hour
	@PREFLEARN_QUIET=1 $(BIN)/python -m tests.perturb --jobs 2

report: $(STAMP)        ## code size, chapter and page lengths, and numbers in prose that no output shows
	@$(BIN)/python tools/report.py

bench: $(STAMP)         ## speed against reference implementations, one table for each script
	@set -e; for script in benchmarks/[a-z]*.py; do $(BIN)/python $$script; done

open: book
	@$(BIN)/python -m webbrowser -t "file://$(CURDIR)/_build/html/index.html"

clean:                  ## what was built; the environment stays
	rm -rf _build book/chapters

# Some systems ship venv without ensurepip; then pip installs pip.
$(STAMP): pyproject.toml constraints.txt
	@echo "Installing into .venv (a minute or two, once) ..."
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv 2>/dev/null || { \
		rm -rf .venv && $(PYTHON) -m venv --without-pip .venv && \
		$(PYTHON) -m pip --python .venv/bin/python install --quiet pip; }
	@$(BIN)/python -m pip install --quiet --no-compile --editable '.[book,lab,test,cluster]' $(CONSTRAINTS)
	@echo "Compiling loops for this machine (a minute, once) ..."
	@PREFLEARN_QUIET=1 $(BIN)/python tests/warm.py
	@touch $@
