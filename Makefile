# make install   the virtual environment .venv, and nothing else
# make demo      load job records, train, predict; two minutes once all is installed
# make test      everything: checks, and all tests
# make check     formatting, lints, types, import directions, generated pages
# make bench     benchmarks; they print ratios and judge nothing
# make docs      write the generated pages anew

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PIP_CACHE_DIR ?= $(CURDIR)/.cache/pip
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: install demo test check bench docs clean
.DEFAULT_GOAL := install

install: $(VENV)/installed

$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "premortem needs Python 3.11 or newer: make PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: install
	@BIN=$(BIN) bash tools/demo.sh

# Side by side, each with one thread: trees grown by more threads than there are cores take ages.
test: check
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m 'not alone'
	$(BIN)/python -m pytest -m alone

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/reference.py --check

bench: install
	$(BIN)/python benchmarks/load.py
	$(BIN)/python benchmarks/replay.py
	$(BIN)/python benchmarks/score.py

docs: install
	$(BIN)/python tools/reference.py

clean:
	rm -rf $(VENV) .demo .cache
