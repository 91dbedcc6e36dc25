# Set-up, tests and demo. `make help` lists the targets. Everything made lies in .venv/, .jars/ and .demo/.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help setup kafka-jars browser lint audit test-fast test sweeps lab soak mutants causes missing-evidence faults injections wheel bench demo clean

# The Python that makes .venv; looked for before .venv/bin comes first in PATH.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# spark-submit finds its own Spark through the first python3 in PATH.
export PATH := $(CURDIR)/$(BIN):$(PATH)
VENV := .venv/.complete
# The broker that the Kafka source is tested against. conf/kafka/ has more, for the laboratory.
KAFKA := 4.3.0
# `dependency:copy-dependencies` without Maven's one line per artefact.
COPY_JARS := mvn --batch-mode --quiet dependency:copy-dependencies -DincludeScope=runtime -Dstyle.color=never

##@ Start here
help: ## this list
	@sed -nE 's/^##@ (.*)/\n\1/p; s/^([a-z-]+):.*## (.*)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

setup: $(VENV) .jars/.complete .jars/kafka-$(KAFKA)/.complete .jars/spark.jsa ## the virtual environment and the jars; a second run does nothing
	@echo "setup: all here"

kafka-jars: $(patsubst conf/kafka/%.xml,.jars/kafka-%/.complete,$(wildcard conf/kafka/*.xml)) ## the brokers of every version in conf/kafka/

# The stamps are written last: an interrupted set-up starts again.
$(VENV): pyproject.toml conf/constraints.txt
	@echo "setup: Python packages into .venv (the first time some minutes: pyspark is large)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "setup: needs Python 3.11 or later")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off \
		--constraint conf/constraints.txt --editable '.[spark,quality,produce,mcp,dev]' \
		| sed -unE 's/^ *Collecting ([^ <>=!;[]+).*/  \1/p; s/^ *(Building wheel for [^ ]+).*started.*/  \1/p; s/^(Installing).*/  \1/p'
	@touch $@

.jars/.complete: conf/jars/pom.xml
	@echo "setup: Delta Lake and Kafka source jars into .jars"
	@mkdir -p .jars && rm -f .jars/*.jar
	@$(COPY_JARS) --file $< -DoutputDirectory='$(CURDIR)/.jars'
	@touch $@

.jars/spark.jsa: $(VENV) .jars/.complete
	@echo "setup: an archive of Spark's classes, which saves a third of each start (a minute)"
	@$(BIN)/python -m replication.spark.class_archive

.jars/hdfs/.complete: conf/hdfs/pom.xml
	@echo "setup: HDFS jars into .jars/hdfs"
	@rm -rf .jars/hdfs && mkdir -p .jars/hdfs
	@$(COPY_JARS) --file $< -DoutputDirectory='$(CURDIR)/.jars/hdfs'
	@touch $@

.jars/s3/.complete: conf/s3/pom.xml
	@echo "setup: S3 jars and an S3-compatible server into .jars/s3"
	@rm -rf .jars/s3 && mkdir -p .jars/s3
	@$(COPY_JARS) --file $< -DoutputDirectory='$(CURDIR)/.jars/s3'
	@$(PYTHON) -m venv .jars/s3/moto
	@.jars/s3/moto/bin/python -m pip install --disable-pip-version-check --quiet 'moto[server]==5.2.5'
	@touch $@

.jars/kafka-%/.complete: conf/kafka/%.xml
	@echo "setup: Kafka $* broker jars into .jars/kafka-$*"
	@rm -rf .jars/kafka-$* && mkdir -p .jars/kafka-$*
	@$(COPY_JARS) --file $< -DoutputDirectory='$(CURDIR)/.jars/kafka-$*'
	@touch $@

.jars/zookeeper-%/.complete: conf/zookeeper.xml
	@echo "setup: ZooKeeper $* server jars into .jars/zookeeper-$*"
	@rm -rf .jars/zookeeper-$* && mkdir -p .jars/zookeeper-$*
	@$(COPY_JARS) --file $< -Dzookeeper=$* -DoutputDirectory='$(CURDIR)/.jars/zookeeper-$*'
	@touch $@

# The incident page is tested in a real browser: the distribution's package, as root or through sudo.
browser: ## Chromium and its driver, which the tests of the incident page drive; installed where missing
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi; \
	say="make browser: install chromium and chromedriver (Debian: apt-get install chromium chromium-driver)"; \
	command -v apt-get >/dev/null || { echo "$$say" >&2; exit 1; }; \
	as_root=; if [ "$$(id -u)" -ne 0 ]; then as_root="sudo -n"; fi; \
	echo "browser: installing chromium and chromium-driver from the distribution"; \
	$$as_root apt-get update -qq && $$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null \
		|| { echo "$$say" >&2; exit 1; }

##@ Before a commit
lint: $(VENV) ## formatter, linter, types, import contracts
	$(BIN)/ruff format --check --output-format=concise
	$(BIN)/ruff check --output-format=concise
	$(BIN)/mypy replication $(wildcard jobs/*.py)
	$(BIN)/lint-imports --no-cache --no-logo

audit: $(VENV) ## dependencies: complete, as pinned, licences; ADVISORIES=dir holds them against advisories (OSV)
	$(BIN)/python -m tests.dependencies $(if $(ADVISORIES),--advisories $(ADVISORIES))

# Tests are rewritten as they load; where Python is told to keep no bytecode, that costs ten seconds a process.
test-fast test sweeps: export PYTHONDONTWRITEBYTECODE :=

test-fast: lint ## lint, and the quick tests that start no Java
	$(BIN)/python -m pytest -n 2 -q -m "not spark and not kafka and not browser and not slow and not sweep"

test: browser setup lint audit ## everything: set-up, lint, all tests with Spark and a real Kafka broker
	$(BIN)/python -m pytest -n 2 -q --durations 25 -m "not spark and not kafka and not browser and not sweep"
	$(BIN)/python -m pytest -n 2 --durations 25 -m "(spark or kafka or browser) and not sweep"

##@ Longer checks: docs/guards.md has them all
sweeps: setup ## faults, maintenance, poison through Spark, changed evidence of every capture, thousands of elections: longer than `make test` should be
	$(BIN)/python -m pytest -n 2 -m sweep

lab: setup kafka-jars ## real clusters of every version with real faults; SEED=n, KAFKA_VERSION=v and KEEP=dir narrow and keep
	$(BIN)/python -m tests.kafka_lab $(if $(SEED),--seed $(SEED)) $(if $(KAFKA_VERSION),--kafka $(KAFKA_VERSION)) $(if $(KEEP),--keep $(KEEP))

SCHEDULES := 10000
STORIES := 2000
soak: $(VENV) ## random schedules, machine against naive model: make soak SCHEDULES=10000
	$(BIN)/python -m tests.protocol.schedules $(SCHEDULES)

mutants: $(VENV) ## every condition of the rules changed in turn: who catches it
	$(BIN)/python -m tests.protocol.mutants

causes: $(VENV) ## random losses told again without one step each: is the ledger's cause that step; make causes STORIES=2000
	$(BIN)/python -m tests.protocol.removed_steps $(STORIES)

missing-evidence: $(VENV) ## random stories, evidence withheld: is the true history always admitted. SCHEDULES=n
	$(BIN)/python -m tests.protocol.histories.refinement $(SCHEDULES) --rests 4

faults: setup ## faults at a stream: tables as undisturbed, or a refusal; real kills at last. SEED=n, CYCLES=n
	$(BIN)/python -m tests.spark.faults --seed $(or $(SEED),0)
	$(BIN)/python -m tests.spark.kill_cycles --seed $(or $(SEED),0) --cycles $(or $(CYCLES),20)
	$(BIN)/python -m tests.spark.kill_executors --seed $(or $(SEED),0) --kills $(or $(KILLS),6)

##@ Package and figures
wheel: $(VENV) ## the wheel in an empty environment, from another folder: the tool and each of its jobs
	$(BIN)/python -m tests.wheel_jobs

injections: setup ## each defence against what an enemy writes taken out in turn: is its test red without it
	$(BIN)/python -m tests.injections

bench: setup ## every benchmark beside its yardstick (benchmarks/RESULTS.md); fails where a figure falls by a fifth. ROUNDS=n, ONLY=name
	$(BIN)/python -m benchmarks.all --rounds $(or $(ROUNDS),3) $(if $(ONLY),--only $(ONLY))

demo: setup ## a real incident through the Spark jobs into Delta tables, and the answer by SQL
	$(BIN)/python -m replication.spark.demo

clean: ## remove what set-up and demo made
	rm -rf .venv .jars .demo
