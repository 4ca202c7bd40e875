# One command for each job. `make book` and `make test` need nothing but Python 3.10 to 3.13, git and make.
PYTHON ?= python3
VENV ?= .venv
PORT ?= 8000
PY := $(VENV)/bin/python
NAMES ?=

.DEFAULT_GOAL := help
.PHONY: help book test serve env model museum notebooks exercises unit lint format types links bench clean

help:  ## this list
	@echo "One Launch. The two commands that a new clone needs are book and test."
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "Variables: PYTHON=$(PYTHON) (makes the environment), VENV=$(VENV), PORT=$(PORT), NAMES= (chapters, such as 02)"

book: env  ## set everything up, execute the chapters, build the site; a second run does only what changed
	@$(PY) book/scripts/build_site.py

test: env  ## everything that must hold: format, lint, types, tests, notebooks, strict build, browser checks
	@$(PY) book/scripts/check_all.py

serve:  ## serve the built site on this machine
	@test -f _build/html/index.html || { echo "There is no site yet: run make book first." >&2; exit 1; }
	@echo "Open http://localhost:$(PORT) (stop with Ctrl-C)"
	@$(PY) -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

env:  ## create the environment and install what is pinned, if that is not done yet
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here. Install Python 3.10 to 3.13, or name one: make book PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' || { echo "$(PYTHON) is $$($(PYTHON) --version 2>&1), but 3.10 to 3.13 is needed. Name another: make book PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) book/scripts/setup_env.py $(VENV)

model: env  ## fetch the embedded model (about 100 MB, once)
	@$(PY) -m onelaunch.models.embedded

museum: env  ## write the gallery of chapter 11 from src/onelaunch/museum
	@$(PY) book/scripts/museum_chapter.py

notebooks: env  ## build the .ipynb files whose .py or whose package changed; NAMES=02 for one
	@$(PY) book/scripts/notebooks.py build $(NAMES)

exercises: env  ## build each exercise's notebooks: the learner's, the solution, the pristine copy
	@$(PY) book/scripts/exercises.py build

unit: env  ## the unit tests alone
	@$(PY) -m pytest tests --ignore=tests/site

lint: env  ## lint, and proof that each notebook is what its source builds
	@$(PY) -m ruff check .
	@$(PY) book/scripts/museum_chapter.py --check
	@$(PY) book/scripts/notebooks.py check
	@$(PY) book/scripts/exercises.py check

format: env  ## format the code and mend what lint can mend
	@$(PY) -m ruff check --fix-only --quiet .
	@$(PY) -m ruff format .

types: env  ## type check
	@$(PY) -m mypy

links: env  ## check the links that lead to other hosts
	@$(PY) book/scripts/build_site.py --linkcheck

bench: env  ## print and save the benchmarks of this machine (half an hour)
	@$(PY) benchmarks/generate.py
	@$(PY) benchmarks/graphs.py
	@$(PY) benchmarks/replay.py
	@$(PY) benchmarks/museum.py

clean:  ## remove what was built; .venv and the model stay
	@rm -rf _build .pytest_cache .ruff_cache .mypy_cache .hypothesis .cache dist
	@find . -path ./.git -prune -o -path ./$(VENV) -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -type d -print0 | xargs -0 rm -rf
