# Everything here sets itself up: `make demo` and `make test` are the only commands a fresh machine needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
# Where this is set, each of the many processes of a run would compile our sources anew.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help setup kernels demo test lint format bench kafka clean distclean

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.headrace-setup
PACKAGES := $(VENV)/.headrace-packages
KERNELS := $(VENV)/.headrace-kernels
RUN   := scripts/with-java.sh

help: ## Show this help
	@echo "Headrace: exact continuous queries over streams that arrive out of order."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(PACKAGES): pyproject.toml scripts/setup.sh scripts/ensure-java.sh scripts/lib.sh
	@scripts/setup.sh $(VENV)
	@touch $@

$(KERNELS): $(PACKAGES) scripts/prepare.sh
	@scripts/prepare.sh $(VENV) kernels
	@touch $@

$(STAMP): $(KERNELS)
	@scripts/prepare.sh $(VENV) classes
	@touch $@

setup: $(STAMP) ## Virtual environment, packages and Java, where they are missing

demo: $(STAMP) ## Catch a card fraud that hopping windows miss; leaves a picture in out/demo
	@$(RUN) $(BIN)/headrace demo

kernels: $(KERNELS)

test: $(PACKAGES) ## All checks: ruff, mypy, and every test
	scripts/test.sh $(ARGS)

lint: $(PACKAGES) ## ruff and mypy only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(PACKAGES) ## Let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## A benchmark against its rivals: make bench [NAME=sliding] [ARGS=--json]
	$(RUN) $(BIN)/headrace bench $(or $(NAME),sliding) $(ARGS)

kafka: $(PACKAGES) ## A Kafka broker on this machine, until Ctrl-C: make kafka [ARGS="--port 9092"]
	@scripts/kafka.sh $(ARGS)

clean: ## Remove what was made, but not the virtual environment
	rm -rf out spark-warehouse metastore_db derby.log .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests examples scripts -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## Remove the virtual environment too
	rm -rf $(VENV)
