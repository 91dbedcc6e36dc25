# Set-up, tests and demo. `make help` lists the targets. Everything made lies in .venv/, .jars/ and .demo/.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help setup kafka-jars lint test-fast test demo clean

PYTHON ?= python3.11
BIN := .venv/bin
VENV := .venv/.complete
# The broker that the Kafka source is tested against. conf/kafka/ has more, for the laboratory.
KAFKA := 4.3.0
# `dependency:copy-dependencies` without Maven's one line per artefact.
COPY_JARS := mvn --batch-mode --quiet dependency:copy-dependencies -DincludeScope=runtime

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV) .jars/.complete .jars/kafka-$(KAFKA)/.complete ## the virtual environment and the jars; a second run does nothing

kafka-jars: $(patsubst conf/kafka/%.xml,.jars/kafka-%/.complete,$(wildcard conf/kafka/*.xml)) ## the brokers of every version in conf/kafka/

# The stamp is written last: an interrupted set-up starts again.
$(VENV): pyproject.toml conf/constraints.txt
	@echo "setup: Python packages into .venv (first time: some minutes, pyspark is large)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "setup: needs Python 3.11 or later")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint conf/constraints.txt \
		--editable '.[spark,quality,dev]'
	touch $@

.jars/.complete: conf/jars/pom.xml
	@echo "setup: Delta Lake and Kafka source jars into .jars"
	mkdir -p .jars && rm -f .jars/*.jar
	$(COPY_JARS) --file $< -DoutputDirectory='$(CURDIR)/.jars'
	touch $@

.jars/kafka-%/.complete: conf/kafka/%.xml
	@echo "setup: Kafka $* broker jars into .jars/kafka-$*"
	rm -rf .jars/kafka-$* && mkdir -p .jars/kafka-$*
	$(COPY_JARS) --file $< -DoutputDirectory='$(CURDIR)/.jars/kafka-$*'
	touch $@

lint: $(VENV) ## formatter, linter, types, import contracts
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test-fast: lint ## lint, and the tests that start no Java
	$(BIN)/python -m pytest -m "not spark and not kafka"

test: setup lint ## everything: set-up, lint, all tests with Spark and a real Kafka broker
	$(BIN)/python -m pytest

demo: setup ## a real incident through the Spark jobs into Delta tables, and the answer by SQL
	$(BIN)/python -m replication.spark.demo

clean: ## remove what set-up and demo made
	rm -rf .venv .jars .demo
