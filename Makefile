# Shortcuts for the command `preflearn`, pytest, and the linters. Each target installs .venv first if necessary.
PYTHON ?= python3
CONSTRAINTS ?= -c constraints.txt
BIN := .venv/bin
STAMP := .venv/.installed
TYPES := $(BIN)/basedpyright --pythonpath $(BIN)/python
# One test worker more than there are processors, since tests of pages often wait for the browser; at most four.
# worksteal moves tests from busy workers to idle ones. Only targets that run tests count the processors.
WORKERS = $(shell $(PYTHON) -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))')
PYTEST = $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# If a folder with the data sets is next to the clone, use it instead of downloads.
ifneq ($(wildcard ../shared/datasets),)
export PREFLEARN_DATA ?= $(abspath ../shared/datasets)
endif

# About a hundred processes start. Without saved bytecode, each of them would spend seconds on compiling libraries.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: book full pdf notebooks slides site test lint nightly perturb report bench open clean

book: $(STAMP)          ## build the book with small problems into _build/html
	@$(BIN)/preflearn build

full: $(STAMP)          ## build the book with the papers' problem sizes (preflearn record NN writes data/recorded)
	@$(BIN)/preflearn build --profile full

site: $(STAMP)          ## build the book for publication; fails unless repository.url is set in _config.yml
	@$(BIN)/python tools/site_address.py
	@$(BIN)/preflearn build

pdf: book               ## print the book to one PDF with Debian's chromium (two minutes)
	@$(BIN)/python tests/pdf.py

notebooks: book         ## pack the executed notebooks into one archive
	@$(BIN)/python tools/executed_notebooks.py

slides: book            ## make slides of chapters 1, 4 and 13 for reveal.js in _build/slides
	@$(BIN)/python tools/slides.py

lint: $(STAMP)          ## run ruff and basedpyright
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(TYPES)

# The type checker runs in parallel with pytest; its errors are printed after the test results.
test: $(STAMP)          ## run the linters, the type checker, the doctests, and the tests of every commit
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@mkdir -p _build; $(TYPES) >_build/types.log 2>&1 & types=$$!; \
		$(PYTEST); tests=$$?; \
		wait $$types || { cat _build/types.log; exit 1; }; \
		exit $$tests

nightly: lint           ## execute all chapters from scratch, run all tests in random order, measure coverage, run make perturb
	@$(BIN)/preflearn build --force
	@HYPOTHESIS_PROFILE=nightly PREFLEARN_VISIT=all $(PYTEST) -m '' -p randomly --cov
	@$(MAKE) --no-print-directory perturb

perturb: $(STAMP)       ## test that each check of the book can fail (a quarter of an hour)
	@PREFLEARN_QUIET=1 $(BIN)/python -m tests.perturb --jobs 2

report: $(STAMP)        ## print code size, chapter and page lengths, and numbers in prose that no output shows
	@$(BIN)/python tools/report.py

bench: $(STAMP)         ## measure the speed against other programs, one table per script (hours)
	@set -e; for script in benchmarks/[a-z]*.py; do $(BIN)/python $$script; done

open: book              ## build the book and open it in the browser
	@$(BIN)/python -m webbrowser -t "file://$(CURDIR)/_build/html/index.html"

clean:                  ## delete what was built, but not .venv
	rm -rf _build book/chapters

# Some systems have venv without ensurepip. There, the system's pip installs pip into .venv.
$(STAMP): pyproject.toml constraints.txt
	@echo "Installing into .venv (one or two minutes, only once) ..."
	@test -x $(BIN)/pip || $(PYTHON) -m venv .venv 2>/dev/null || { \
		rm -rf .venv && $(PYTHON) -m venv --without-pip .venv && \
		$(PYTHON) -m pip --python .venv/bin/python install --quiet pip; }
	@$(BIN)/python -m pip install --quiet --no-compile --editable '.[book,lab,test,cluster]' $(CONSTRAINTS)
	@echo "Compiling loops for this computer (one minute, only once) ..."
	@PREFLEARN_QUIET=1 $(BIN)/python tests/warm.py
	@touch $@
